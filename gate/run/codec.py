"""Messages to JSON and back: every field is checked against its declared type.

A dataclass becomes `{"$": class name, field: value, ...}`, an array `{"$a": blob, "d": dtype,
"s": shape}`, a dtype scalar `{"$t": name}`, a float that JSON does not know `{"$f": "nan"}`.
Nothing in a message can name code: only the classes of `gate.run.protocol` and of
`gate.run.argwire` are ever built.
"""

from __future__ import annotations

import collections.abc
import dataclasses
import enum
import math
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from gate.case.model import DtypeScalar
from gate.dtypes import DTYPES, Array
from gate.errors import ProtocolError
from gate.run import argwire, protocol, serving

MAX_DEPTH = 32
"""Nesting of free values (lists, mappings) in a message."""
MAX_AXES = 64
"""Axes of an array, NumPy's own limit."""
MAX_EXTENT = 2**62
"""Elements of an array at most; keeps products inside what NumPy can hold."""
_SPECIAL_FLOATS = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}
_DTYPE_NAMES = {dtype.storage: name for name, dtype in DTYPES.items()}

MESSAGES: Mapping[str, type[Any]] = {
    cls.__name__: cls
    for module in (argwire, protocol, serving)
    for cls in vars(module).values()
    if isinstance(cls, type) and dataclasses.is_dataclass(cls) and cls.__module__ == module.__name__
}
"""Every dataclass of the protocol by name."""


def encode(message: Any) -> tuple[Any, list[Array]]:
    """Return a message as plain JSON values and the arrays that it refers to, in order.

    Raises
        ProtocolError  it holds something that the protocol cannot carry
    """
    blobs: list[Array] = []
    return _encode(message, blobs, 0), blobs


def decode(value: Any, cls: type[Any], blobs: Sequence[memoryview]) -> Any:
    """Rebuild a message of class `cls`.

    Raises
        ProtocolError  a field is missing, unknown or of another type; an array does not fit its
                       blob; a blob is used twice or never
    """
    reader = _Reader(blobs)
    message = reader.read(value, cls, cls.__name__, 0)
    unused = [index for index, count in enumerate(reader.uses) if count != 1]
    if unused:
        raise ProtocolError(f"{cls.__name__}: blob {unused[0]} is not used exactly once")
    return message


_FIELDS: dict[str, dict[str, tuple[Any, bool]]] = {}
"""Fields of the messages, read on first use."""


# --- out ----------------------------------------------------------------------------------------


def _encode(value: Any, blobs: list[Array], depth: int) -> Any:
    if depth > MAX_DEPTH:
        raise ProtocolError(f"a value is nested more than {MAX_DEPTH} deep")
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, (int, np.integer)):
        return int(value)
    if isinstance(value, (float, np.floating)):
        return _float_out(float(value))
    if isinstance(value, np.ndarray):
        return _array_out(value, blobs)
    if isinstance(value, np.bool_):
        return bool(value)
    if isinstance(value, DtypeScalar):
        return {"$t": value.name}
    if type(value).__name__ in MESSAGES:
        fields = _fields(type(value))
        body = {name: _encode(getattr(value, name), blobs, depth + 1) for name in fields}
        return {"$": type(value).__name__, **body}
    if isinstance(value, (list, tuple)):
        return [_encode(item, blobs, depth + 1) for item in value]
    if isinstance(value, Mapping):
        return _mapping_out(value, blobs, depth)
    raise ProtocolError(f"a {type(value).__name__} cannot cross to another process")


def _float_out(value: float) -> Any:
    if math.isfinite(value):
        return value
    return {"$f": "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"}


def _array_out(array: Array, blobs: list[Array]) -> Any:
    name = _DTYPE_NAMES.get(array.dtype)
    if name is None:
        raise ProtocolError(f"arrays of {array.dtype} cannot cross to another process")
    blobs.append(np.asarray(array, order="C"))
    return {"$a": len(blobs) - 1, "d": name, "s": list(array.shape)}


def _mapping_out(value: Mapping[Any, Any], blobs: list[Array], depth: int) -> Any:
    for key in value:
        if not isinstance(key, str) or key.startswith("$"):
            raise ProtocolError(f"{key!r} cannot be a key of a message")
    return {key: _encode(item, blobs, depth + 1) for key, item in value.items()}


