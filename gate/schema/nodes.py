"""The closed expression tree, and the types of what a schema writes as Python.

An expression is parsed once (`gate.schema.parse`) into the nodes below and never handed to `eval`.
Whatever is not a node here cannot be said.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from typing import Any, Protocol


class Level(enum.IntEnum):
    """How much of the language a place allows. Each level contains the ones before it."""

    PURE = 0
    """Numbers, names, arithmetic and the common functions: dims, bounds, `where`, dtypes."""
    CALL = 1
    """Also lists, tuples, `dict(k=v)`, `tuple(xs)`, `tl_dtype(T)`, `device`: call arguments."""
    TORCH = 2
    """Also `torch.*`, `F.*`, tensor methods, slices, `@ & | ^ ~ << >>`: `reference`, `make`."""
    PROPERTY = 3
    """Also `close`, `equal` and `op`: `properties`."""


class Host(Protocol):
    """What the expression language asks of a process that has torch."""

    def resolve(self, name: str) -> Any:
        """Return what a host name stands for.

        name  `torch.softmax`, `torch.float32`, `F.silu`, `device`, `tl_dtype` (a function of a
              torch dtype), and in properties `close`, `equal`, `op` (functions).

        Only names of the allow-list of `gate.schema.torchnames` and those above are asked for.
        """


class DtypeName(str):
    """A dtype as a value of the expression language: a dtype variable's or a dtype arg's value.

    Without a host it is the dtype's name; with one it stands for the torch dtype of that name. An
    environment must hold dtype variables and dtype args as `DtypeName` (or as torch dtypes),
    since a plain str is a string.
    """

    __slots__ = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Const:
    """A number, a string, True, False or None."""

    value: int | float | str | bool | None
    """Its value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Name:
    """A variable: a dim, a dtype variable, an arg or a return."""

    id: str
    """Its name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DtypeLiteral:
    """A dtype by its name, such as `float32`."""

    name: str
    """dtype name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostName:
    """A name that the host resolves: `torch.softmax`, `F.silu`, `device`, `close`."""

    path: str
    """The dotted name; `torch.nn.functional.*` is written `F.*`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unary:
    """`-x`, `+x`, `~x`, `not x`."""

    op: str
    """`-`, `+`, `~` or `not`."""
    operand: Node
    """What it is applied to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Binary:
    """An arithmetic, matrix or bit operation."""

    op: str
    """`+ - * / // % ** @ & | ^ << >>`."""
    left: Node
    """Left operand."""
    right: Node
    """Right operand."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Logic:
    """`a and b and c`, `a or b`; stops at the first operand that decides."""

    op: str
    """`and` or `or`."""
    operands: tuple[Node, ...]
    """Two or more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Compare:
    """A chain of comparisons."""

    first: Node
    """The leftmost operand."""
    rest: tuple[tuple[str, Node], ...]
    """(`== != < <= > >=`, operand), left to right."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """`x in [a, b]`, `x not in [a, b]`."""

    value: Node
    """What is looked for."""
    options: tuple[Node, ...]
    """Where."""
    negated: bool
    """Whether it is `not in`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IsNone:
    """`x is None`, `x is not None`."""

    value: Node
    """What is asked about."""
    negated: bool
    """Whether it is `is not`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """`a if c else b`."""

    test: Node
    """c."""
    then: Node
    """a."""
    other: Node
    """b."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dots:
    """`...` inside a subscript."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Slice:
    """`lo:hi:step` inside a subscript."""

    lo: Node | None
    """Start."""
    hi: Node | None
    """End, not included."""
    step: Node | None
    """Step."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Index:
    """`x[i]`."""

    value: Node
    """x."""
    index: Node
    """i."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sequence:
    """A list or a tuple."""

    items: tuple[Node, ...]
    """Its members."""
    is_list: bool
    """Whether it is a list."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Apply:
    """A function of the language: `cdiv(M, 2)`, `dict(k=v)`."""

    function: str
    """Its name, a key of `gate.schema.names.FUNCTIONS`."""
    args: tuple[Node, ...]
    """Positional arguments."""
    kwargs: tuple[tuple[str, Node], ...] = ()
    """Keyword arguments (`dict` only)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostCall:
    """A call of something that the host resolves: `torch.softmax(x, dim=-1)`, `close(a, b)`."""

    function: HostName
    """What is called."""
    args: tuple[Node, ...]
    """Positional arguments."""
    kwargs: tuple[tuple[str, Node], ...]
    """Keyword arguments."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attribute:
    """`x.shape`, `x.T`, `torch.sort(x).values`."""

    value: Node
    """x."""
    name: str
    """A name of the allow-list."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Method:
    """`x.stride(0)`, `x.sum(-1)`."""

    value: Node
    """x."""
    name: str
    """A name of the allow-list."""
    args: tuple[Node, ...]
    """Positional arguments."""
    kwargs: tuple[tuple[str, Node], ...]
    """Keyword arguments."""


Node = (
    Const | Name | DtypeLiteral | HostName | Unary | Binary | Logic | Compare | Member | IsNone
    | Choice | Dots | Slice | Index | Sequence | Apply | HostCall | Attribute | Method
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Expr:
    """A parsed expression. Equal texts are equal expressions."""

    text: str
    """As written."""
    names: frozenset[str]
    """Free variables: not functions, not dtypes, not torch, F or device."""
    line: int = field(default=0, compare=False)
    """1-based line in the schema file."""
    node: Node = field(default_factory=lambda: Const(value=None), compare=False, repr=False)
    """The tree."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """What a call names: `path.py::name` or `dotted.module::name`."""

    module: str
    """A path from the repository's root that ends in `.py`, or a dotted module."""
    name: str
    """`fn`, `Class.method` or `Class.apply`."""

    @property
    def is_path(self) -> bool:
        """Whether `module` is a path."""
        return self.module.endswith(".py")

    def __str__(self) -> str:
        return f"{self.module}::{self.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """`target::name[grid](args)`. Equal texts are equal calls."""

    text: str
    """As written, folded into one line."""
    target: Target
    """What is called."""
    grid: Expr | None = None
    """The launch grid of a raw kernel; None: an ordinary callable."""
    args: tuple[Expr, ...] | None = None
    """Positional arguments; None: no parentheses, so all args by position, in order."""
    kwargs: tuple[tuple[str, Expr], ...] = ()
    """Keyword arguments."""
    names: frozenset[str] = frozenset()
    """Free variables of grid and arguments (empty when there are no parentheses)."""
    line: int = field(default=0, compare=False)
    """1-based line in the schema file."""
