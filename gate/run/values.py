"""Tensors to arrays and back, bit for bit; the only place that knows both sides' dtypes."""

from __future__ import annotations

import numpy as np
import torch

from gate.dtypes import DTYPES, Array

_BYTES = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
_NUMPY_BYTES = {1: np.uint8, 2: np.int16, 4: np.int32, 8: np.int64}


def dtype_name(dtype: torch.dtype) -> str:
    """Return a torch dtype's name without `torch.`."""
    return str(dtype).removeprefix("torch.")


def torch_dtype(name: str) -> torch.dtype:
    """Return the torch dtype of a format dtype.

    Raises
        AttributeError  this torch does not have it
    """
    found: torch.dtype = getattr(torch, name)
    return found


def to_array(tensor: torch.Tensor) -> Array:
    """Return a tensor's values in C order on the host, in the storage dtype of its name.

    Raises
        KeyError  the dtype is none of the format's
    """
    name = dtype_name(tensor.dtype)
    held = DTYPES[name].storage
    flat = tensor.detach().resolve_neg().resolve_conj().contiguous().cpu().reshape(-1)
    size = held.itemsize
    raw = flat.view(_BYTES[size]).numpy()
    made: Array = raw.view(held).reshape(tuple(tensor.shape)).copy()
    return made


def to_tensor(array: Array) -> torch.Tensor:
    """Return a CPU tensor with an array's bits, shape and dtype."""
    name = next(n for n, d in DTYPES.items() if d.storage == array.dtype)
    flat = np.array(array, copy=True, order="C").reshape(-1)
    raw = torch.from_numpy(flat.view(_NUMPY_BYTES[array.dtype.itemsize]))
    return raw.view(torch_dtype(name)).reshape(tuple(array.shape))