# --- in -----------------------------------------------------------------------------------------


def _fields(cls: type[Any]) -> dict[str, tuple[Any, bool]]:
    """Return field name -> (type, whether it must be present)."""
    found = _FIELDS.get(cls.__name__)
    if found is None:
        found = _FIELDS[cls.__name__] = _read_fields(cls)
    return found


def _read_fields(cls: type[Any]) -> dict[str, tuple[Any, bool]]:
    hints = typing.get_type_hints(cls)
    return {
        field.name: (
            hints[field.name],
            field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING,
        )
        for field in dataclasses.fields(cls)
    }


class _Reader:
    """Decodes one message over its blobs, counting their uses."""

    def __init__(self, blobs: Sequence[memoryview]) -> None:
        self.blobs = blobs
        self.uses = [0] * len(blobs)

    def read(self, value: Any, hint: Any, where: str, depth: int) -> Any:
        """Return `value` as `hint` says."""
        if depth > MAX_DEPTH:
            raise ProtocolError(f"{where}: nested more than {MAX_DEPTH} deep")
        if hint is Any:
            return self.free(value, where, depth)
        simple = _SIMPLE.get(hint)
        if simple is not None:
            return simple(value, where)
        if isinstance(hint, type) and dataclasses.is_dataclass(hint):
            return self.dataclass(value, hint, where, depth)
        if isinstance(hint, type) and issubclass(hint, enum.Enum):
            return _enum_in(value, hint, where)
        origin = typing.get_origin(hint)
        if origin is tuple:
            return self.sequence(value, typing.get_args(hint), where, depth)
        if origin in (types.UnionType, typing.Union):
            return self.union(value, typing.get_args(hint), where, depth)
        if hint == Array:  # its origin is another one from NumPy 2.5 on
            return self.array(value, where)
        if origin in (dict, collections.abc.Mapping):
            return self.mapping(value, typing.get_args(hint)[1], where, depth)
        raise ProtocolError(f"{where}: {hint} is not a type of the protocol")

    def dataclass(self, value: Any, cls: type[Any], where: str, depth: int) -> Any:
        """Return an instance of `cls`."""
        name = cls.__name__
        if not isinstance(value, dict) or value.get("$") != name:
            raise ProtocolError(f"{where}: not a {name}")
        fields = _fields(cls)
        unknown = value.keys() - fields.keys() - {"$"}
        if unknown:
            raise ProtocolError(f"{where}: {name} has no field {min(unknown)[:40]!r}")
        found = {}
        for key, (hint, required) in fields.items():
            if key in value:
                found[key] = self.read(value[key], hint, f"{where}.{key}", depth + 1)
            elif required:
                raise ProtocolError(f"{where}: {name} lacks {key}")
        return cls(**found)

    def sequence(
        self, value: Any, args: tuple[Any, ...], where: str, depth: int
    ) -> tuple[Any, ...]:
        """Return a tuple, of any length when the type says `...`."""
        if not isinstance(value, list):
            raise ProtocolError(f"{where}: not a list")
        hints = [args[0]] * len(value) if len(args) == 2 and args[1] is ... else list(args)
        if len(hints) != len(value):
            raise ProtocolError(f"{where}: {len(value)} values for {len(hints)}")
        return tuple(
            self.read(item, hint, f"{where}[{i}]", depth + 1)
            for i, (item, hint) in enumerate(zip(value, hints, strict=True))
        )

    def union(self, value: Any, hints: tuple[Any, ...], where: str, depth: int) -> Any:
        """Return the value as the one member that fits its JSON type."""
        if value is None and type(None) in hints:
            return None
        classes = [h for h in hints if isinstance(h, type) and dataclasses.is_dataclass(h)]
        if isinstance(value, dict) and "$" in value:
            for cls in classes:
                if cls.__name__ == value["$"]:
                    return self.dataclass(value, cls, where, depth)
        if isinstance(value, dict) and "$a" in value:
            if Array in hints:
                return self.array(value, where)
        elif type(value) in hints:
            return value
        elif isinstance(value, dict) and "$f" in value and float in hints:
            return _float_in(value, where)
        elif type(value) is int and float in hints:
            return float(value)
        raise ProtocolError(f"{where}: a {type(value).__name__} is not allowed here")

    def mapping(self, value: Any, hint: Any, where: str, depth: int) -> dict[str, Any]:
        """Return a mapping of plain keys."""
        if not isinstance(value, dict) or any(key.startswith("$") for key in value):
            raise ProtocolError(f"{where}: not a mapping")
        return {k: self.read(v, hint, f"{where}.{k[:40]}", depth + 1) for k, v in value.items()}

    def free(self, value: Any, where: str, depth: int) -> Any:
        """Return a value of any type that the protocol can carry."""
        if value is None or isinstance(value, (bool, int, float, str)):
            return value
        if isinstance(value, list):
            return [
                self.read(item, Any, f"{where}[{i}]", depth + 1) for i, item in enumerate(value)
            ]
        assert isinstance(value, dict)  # JSON has no more types
        if "$a" in value:
            return self.array(value, where)
        if "$f" in value:
            return _float_in(value, where)
        if "$t" in value:
            return _dtype_in(value, where)
        return self.mapping(value, Any, where, depth)

    def array(self, value: Any, where: str) -> Array:
        """Return an array over its blob; blob index, dtype, shape and size must agree."""
        if not isinstance(value, dict) or value.keys() != {"$a", "d", "s"}:
            raise ProtocolError(f"{where}: not an array")
        index, dtype, shape = value["$a"], value["d"], value["s"]
        if type(index) is not int or not 0 <= index < len(self.blobs):
            raise ProtocolError(f"{where}: there is no blob {str(index)[:40]}")
        if not isinstance(dtype, str) or dtype not in DTYPES:
            raise ProtocolError(f"{where}: there is no dtype {str(dtype)[:40]!r}")
        extents = _shape_in(shape, where)
        self.uses[index] += 1
        need = math.prod(extents) * DTYPES[dtype].itemsize
        if need != len(self.blobs[index]):
            raise ProtocolError(
                f"{where}: {dtype}{list(extents)} needs {need} bytes, its blob has "
                f"{len(self.blobs[index])}"
            )
        flat = np.frombuffer(self.blobs[index], dtype=np.uint8)
        return flat.view(DTYPES[dtype].storage).reshape(extents)


