"""Strategies for messages of the protocol."""

from __future__ import annotations

import dataclasses
import enum
import types
import typing
from collections.abc import Mapping
from typing import Any

import numpy as np
from hypothesis import strategies as st

from gate.case.model import DtypeScalar
from gate.dtypes import DTYPES
from gate.run.codec import MESSAGES

NAMES = st.text("abxyz.[]0#", min_size=1, max_size=6)


@st.composite
def arrays(draw):
    dtype = draw(st.sampled_from(sorted(DTYPES)))
    shape = tuple(draw(st.lists(st.integers(0, 3), max_size=3)))
    count = int(np.prod(shape)) * DTYPES[dtype].itemsize
    raw = draw(st.binary(min_size=count, max_size=count))
    if dtype == "bool":
        raw = bytes(byte & 1 for byte in raw)
    return np.frombuffer(raw, dtype=DTYPES[dtype].storage).reshape(shape)


SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(-(2**70), 2**70), st.floats(), st.text(max_size=8)
)
FREE = st.recursive(
    st.one_of(SCALARS, arrays(), st.builds(DtypeScalar, name=st.sampled_from(sorted(DTYPES)))),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(NAMES, inner, max_size=3)),
    max_leaves=6,
)


def of(hint: Any) -> st.SearchStrategy[Any]:
    """Return values of a type of the protocol."""
    if hint is Any:
        return FREE
    if hint in (int, bool, str, float, type(None)):
        return st.from_type(hint)
    if isinstance(hint, type) and dataclasses.is_dataclass(hint):
        return message(hint)
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        return st.sampled_from(hint)
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin is tuple:
        if len(args) == 2 and args[1] is ...:
            return st.lists(of(args[0]), max_size=2).map(tuple)
        return st.tuples(*map(of, args))
    if origin in (types.UnionType, typing.Union):
        return st.one_of(*map(of, args))
    if origin is np.ndarray:
        return arrays()
    assert issubclass(origin, Mapping)
    return st.dictionaries(NAMES, of(args[1]), max_size=3)


def message(cls: type[Any]) -> st.SearchStrategy[Any]:
    """Return messages of one class."""
    hints = typing.get_type_hints(cls)
    return st.builds(cls, **{f.name: of(hints[f.name]) for f in dataclasses.fields(cls)})


ANY = st.sampled_from(sorted(MESSAGES)).flatmap(lambda name: message(MESSAGES[name]))


def same(one: Any, two: Any) -> bool:
    """Whether two messages are equal, arrays and NaN bit by bit, tuples and lists alike."""
    if isinstance(one, np.ndarray):
        return (
            isinstance(two, np.ndarray)
            and one.dtype == two.dtype
            and one.shape == two.shape
            and one.tobytes() == two.tobytes()
        )
    if isinstance(one, float):
        return isinstance(two, float) and (one == two or (one != one and two != two))
    if isinstance(one, (list, tuple)):
        return isinstance(two, (list, tuple)) and len(one) == len(two) and all(map(same, one, two))
    if isinstance(one, dict):
        return (
            isinstance(two, dict)
            and one.keys() == two.keys()
            and all(same(one[key], two[key]) for key in one)
        )
    if dataclasses.is_dataclass(one):
        return type(one) is type(two) and all(
            same(getattr(one, f.name), getattr(two, f.name)) for f in dataclasses.fields(one)
        )
    return bool(type(one) is type(two) and one == two)
