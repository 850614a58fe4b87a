"""From a bound case and its inputs to what a kernel worker is sent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from gate.case.bound import BoundArg, BoundCase, BoundList, BoundScalar, BoundTensor
from gate.case.incoming import placed_incoming
from gate.case.inputs import Inputs
from gate.case.layouts import place
from gate.case.model import DtypeScalar
from gate.dtypes import DTYPES
from gate.run.argwire import ArgWire, GradWire, ListWire, ScalarWire, TensorWire
from gate.schema.model import Io

_POISONED = (Io.OUT, Io.SCRATCH)


def wire_args(bound: BoundCase, inputs: Inputs) -> tuple[ArgWire, ...]:
    """Return every arg of the case, in schema order, as data for a worker."""
    return tuple(_arg(arg, inputs.values.get(arg.name)) for arg in bound.args if not _comes_in(arg))


def huge_args(bound: BoundCase, block: Inputs, axes: Mapping[str, int]) -> tuple[ArgWire, ...]:
    """Return every arg of a case past 2**31 elements: the values of those that have the independent
    dim are those of a few slices, and repeat.

    bound  the whole case
    block  inputs with as many slices as repeat
    axes   arg -> its axis of the dim, counted from the end
    """
    return tuple(
        _repeating(wire, axes[wire.name]) if wire.name in axes else wire
        for wire in (_arg(arg, block.values.get(arg.name)) for arg in bound.args)
    )


def _repeating(arg: ArgWire, axis: int) -> ArgWire:
    match arg:
        case TensorWire() if arg.data is not None:
            return replace(arg, repeats=axis + len(arg.shape))
        case ListWire():
            items = (replace(i, repeats=axis + len(i.shape)) for i in arg.items)
            return replace(arg, items=tuple(items))
        case _:
            return arg


def wire_gradients(
    bound: BoundCase, inputs: Inputs, through: Sequence[str], clobbers: bool
) -> GradWire | None:
    """Return the backward call of a case as data for a worker; None for an op without `grad`.

    through   the returns that gradients flow back through in this case
    clobbers  whether the incoming gradients may be overwritten
    """
    grad = bound.schema.grad
    if grad is None:
        return None
    incoming = {
        arg.arg.incoming: _incoming(arg, inputs.values[arg.name], bound.case.seed)
        for arg in bound.args
        if isinstance(arg, BoundTensor) and arg.arg.incoming
    }
    io = "clobbered" if clobbers else "in"
    return GradWire(
        args=tuple(name for name in grad.args if _has_gradient(inputs.values.get(name))),
        through=tuple(through),
        incoming=tuple(replace(incoming[name], io=io) for name in through),
    )


def _incoming(arg: BoundTensor, value: Any, case_seed: int) -> TensorWire:
    placed = arg if arg.place else placed_incoming(arg, np.asarray(value).shape, case_seed)
    return _tensor(placed, value)


def _comes_in(arg: BoundArg) -> bool:
    return isinstance(arg, BoundTensor) and bool(arg.arg.incoming)


def _has_gradient(value: Any) -> bool:
    """Whether an arg is passed and holds floats, in all of its tensors."""
    held = value if isinstance(value, list) else [value]
    return all(isinstance(array, np.ndarray) and array.dtype.kind not in "biu" for array in held)


def dry_args(bound: BoundCase) -> tuple[ArgWire, ...] | None:
    """Return every arg with its place and without values, for a dry launch; None when an arg is
    computed from others, and so has no value or no shape yet."""
    found: list[ArgWire] = []
    for arg in bound.args:
        if _comes_in(arg):
            continue
        match arg:
            case BoundScalar():
                if arg.make is not None:
                    return None
                found.append(_arg(arg, arg.value))
            case BoundList():
                if any(item.place is None for item in arg.items):
                    return None
                items = tuple(_dry_tensor(item) for item in arg.items)
                found.append(ListWire(name=arg.name, items=items))
            case BoundTensor():
                if arg.place is None:
                    return None
                found.append(_dry_tensor(arg))
    return tuple(found)


def dry_gradients(bound: BoundCase, through: Sequence[str]) -> GradWire | None:
    """Return the backward call of a dry launch; None without one, or when a shape is not known."""
    grad = bound.schema.grad
    tensors = {
        arg.arg.incoming: arg for arg in bound.args if isinstance(arg, BoundTensor) and arg.place
    }
    if grad is None or not set(through) <= set(tensors):
        return None
    passed = {arg.name for arg in bound.args if _float_tensors(arg)}
    return GradWire(
        args=tuple(name for name in grad.args if name in passed),
        through=tuple(through),
        incoming=tuple(_dry_tensor(tensors[name]) for name in through),
    )


def _float_tensors(arg: BoundArg) -> bool:
    held = arg.items if isinstance(arg, BoundList) else (arg,)
    return all(isinstance(one, BoundTensor) and DTYPES[one.dtype].is_float for one in held)


def _dry_tensor(tensor: BoundTensor) -> TensorWire:
    where = tensor.place
    assert where is not None
    return TensorWire(
        name=tensor.name, dtype=tensor.dtype, shape=where.shape, strides=where.strides,
        offset=where.offset, storage=where.storage, data=None, io=tensor.io.value,
        on_cpu=tensor.arg.on_cpu,
    )  # fmt: skip


def _arg(arg: BoundArg, value: Any) -> ArgWire:
    match arg:
        case BoundScalar():
            if isinstance(value, DtypeScalar):
                return ScalarWire(name=arg.name, value=value.name, is_dtype=True)
            return ScalarWire(name=arg.name, value=value)
        case BoundList():
            items = zip(arg.items, value, strict=True)
            return ListWire(name=arg.name, items=tuple(_tensor(i, v) for i, v in items))
        case BoundTensor():
            if value is None:
                return ScalarWire(name=arg.name, value=None)
            return _tensor(arg, value)


def _tensor(tensor: BoundTensor, value: Any) -> TensorWire:
    array = np.asarray(value)
    where = tensor.place or place(tensor.layout or "contiguous", array.shape, tensor.dtype)
    return TensorWire(
        name=tensor.name,
        dtype=tensor.dtype,
        shape=where.shape,
        strides=where.strides,
        offset=where.offset,
        storage=where.storage,
        data=None if tensor.io in _POISONED else array,
        io=tensor.io.value,
        on_cpu=tensor.arg.on_cpu,
    )
