"""A bound case: the case with every size, stride and value domain worked out as numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gate.case.model import Case, DtypeScalar
from gate.dtypes import DTYPES
from gate.schema.expr import Call, Expr
from gate.schema.model import Io, OpSchema, TensorArg, Values


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """How a tensor lies in its storage. All figures in elements."""

    shape: tuple[int, ...]
    """Extents."""
    strides: tuple[int, ...]
    """Steps; 0 for an expanded axis."""
    offset: int
    """From the start of the storage to element (0, ..., 0)."""
    storage: int
    """Length of the storage, gaps and offset included, guards not included."""

    @property
    def numel(self) -> int:
        """Number of logical elements."""
        count = 1
        for extent in self.shape:
            count *= extent
        return count


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundTensor:
    """One tensor of a case. A tensor with `make` has no place until its values are known."""

    name: str
    """The arg's name, or `name[i]` in a list."""
    arg: TensorArg
    """The schema's words on it."""
    dtype: str
    """dtype name."""
    place: Place | None
    """Where it lies; None when `make` decides the shape."""
    layout: str
    """Layout as in the case text."""
    fill: str
    """Fill as in the case text; empty with `make`."""
    values: Values
    """The domain, ends still as expressions (they may name earlier args)."""
    make: Call | Expr | None = None
    """How it is computed; None: drawn."""

    @property
    def io(self) -> Io:
        """What the call does to it."""
        return self.arg.io

    @property
    def nbytes(self) -> int:
        """Bytes of its storage, 0 when not yet known."""
        return self.place.storage * DTYPES[self.dtype].itemsize if self.place else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundList:
    """A list of tensors."""

    name: str
    """The arg's name."""
    items: tuple[BoundTensor, ...]
    """Its tensors."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundScalar:
    """A Python value; `DtypeScalar` for a dtype, None for an arg that is not passed."""

    name: str
    """The arg's name."""
    value: int | float | bool | str | DtypeScalar | None
    """Its value; None while `make` has not run."""
    make: Call | Expr | None = None
    """How it is computed; None: drawn."""


BoundArg = BoundTensor | BoundList | BoundScalar


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundCase:
    """A case with numbers for every variable."""

    case: Case
    """The case."""
    schema: OpSchema
    """Its schema."""
    dims: Mapping[str, Any]
    """Every dim: drawn, fixed and derived; `...` maps to a tuple."""
    dtypes: Mapping[str, str]
    """dtype variable -> dtype name."""
    args: tuple[BoundArg, ...]
    """In schema order, one for each arg."""

    @property
    def nbytes(self) -> int:
        """Bytes of all storages that are known."""
        total = 0
        for arg in self.args:
            if isinstance(arg, BoundTensor):
                total += arg.nbytes
            elif isinstance(arg, BoundList):
                total += sum(item.nbytes for item in arg.items)
        return total
