"""From a bound case and its inputs to what a kernel worker is sent."""

from __future__ import annotations

from typing import Any

import numpy as np

from gate.case.bound import BoundArg, BoundCase, BoundList, BoundScalar, BoundTensor
from gate.case.inputs import Inputs
from gate.case.layouts import place
from gate.case.model import DtypeScalar
from gate.run.protocol import ArgWire, ListWire, ScalarWire, TensorWire
from gate.schema.model import Io

_POISONED = (Io.OUT, Io.SCRATCH)


def wire_args(bound: BoundCase, inputs: Inputs) -> tuple[ArgWire, ...]:
    """Return every arg of the case, in schema order, as data for a worker."""
    return tuple(_arg(arg, inputs.values.get(arg.name)) for arg in bound.args)


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
