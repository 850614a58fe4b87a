"""What the checks of an op schema share: the op, its document, and a way to say what is wrong."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from gate.errors import did_you_mean
from gate.schema import nodes as n
from gate.schema.expr import Call, Expr
from gate.schema.model import Arg, OpSchema, ScalarArg, TensorArg
from gate.schema.nodes import Node
from gate.schema.reader import Reader
from gate.schema.yamldoc import YList, YMap, YNode

Part = str | int
"""A key, or a position in a list."""


@dataclass(slots=True)
class Context:
    """One op under check."""

    reader: Reader
    """Where problems go."""
    schema: OpSchema
    """The op."""
    document: YNode
    """Its document, for lines."""
    used: set[str] = field(default_factory=set)
    """Names that something uses."""
    unreadable: bool = False
    """Whether a part that declares names cannot be read: then no name is called unknown."""

    def bad(self, parts: tuple[Part, ...], what: str) -> None:
        """Note a problem at a key; its line is that of the deepest part that is there.

        A position in what is written as the one value that stands for a list is left out.
        """
        written = tuple(p for i, p in enumerate(parts) if p != 0 or self._is_list(parts[:i]))
        self.reader.bad(line_of(self.document, written), json_path(written), what)

    def _is_list(self, parts: tuple[Part, ...]) -> bool:
        node: YNode | None = self.document
        for part in parts:
            if not isinstance(node, YMap) or not isinstance(part, str):
                return True
            node = node.get(part)
        return node is None or isinstance(node, YList)

    def among(
        self, names: Iterable[str], known: Iterable[str], at: tuple[Part, ...], what: str
    ) -> None:
        """Note each name that is not one of `known`."""
        allowed = list(known)
        for name in names:
            if name not in allowed:
                self.bad(at, f"{name} is not {what}{did_you_mean(name, allowed)}")

    def troubled(self, name: str) -> bool:
        """Whether a problem is known of a name's own declaration."""
        starts = tuple(json_path((kind, name)) for kind in ("dims", "dtypes", "args"))
        return any(
            problem.path in starts
            or problem.path.startswith(tuple(f"{s}{c}" for s in starts for c in ".["))
            for problem in self.reader.problems
        )

    @property
    def args(self) -> dict[str, Arg]:
        """arg name -> arg."""
        return {arg.name: arg for arg in self.schema.args}

    @property
    def tensors(self) -> dict[str, TensorArg]:
        """arg name -> tensor arg."""
        return {arg.name: arg for arg in self.schema.args if isinstance(arg, TensorArg)}

    @property
    def scalars(self) -> dict[str, ScalarArg]:
        """arg name -> scalar arg."""
        return {arg.name: arg for arg in self.schema.args if isinstance(arg, ScalarArg)}

    @property
    def dtype_options(self) -> dict[str, tuple[str, ...]]:
        """dtype variable -> dtypes."""
        return dict(self.schema.dtypes)


def json_path(parts: Iterable[Part]) -> str:
    """Return the JSON path of a key.

    >>> json_path(("dims", "...", "rank")), json_path(("where", 0))
    ('$.dims["..."].rank', '$.where[0]')
    """
    text = "$"
    for part in parts:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            text += f'["{part}"]' if part == "..." else f".{part}"
    return text


def line_of(document: YNode, parts: Iterable[Part]) -> int:
    """Return the 1-based line of a key, or of the deepest part of it that is there."""
    node: YNode | None = document
    line = document.line
    for part in parts:
        if isinstance(node, YMap) and isinstance(part, str) and node.get(part) is not None:
            line, node = node.line_of(part), node.get(part)
        elif isinstance(node, YList) and isinstance(part, int) and part < len(node.items):
            node = node.items[part]
            line = node.line
        else:
            break
    return line


def below(node: Node) -> Iterator[Node]:
    """Yield the nodes right below a node of the expression tree."""
    match node:
        case n.Unary():
            yield node.operand
        case n.Binary():
            yield from (node.left, node.right)
        case n.Logic():
            yield from node.operands
        case n.Compare():
            yield node.first
            yield from (right for _, right in node.rest)
        case n.Member():
            yield from (node.value, *node.options)
        case n.IsNone() | n.Attribute():
            yield node.value
        case n.Choice():
            yield from (node.test, node.then, node.other)
        case n.Slice():
            yield from (end for end in (node.lo, node.hi, node.step) if end is not None)
        case n.Index():
            yield from (node.value, node.index)
        case n.Sequence():
            yield from node.items
        case n.Apply() | n.HostCall():
            yield from (*node.args, *(value for _, value in node.kwargs))
        case n.Method():
            yield from (node.value, *node.args, *(value for _, value in node.kwargs))
        case n.Const() | n.Name() | n.DtypeLiteral() | n.HostName() | n.Dots():
            return


def walk(node: Node) -> Iterator[Node]:
    """Yield a node and everything below it."""
    yield node
    for child in below(node):
        yield from walk(child)


def read_names(node: Node, *, facts: bool = False) -> set[str]:
    """Return the variables whose value an expression reads.

    `x is None` reads nothing of x. With `facts`, neither do `.shape`, `.dtype`, `.ndim`,
    `.stride()`, `.numel()` and `.is_contiguous()`: they ask how x lies, not what it holds.
    """
    match node:
        case n.IsNone(value=n.Name()):
            return set()
        case n.Attribute(value=n.Name(), name="shape" | "ndim" | "dtype") if facts:
            return set()
        case n.Method(value=n.Name(), name="stride" | "numel" | "is_contiguous") if facts:
            return set().union(*(read_names(arg, facts=facts) for arg in node.args))
        case n.Name():
            return {node.id}
    return set().union(*(read_names(child, facts=facts) for child in below(node)))


def parts_of(rule: Call | Expr | None) -> tuple[Expr, ...]:
    """Return the expressions of a call (its arguments), or the expression itself."""
    if rule is None:
        return ()
    if isinstance(rule, Expr):
        return (rule,)
    return (*(rule.args or ()), *(expr for _, expr in rule.kwargs))
