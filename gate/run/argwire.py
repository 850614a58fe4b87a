"""The args of one call, and the gradients that come in from behind it, as data for a worker."""

from __future__ import annotations

from dataclasses import dataclass

from gate.dtypes import Array


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorWire:
    """One tensor for the call. Sizes in elements."""

    name: str
    """Arg name (`name[i]` in a list)."""
    dtype: str
    """dtype name."""
    shape: tuple[int, ...]
    """Extents."""
    strides: tuple[int, ...]
    """Steps in the storage."""
    offset: int
    """Start in the storage."""
    storage: int
    """Length of the storage without guards."""
    data: Array | None
    """Values in C order with this shape; None: poison (io out, scratch)."""
    io: str = "in"
    """`in`, `inout`, `out`, `clobbered` or `scratch`."""
    on_cpu: bool = False
    """Stays on the host."""
    repeats: int | None = None
    """The axis along which the values repeat: `data` has fewer there; None: they do not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListWire:
    """A Python list of tensors."""

    name: str
    """Arg name."""
    items: tuple[TensorWire, ...]
    """Its tensors."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalarWire:
    """A Python value."""

    name: str
    """Arg name."""
    value: int | float | bool | str | None
    """Its value; a dtype's name with `is_dtype`."""
    is_dtype: bool = False
    """Whether the value names a torch dtype."""


ArgWire = TensorWire | ListWire | ScalarWire


@dataclass(frozen=True, slots=True, kw_only=True)
class GradWire:
    """The backward call that follows the call."""

    args: tuple[str, ...]
    """Args that require gradients: float tensors that are passed."""
    through: tuple[str, ...]
    """Returns that gradients flow back through; others are left out of the backward call."""
    incoming: tuple[TensorWire, ...]
    """The incoming gradient of each of these returns, in order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChosenWire:
    """Which slices of what comes back are wanted, when the whole is too large to be sent."""

    extent: int
    """Extent of the axis in what comes back."""
    indices: tuple[int, ...]
    """Indices along it, in order."""
    axes: tuple[tuple[str, int], ...]
    """(return or arg, its axis counted from the end); what is not named comes back whole."""

    def check(self) -> None:
        """Raise ValueError unless every index that is wanted is there."""
        if not all(0 <= index < self.extent for index in self.indices):
            raise ValueError(f"slices {list(self.indices)} of {self.extent}")
