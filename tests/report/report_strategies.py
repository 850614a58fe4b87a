"""Results drawn from their own types: every field takes any value that its type allows."""

from __future__ import annotations

import dataclasses
import enum
import types
import typing
from typing import Any

from hypothesis import strategies as st

from gate.report.limits import MAX_INTEGER
from gate.result import RunResult

# Two surrogates in a row encode one character, which is what JSON gives back.
_TEXT = st.text(st.characters(exclude_categories=()), max_size=8).filter(
    lambda text: text == text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")
)


def of_type(hint: Any) -> st.SearchStrategy[Any]:
    """Return a strategy for a field's type."""
    if dataclasses.is_dataclass(hint):
        return st.deferred(lambda: _dataclass(hint))
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        return st.sampled_from(list(hint))
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin is tuple and args[-1] is Ellipsis:
        return st.lists(of_type(args[0]), max_size=2).map(tuple)
    if origin is tuple:
        return st.tuples(*(of_type(arg) for arg in args))
    if origin in (types.UnionType, typing.Union):
        return st.one_of(*(of_type(arg) for arg in args))
    plain = {
        str: _TEXT,
        int: st.integers(min_value=0, max_value=MAX_INTEGER),
        float: st.floats(),
        bool: st.booleans(),
        type(None): st.none(),
    }
    return typing.cast("st.SearchStrategy[Any]", plain[hint])


def _dataclass(cls: Any) -> st.SearchStrategy[Any]:
    hints = typing.get_type_hints(cls)
    fields = {field.name: of_type(hints[field.name]) for field in dataclasses.fields(cls)}
    if "sha256" in fields:
        fields["sha256"] = st.text("0123456789abcdef", min_size=64, max_size=64)
    return st.builds(cls, **fields)


results: st.SearchStrategy[RunResult] = of_type(RunResult)
