"""The op schema as types: what the loader makes and every later stage reads.

Nothing here is evaluated: sizes and bounds are `Expr` trees over the variables of a case.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field

from gate.schema.expr import Call, Expr

ScalarValue = int | float | bool | str | None
"""A Python value of a scalar arg; a dtype scalar is its name as a str."""


class Layouts(enum.Enum):
    """Which layouts an arg may arrive in."""

    ANY = "any"
    """Every layout that torch can express."""
    INNER = "inner"
    """The last axis has stride 1."""
    CONTIGUOUS = "contiguous"
    """Exactly torch's contiguous strides."""
    COLUMNS = "columns"
    """The last two axes are swapped in memory."""


class Io(enum.Enum):
    """What the call does to a tensor arg."""

    IN = "in"
    """Values before; bit-identical after."""
    INOUT = "inout"
    """Values before; judged after."""
    OUT = "out"
    """Poison before; judged after."""
    CLOBBERED = "clobbered"
    """Values before; anything after."""
    SCRATCH = "scratch"
    """Poison before; anything after."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Range:
    """`a..b`, both ends included."""

    lo: Expr
    """The smallest value."""
    hi: Expr
    """The largest value."""


class DimKind(enum.Enum):
    """How a dim gets its extent."""

    RANGE = "range"
    """Drawn from a..b."""
    CHOICES = "choices"
    """One of a list."""
    FIXED = "fixed"
    """Always the same."""
    DERIVED = "derived"
    """An expression of other variables; it has no level of its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dim:
    """A named symbolic size, in elements."""

    name: str
    """Its name; `...` is a `DimGroup`, never a `Dim`."""
    kind: DimKind
    """How it gets its extent."""
    range: Range | None = None
    """The ends, for RANGE."""
    choices: tuple[int, ...] = ()
    """The extents, for CHOICES; the one extent, for FIXED."""
    derived: Expr | None = None
    """The expression, for DERIVED."""
    multiple_of: Expr | None = None
    """The extent is a multiple of this, for RANGE."""
    tile: tuple[int, ...] = ()
    """Tile sizes whose multiples, and one either side, are edges."""
    line: int = 0
    """1-based line in the schema file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DimGroup:
    """The dim group `...`: a drawn number of leading axes."""

    rank_lo: int
    """The fewest axes."""
    rank_hi: int
    """The most axes."""
    lo: int
    """The smallest extent of each axis."""
    hi: int
    """The largest extent of each axis."""
    line: int = 0
    """1-based line in the schema file."""


class Domain(enum.Enum):
    """The shape of a value domain."""

    ANY = "any"
    """Every finite value of a float dtype; every integer of an integer dtype."""
    CHOICES = "choices"
    """One of a list."""
    RANGE = "range"
    """a..b, perhaps with `also`, `except` and `distinct`."""
    OFFSETS = "offsets"
    """0 ... total, non-decreasing, with bounded steps."""
    PROBABILITIES = "probabilities"
    """Rows >= 0 that sum to 1."""
    NONEMPTY = "nonempty"
    """Boolean rows with a True in each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Values:
    """The domain of an arg's values."""

    domain: Domain = Domain.ANY
    """Its shape."""
    range: Range | None = None
    """The ends, for RANGE; they may name earlier integer args (elementwise bounds)."""
    choices: tuple[ScalarValue, ...] = ()
    """The members, for CHOICES."""
    also: tuple[float | int, ...] = ()
    """Sentinels that are legal beside the range; inf, -inf and nan too."""
    exclude: tuple[float | int, ...] = ()
    """`except`: values that never occur."""
    distinct: str | None = None
    """`distinct`: the dim along which no value repeats; `` (empty) is the last axis."""
    offsets: Expr | None = None
    """The total, for OFFSETS."""
    each: Range | None = None
    """Bounds of each step, for OFFSETS."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Live:
    """Which elements of a tensor mean anything."""

    by_reference: bool = False
    """`live: reference`: those that the reference provably ignores are dead."""
    lengths: tuple[tuple[str, Expr], ...] = ()
    """dim -> number of live leading elements along it (an integer arg or expression)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorArg:
    """A tensor that is generated and may be passed."""

    name: str
    """Its name."""
    shape: tuple[Expr, ...] | None
    """Its trailing dims; None when `make` decides the shape."""
    group: bool = False
    """Whether the shape starts with the dim group `...`."""
    dtype: Expr
    """Its dtype: evaluates to a dtype name."""
    values: Values = field(default_factory=Values)
    """The domain of its values."""
    optional: bool = False
    """Whether None is a level."""
    layouts: Layouts = Layouts.ANY
    """Which layouts it may arrive in."""
    io: Io = Io.IN
    """What the call does to it."""
    live: Live | None = None
    """Which elements mean anything; None: all."""
    broadcast: tuple[str, ...] | bool = False
    """True: any axis may be 1 and leading ones missing; names: only those dims may be 1."""
    make: Call | Expr | None = None
    """How it is computed from dims and earlier args; None: drawn."""
    list_lo: int | None = None
    """`list: a..b`: the fewest tensors; None: a single tensor."""
    list_hi: int | None = None
    """The most tensors of the list."""
    vary: tuple[str, ...] = ()
    """Dims that are drawn anew for each tensor of the list."""
    on_cpu: bool = False
    """`device: cpu`: stays on the host."""
    incoming: str = ""
    """The return whose incoming gradient it is (`gate.schema.gradients`); empty: an arg."""
    line: int = 0
    """1-based line in the schema file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalarArg:
    """A Python value that is drawn and may be passed."""

    name: str
    """Its name."""
    type: str
    """`int`, `float`, `bool`, `str` or `dtype`."""
    values: Values = field(default_factory=Values)
    """CHOICES, RANGE, or ANY (bool: both)."""
    optional: bool = False
    """Whether None is a level."""
    make: Call | Expr | None = None
    """How it is computed; None: drawn."""
    line: int = 0
    """1-based line in the schema file."""


Arg = TensorArg | ScalarArg


class CompareKind(enum.Enum):
    """How a return is compared with the reference."""

    CLOSE = "close"
    """Within the tolerance."""
    EXACT = "exact"
    """The bits of the reference cast to the dtype."""
    PICKS = "picks"
    """An index is right if it picks the same value."""
    MEAN = "mean"
    """Random: judged by its mean, 6 sigma."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Compare:
    """The comparison of one return."""

    kind: CompareKind
    """How."""
    picks: str = ""
    """The arg that an index picks from."""
    axis: Expr | None = None
    """The picked axis (default -1; None value: flattened)."""
    mean: Expr | None = None
    """The expected mean."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DtypeTolerance:
    """A declared tolerance for one working dtype. Exactly one form is set."""

    factor: float | None = None
    """The rounding envelope times this."""
    tf32: bool = False
    """fp32 dots may round operands to TF32."""
    native: bool = False
    """Intermediates may be kept in the working dtype."""
    rtol: float | None = None
    """Relative part of a declared tolerance; set together with `atol` or alone (the other 0)."""
    atol: float | None = None
    """Absolute part of a declared tolerance."""
    why: str = ""
    """The source of the figures."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tolerance:
    """`tolerance:` of an op or a return."""

    default: DtypeTolerance | None = None
    """For every working dtype that `by_dtype` does not name."""
    by_dtype: tuple[tuple[str, DtypeTolerance], ...] = ()
    """working dtype -> tolerance."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Return:
    """One value that comes back."""

    name: str
    """Its name."""
    shape: tuple[Expr, ...] | None = None
    """Its trailing dims; None: as the reference gives it."""
    group: bool = False
    """Whether the shape starts with the dim group `...`."""
    dtype: Expr | None = None
    """Its dtype; None with `is_arg` or `when: false`."""
    compare: Compare | None = None
    """None: `close` for floats, `exact` else."""
    order_any: bool = False
    """Both sides are sorted along the last axis first."""
    given: bool = False
    """The reference receives the kernel's own value under this name."""
    live: Live | None = None
    """The rest is not compared."""
    when: Expr | None = None
    """None is returned otherwise; None here: always returned."""
    never: bool = False
    """`when: false`: always None."""
    is_arg: str = ""
    """`is:` this very arg."""
    tolerance: Tolerance | None = None
    """None: the op's."""
    gradient: str = ""
    """The arg whose gradient it is (`gate.schema.gradients`); empty: a return."""
    line: int = 0
    """1-based line in the schema file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Grad:
    """`grad:` which gradients are checked."""

    args: tuple[str, ...]
    """Args that require gradients."""
    returns: tuple[str, ...] | None = None
    """Through these returns; None: every float return."""
    clobbers: Expr | None = None
    """When the incoming gradient may be overwritten."""
    layouts: Layouts = Layouts.ANY
    """Layouts of the incoming gradients."""


AssignValue = int | float | bool | str | None | tuple[int, ...]
Assignment = tuple[tuple[str, AssignValue], ...]
"""name -> value: dims, dtypes, scalars, `null`, or a fill / layout/fill of a tensor, as written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpSchema:
    """One op: what is called, what goes in, what must come out."""

    op: str
    """Its name, unique in the repository."""
    file: str
    """The schema file, from the repository's root."""
    line: int
    """1-based first line of its document."""
    entry: Call
    """What is run."""
    kernels: tuple[str, ...] = ()
    """Ids or globs as written; empty: the kernel of `entry[grid]`, else all in the entry's file."""
    reference: Call | Expr | None = None
    """The right answer in float64; None only with `properties`."""
    dims: tuple[Dim, ...] = ()
    """In the order of the file."""
    group: DimGroup | None = None
    """The dim group, if there is one."""
    dtypes: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """dtype variable -> dtype names."""
    args: tuple[Arg, ...] = ()
    """In the order of the call."""
    returns: tuple[Return, ...] = ()
    """In the order of the result."""
    where: tuple[Expr, ...] = ()
    """Cases that violate one are never made."""
    grad: Grad | None = None
    """Gradients to check."""
    tolerance: Tolerance = field(default_factory=Tolerance)
    """How far from the reference is right."""
    nonfinite: str = "note"
    """`note`, `strict` or `off`."""
    independent: tuple[str, ...] = ()
    """The op acts on each index of these dims alone."""
    nondeterministic: tuple[str, ...] | bool = False
    """True: every output; names: these returns, or gradients of these args."""
    raises: tuple[tuple[str, tuple[Expr, ...]], ...] = ()
    """error class name -> conditions, any of which must raise it."""
    properties: tuple[Expr, ...] = ()
    """What must hold besides, or instead of, the reference."""
    benchmark: Assignment = ()
    """The one point that a benchmark would test, as written (perhaps partial)."""
    cases: tuple[Assignment | str, ...] = ()
    """Points that every plan contains: partial assignments or case texts."""
    digest: str = ""
    """SHA-256 of the document's text."""

    def arg(self, name: str) -> Arg:
        """Return the arg of that name; KeyError if there is none."""
        return {arg.name: arg for arg in self.args}[name]

    @property
    def arg_lines(self) -> Mapping[str, int]:
        """arg name -> 1-based line."""
        return {arg.name: arg.line for arg in self.args}
