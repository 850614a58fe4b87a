"""The face of a GPU on tensors that lie in host memory, while code under test runs.

Launchers ask where a tensor lies (`x.is_cuda`, `x.device`), and allocate there (`device=x.device`,
`"cuda"`). Under the interpreter every tensor lies on the CPU, so a launcher would refuse the call,
or take the way that it has for CPUs and never launch. `TorchFace` answers as one GPU would:

- tensors of the call lie on `cuda:0`, unless the schema says `device: cpu`;
- what is made of them, or with `device="cuda"`, lies there, too;
- what is made without a device, and what `.cpu()` gives, lies on the host, and stays there.

A tensor's home is noted on its storage, so views share it. The code of kernel-gate itself runs
without the face and sees plain CPU tensors.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
import torch.utils._device
from torch.overrides import TorchFunctionMode, _get_current_function_mode_stack

from gate.run.moving import tensors_in

GPU = torch.device("cuda", 0)
"""Where tensors seem to lie."""
HOST = torch.device("cpu")
MADE, SENT, PINNED = 1, 2, 3
"""How a tensor came to lie on the host for code under test."""
_MARK = "_kernel_gate_on_host"


def mark_host(tensor: torch.Tensor, how: int = MADE) -> torch.Tensor:
    """Note that a tensor, and every view of it, lies on the host also for code under test.

    how  `MADE` there, `SENT` there from the GPU, or `PINNED` there, where kernels may read it
    """
    if tensor.layout is torch.strided and tensor.device == HOST:
        setattr(tensor.untyped_storage(), _MARK, how)
    return tensor


def on_host(tensor: torch.Tensor) -> bool:
    """Return whether a tensor lies on the host for code under test as well."""
    return _how(tensor) > 0


def reachable(tensor: torch.Tensor) -> bool:
    """Return whether a kernel on the GPU could take the address of a tensor."""
    return _how(tensor) in (0, PINNED)


def home_of(tensor: torch.Tensor) -> str:
    """Return torch's name of the device that a tensor really lies on, `host` for one that code
    under test sent to the host from the GPU that it saw."""
    return "host" if _how(tensor) == SENT else str(tensor.device.type)


def _how(tensor: torch.Tensor) -> int:
    """Return how a tensor came to lie on the host for code under test; 0: it does not."""
    if tensor.layout is not torch.strided or tensor.device != HOST:
        return 0
    return int(getattr(tensor.untyped_storage(), _MARK, 0))


class TorchFace(TorchFunctionMode):  # type: ignore[misc]
    """While it is entered, torch's functions of this thread see one GPU."""

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: object,
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        """Answer what a GPU answers differently, and call through otherwise."""
        given = dict(kwargs or {})
        answer = _ANSWERS.get(func)
        if answer is not None:
            return answer(*args, **given)
        return _through(func, args, given)