def _shape_in(shape: Any, where: str) -> tuple[int, ...]:
    if not isinstance(shape, list) or len(shape) > MAX_AXES:
        raise ProtocolError(f"{where}: not a shape")
    if not all(type(n) is int and 0 <= n <= MAX_EXTENT for n in shape):
        raise ProtocolError(f"{where}: a shape with an extent that cannot be")
    if math.prod(n for n in shape if n) > MAX_EXTENT:
        raise ProtocolError(f"{where}: a shape of more elements than can be")
    return tuple(shape)


def _enum_in(value: Any, cls: type[enum.Enum], where: str) -> enum.Enum:
    for member in cls:
        if member.value == value:
            return member
    raise ProtocolError(f"{where}: {str(value)[:40]!r} is not a {cls.__name__}")


def _float_in(value: Any, where: str) -> float:
    if type(value) is int or type(value) is float:
        return float(value)
    if isinstance(value, dict) and value.keys() == {"$f"} and value["$f"] in _SPECIAL_FLOATS:
        return _SPECIAL_FLOATS[value["$f"]]
    raise ProtocolError(f"{where}: not a number")


def _dtype_in(value: dict[str, Any], where: str) -> DtypeScalar:
    if value.keys() != {"$t"} or value["$t"] not in DTYPES:
        raise ProtocolError(f"{where}: not a dtype")
    return DtypeScalar(name=value["$t"])


def _exactly(cls: type[Any]) -> Callable[[Any, str], Any]:
    def check(value: Any, where: str) -> Any:
        if type(value) is not cls:
            raise ProtocolError(f"{where}: not a {cls.__name__}")
        return value

    return check


_SIMPLE: Mapping[Any, Callable[[Any, str], Any]] = {
    int: _exactly(int),
    str: _exactly(str),
    bool: _exactly(bool),
    float: _float_in,
    type(None): _exactly(type(None)),
}
