"""Run one probe on a device: the same code for the recorder and for the interpreter.

Imports torch and triton, so it lives in the processes that run kernels.
"""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np
import torch
from values import Tensor, digest, integers, numbers


def build(tensor: Tensor, seed: int) -> torch.Tensor:
    """Return a CPU tensor with the values of `tensor`; floats are rounded by torch on the CPU."""
    count = int(np.prod(tensor.shape, dtype=np.int64))
    dtype = getattr(torch, tensor.dtype)
    if dtype.is_floating_point:
        values = torch.from_numpy(np.asarray(numbers(tensor.fill, count, seed), dtype=np.float64))
        made = values if dtype is torch.float64 else rounded(values.to(torch.float32), dtype)
    elif dtype is torch.bool:
        made = torch.from_numpy(numbers(tensor.fill, count, seed) > 0)
    else:
        info = torch.iinfo(dtype)
        made = torch.from_numpy(
            integers(tensor.fill, count, seed, info.bits, tensor.dtype.startswith("int"))
        )
    return made.reshape(tensor.shape)


def rounded(values: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Return float32 values in another float dtype.

    Versions of torch disagree on what float8_e4m3fn makes of values past its range; NaN here.
    """
    made = values.to(dtype)
    if dtype is torch.float8_e4m3fn:
        lost = (values.abs() > 464) | values.isnan()
        raw = made.view(torch.uint8)
        made = torch.where(lost, torch.signbit(values) * 128 + 127, raw).to(torch.uint8).view(dtype)
    return made


def raw_bytes(tensor: torch.Tensor) -> bytes:
    """Return the little-endian bytes of a contiguous tensor of any dtype."""
    return tensor.detach().cpu().contiguous().view(torch.uint8).numpy().tobytes()


def seed_of(name: str, position: int) -> int:
    """Return the stream of one tensor of one probe: a fixed hash of its name."""
    return zlib.crc32(f"{name}/{position}".encode()) + position


def run(probe: Any, device: str) -> tuple[str, list[dict[str, Any]]]:
    """Launch the probe once and return the digest of its inputs and its outputs.

    An output is `{"dtype": ..., "shape": [...], "raw": bytes}`, in the order of the args.
    """
    args: list[Any] = []
    inputs: list[bytes] = []
    for position, arg in enumerate(probe.args):
        if isinstance(arg, Tensor):
            made = build(arg, seed_of(probe.name, position))
            inputs.append(raw_bytes(made))
            args.append(made.to(device))
        else:
            args.append(arg)
    probe.kernel[probe.grid](*args, **probe.meta)
    if device == "cuda":
        torch.cuda.synchronize()
    outputs = [
        {"dtype": spec.dtype, "shape": list(spec.shape), "raw": raw_bytes(value)}
        for spec, value in zip(probe.args, args, strict=True)
        if isinstance(spec, Tensor) and spec.out
    ]
    return digest(inputs), outputs