def faced(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that runs with the face on again, where torch's dispatcher took it off:
    the code of a custom operator is called from inside another function's call."""

    def run(*args: Any, **kwargs: Any) -> Any:
        if any(isinstance(mode, TorchFace) for mode in _get_current_function_mode_stack()):
            return function(*args, **kwargs)
        with TorchFace():
            return function(*args, **kwargs)

    return run


def _through(func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call a function with the host for the GPU, and note the home of what it makes."""
    named = kwargs.get("device")
    pinned = bool(kwargs.pop("pin_memory", False))
    if named is None and func in torch.utils._device._device_constructors():
        named = torch.utils._device.CURRENT_DEVICE
    if named is not None:
        gpu = _names_gpu(named)
        if gpu:
            kwargs["device"] = HOST
    else:
        gpu = any(not on_host(tensor) for tensor in tensors_in((args, kwargs)))
    made = func(*args, **kwargs)
    if named is not None and isinstance(made, torch.Tensor):
        source = next(tensors_in(args), None)
        if source is not None and on_host(source) == gpu and torch._C._is_alias_of(made, source):
            made = made.clone()
    if not gpu:
        found = [how if how != PINNED else MADE for how in map(_how, tensors_in((args, kwargs)))]
        how = PINNED if pinned else max(found, default=MADE) or SENT
        for tensor in tensors_in(made):
            if not on_host(tensor):  # what a call gives back of what there was stays what it was
                mark_host(tensor, how)
    return made


def _names_gpu(device: Any) -> bool:
    """Whether a device as callers name it (a string, a number, a device) is a GPU."""
    if isinstance(device, int):
        return True
    return bool(torch.device(device).type == "cuda")


# --- what a GPU answers differently ---------------------------------------------------------------


def _device(tensor: torch.Tensor, *_: Any) -> torch.device:
    real = tensor.device
    return GPU if real == HOST and not on_host(tensor) else real


def _is_cuda(tensor: torch.Tensor, *_: Any) -> bool:
    return bool(_device(tensor).type == "cuda")


def _is_cpu(tensor: torch.Tensor, *_: Any) -> bool:
    return bool(_device(tensor).type == "cpu")


def _get_device(tensor: torch.Tensor) -> int:
    return 0 if _is_cuda(tensor) else tensor.get_device()


def _type(tensor: torch.Tensor, dtype: Any = None, *args: Any, **kwargs: Any) -> Any:
    if dtype is None:
        name = str(tensor.type())
        return name.replace("torch.", "torch.cuda.", 1) if _is_cuda(tensor) else name
    if isinstance(dtype, str):
        dtype = dtype.replace("torch.cuda.", "torch.", 1)
    return _kept(tensor, tensor.type(dtype, *args, **kwargs))


def _kept(tensor: torch.Tensor, made: torch.Tensor) -> torch.Tensor:
    """Return what was made of a tensor, at home where the tensor is."""
    return mark_host(made, _how(tensor)) if on_host(tensor) else made


def _cpu(tensor: torch.Tensor, memory_format: Any = torch.preserve_format) -> torch.Tensor:
    if not _is_cuda(tensor):
        return tensor
    return mark_host(tensor.clone(memory_format=memory_format), SENT)


def _cuda(
    tensor: torch.Tensor, device: Any = None, non_blocking: bool = False,
    memory_format: Any = torch.preserve_format,
) -> torch.Tensor:  # fmt: skip
    return tensor.clone(memory_format=memory_format) if on_host(tensor) else tensor


def _pinned(tensor: torch.Tensor, *_: Any, **__: Any) -> torch.Tensor:
    return mark_host(tensor.clone(), PINNED)


def _is_pinned(tensor: torch.Tensor, *_: Any, **__: Any) -> bool:
    return _how(tensor) == PINNED


def _to(tensor: torch.Tensor, *args: Any, **kwargs: Any) -> torch.Tensor:
    """Do what `Tensor.to` does, in each of its three forms: (device, dtype, ...), (dtype, ...) and
    (other, ...), followed by `non_blocking` and `copy`."""
    rest = list(args)
    device = kwargs.pop("device", None)
    other = kwargs.pop("other", None)
    if rest and isinstance(rest[0], torch.Tensor):
        other = rest.pop(0)
    elif rest and (rest[0] is None or isinstance(rest[0], (str, int, torch.device))):
        device = rest.pop(0)
        kwargs.update(zip(("dtype", "non_blocking", "copy"), rest, strict=False))
        rest = []
    if rest:
        kwargs.update(zip(("dtype", "non_blocking", "copy"), rest, strict=False))
    if other is not None:
        device, kwargs["dtype"] = _device(other), other.dtype
    if device is None:
        return _kept(tensor, tensor.to(**kwargs)) if kwargs else tensor
    if not isinstance(device, int) and torch.device(device).type not in ("cuda", "cpu"):
        return tensor.to(device=device, **kwargs)
    gpu = _names_gpu(device)
    if gpu == on_host(tensor):
        kwargs["copy"] = True
    made = tensor.to(**kwargs) if kwargs else tensor
    return made if gpu else mark_host(made, _how(tensor) or SENT)


def _backward(
    tensor: torch.Tensor, gradient: Any = None, retain_graph: bool | None = None,
    create_graph: bool = False, inputs: Any = None,
) -> None:  # fmt: skip
    """Do what `Tensor.backward` does, with the face on for what it runs."""
    with TorchFace():
        torch.autograd.backward(tensor, gradient, retain_graph, create_graph, inputs=inputs)


_ANSWERS: dict[Any, Callable[..., Any]] = {
    torch.Tensor.device.__get__: _device,
    torch.Tensor.is_cuda.__get__: _is_cuda,
    torch.Tensor.is_cpu.__get__: _is_cpu,
    torch.Tensor.get_device: _get_device,
    torch.Tensor.type: _type,
    torch.Tensor.cpu: _cpu,
    torch.Tensor.cuda: _cuda,
    torch.Tensor.to: _to,
    torch.Tensor.pin_memory: _pinned,
    torch.Tensor.is_pinned: _is_pinned,
    torch.Tensor.backward: _backward,
}
