"""One case: a concrete input set, as pure data.

A case holds the drawn variables only; derived dims, shapes and strides follow from the schema
(`gate.case.bind`). Its text is its id (`gate.case.text`).
"""

from __future__ import annotations

from dataclasses import dataclass

ScalarValue = int | float | bool | str | None
Extent = int | tuple[int, ...]
"""A dim's extent, or the extents of the dim group `...`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorChoice:
    """How one tensor arg lies in memory and gets its values."""

    layout: str = "contiguous"
    """A layout name of `gate.case.layouts`, perhaps with a parameter: `row_gap`, `offset(1)`."""
    fill: str = "normal"
    """A fill name of `gate.case.fills`, perhaps with a parameter: `needle(127)`."""
    ones: tuple[int, ...] = ()
    """Axes (from the right, 0 is the last) that broadcasting makes 1."""
    dropped: int = 0
    """Leading axes that broadcasting leaves out."""
    count: int | None = None
    """Number of tensors of a list arg; None: not a list."""
    vary: tuple[tuple[str, tuple[int, ...]], ...] = ()
    """dim -> its extent in each tensor of a list arg."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DtypeScalar:
    """A dtype passed as a Python value."""

    name: str
    """dtype name."""


ArgChoice = TensorChoice | DtypeScalar | int | float | bool | str | None
"""A tensor's choice, a scalar's value, or None for an arg that is not passed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """Everything that is needed to build the inputs of one launch, given the schema."""

    op: str
    """The op that it belongs to."""
    dims: tuple[tuple[str, Extent], ...] = ()
    """Drawn dims in schema order (fixed and derived ones are not repeated here)."""
    dtypes: tuple[tuple[str, str], ...] = ()
    """dtype variable -> dtype, in schema order."""
    args: tuple[tuple[str, ArgChoice], ...] = ()
    """arg -> choice, in schema order; args with `make` are absent."""
    seed: int = 0
    """The case's own seed, 0 <= seed < 2**24 (six hex digits in the text)."""

    def dim(self, name: str) -> Extent:
        """Return a drawn extent; KeyError if there is none."""
        return dict(self.dims)[name]

    def choice(self, name: str) -> ArgChoice:
        """Return an arg's choice; KeyError if there is none."""
        return dict(self.args)[name]
