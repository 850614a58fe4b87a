"""The words of format 1 that a schema may not use as names of its own."""

from __future__ import annotations

import keyword
import re
from collections.abc import Mapping
from types import MappingProxyType

from gate.dtypes import DTYPES
from gate.schema.nodes import Level

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
"""How a name is spelt."""

FUNCTIONS: Mapping[str, tuple[Level, int, int]] = MappingProxyType(
    {
        "cdiv": (Level.PURE, 2, 2),
        "next_pow2": (Level.PURE, 1, 1),
        "min": (Level.PURE, 1, 16),
        "max": (Level.PURE, 1, 16),
        "abs": (Level.PURE, 1, 1),
        "sum": (Level.PURE, 1, 1),
        "len": (Level.PURE, 1, 1),
        "diff": (Level.PURE, 1, 1),
        "promote": (Level.PURE, 2, 16),
        "bits": (Level.PURE, 1, 1),
        "is_float": (Level.PURE, 1, 1),
        "dict": (Level.CALL, 0, 0),
        "tuple": (Level.CALL, 1, 1),
        "tl_dtype": (Level.CALL, 1, 1),
    }
)
"""Function -> (level it needs, fewest, most positional arguments)."""

PROPERTY_FUNCTIONS = frozenset({"close", "equal", "op"})
"""Functions of `properties`, which the host provides."""

HOST_ROOTS = frozenset({"torch", "F", "device"})
"""Names that the host provides."""

LITERALS: Mapping[str, str] = MappingProxyType(
    {
        "true": "True",
        "false": "False",
        "null": "None",
        "none": "None",
        "nil": "None",
        "TRUE": "True",
        "FALSE": "False",
    }
)
"""Words of YAML and other languages -> what Python writes."""


def reserved(name: str) -> str:
    """Return why `name` cannot name a dim, a dtype variable, an arg or a return; `` if it can."""
    if not NAME.fullmatch(name):
        return "a name has letters, digits and _, and starts with no digit"
    if keyword.iskeyword(name) or (keyword.issoftkeyword(name) and name == "_"):
        return f"`{name}` is a word of Python"
    if name in DTYPES:
        return f"`{name}` is a dtype"
    if name in FUNCTIONS or name in PROPERTY_FUNCTIONS:
        return f"`{name}` is a function of the format"
    if name in HOST_ROOTS:
        return f"`{name}` has a meaning in expressions"
    if name in LITERALS:
        return f"`{name}` reads like {LITERALS[name]}"
    return ""
