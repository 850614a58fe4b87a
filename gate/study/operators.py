"""Mutation operators on the source of Triton kernels: small mistakes that people make.

An operator looks at one node of a jit function's syntax tree and offers texts to put in its place.
Only the text of that node changes, so that line numbers stay.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from types import MappingProxyType

MEMORY = ("load", "store", "atomic_add", "atomic_max", "atomic_min")
"""Calls of `tl` that take a mask."""
_ANOTHER = {"0.0": "1.0", "0": "1", "1": "0"}
"""Another value for `other`; 0.0 in place of everything else, such as -inf."""
_INDEX_WORDS = ("stride", "block", "pid", "arange", "program_id", "cdiv", "start", "group")
"""Words that mark an expression as index arithmetic."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """A file with one mistake in it."""

    operator: str
    """Which kind of mistake."""
    line: int
    """1-based line of the mistake."""
    before: str
    """The text that was replaced."""
    after: str
    """The text in its place."""
    source: str
    """The whole file."""

    @property
    def change(self) -> str:
        """The mistake as `before -> after`, on one line."""
        return " ".join(f"{self.before} -> {self.after}".split())


Offer = Callable[[ast.AST], Iterator[str]]
"""node -> texts to put in its place."""


def mutants_of(source: str) -> tuple[Mutant, ...]:
    """Return every mutant of the jit functions in a file, in order of the text.

    Mutants with equal text count once, under the first operator that makes them.

    Raises
        SyntaxError  the source is not Python
    """
    tree = ast.parse(source)
    spots = _Spots(source)
    found: dict[str, Mutant] = {}
    for function in tree.body:
        if not isinstance(function, ast.FunctionDef) or not is_jit(function):
            continue
        for statement in function.body:
            for node in ast.walk(statement):
                for operator, offer in OPERATORS.items():
                    for after in offer(node):
                        made = spots.replaced(node, after, operator)
                        found.setdefault(made.source, made)
        for made in _swapped_strides(function, spots):
            found.setdefault(made.source, made)
    return tuple(sorted(found.values(), key=lambda m: (m.line, m.operator, m.after)))


def is_jit(function: ast.FunctionDef) -> bool:
    """Return whether a function is a kernel or a helper of kernels."""
    return any(ast.unparse(mark).split("(")[0] == "triton.jit" for mark in function.decorator_list)


class _Spots:
    """Turns nodes into places of the text."""

    def __init__(self, source: str) -> None:
        self.source = source
        self._raw = source.encode("utf-8")
        self._starts = [0]
        for line in self._raw.splitlines(keepends=True):
            self._starts.append(self._starts[-1] + len(line))

    def span(self, node: ast.AST) -> tuple[int, int]:
        """Byte offsets of a node that has a place: an expression or a statement."""
        assert isinstance(node, ast.expr | ast.stmt)
        assert node.end_lineno is not None and node.end_col_offset is not None
        first = self._starts[node.lineno - 1] + node.col_offset
        return first, self._starts[node.end_lineno - 1] + node.end_col_offset

    def replaced(self, node: ast.AST, after: str, operator: str) -> Mutant:
        """Put a text in the place of a node, in parentheses where an operator might catch it."""
        first, last = self.span(node)
        bare = isinstance(node, ast.stmt) or after.isidentifier()
        return self._edited([(first, last, after if bare else f"({after})")], node, operator, after)

    def renamed(self, nodes: list[tuple[ast.Name, str]], operator: str, change: str) -> Mutant:
        """Give names another text, all at once."""
        nodes = sorted(nodes, key=lambda pair: self.span(pair[0]))
        edits = [(*self.span(node), name) for node, name in nodes]
        return self._edited(edits, nodes[0][0], operator, change)

    def _edited(
        self, edits: list[tuple[int, int, str]], node: ast.AST, operator: str, after: str
    ) -> Mutant:
        raw = self._raw
        for first, last, text in sorted(edits, reverse=True):
            raw = raw[:first] + text.encode("utf-8") + raw[last:]
        before = ast.unparse(node)
        line = getattr(node, "lineno", 0)
        return Mutant(
            operator=operator, line=line, before=before, after=after, source=raw.decode("utf-8")
        )


# --- the operators ------------------------------------------------------------------------------


def _memory_call(node: ast.AST) -> ast.Call | None:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return node if node.func.attr in MEMORY and ast.unparse(node.func.value) == "tl" else None
    return None


def _without(call: ast.Call, *dropped: str) -> str:
    kept = [word for word in call.keywords if word.arg not in dropped]
    return ast.unparse(ast.Call(func=call.func, args=call.args, keywords=kept))


def _with(call: ast.Call, name: str, text: str) -> str:
    value = ast.parse(text, mode="eval").body
    words = [ast.keyword(arg=w.arg, value=value) if w.arg == name else w for w in call.keywords]
    return ast.unparse(ast.Call(func=call.func, args=call.args, keywords=words))


def _keyword(call: ast.Call, name: str) -> str | None:
    return next((ast.unparse(word.value) for word in call.keywords if word.arg == name), None)


def _mask_dropped(node: ast.AST) -> Iterator[str]:
    call = _memory_call(node)
    if call is not None and _keyword(call, "mask") is not None:
        yield _without(call, "mask", "other")


def _other_changed(node: ast.AST) -> Iterator[str]:
    call = _memory_call(node)
    other = _keyword(call, "other") if call is not None else None
    if call is None or other is None:
        return
    yield _without(call, "other")
    yield _with(call, "other", _ANOTHER.get(other, "0.0"))


def _comparison(node: ast.AST) -> Iterator[str]:
    if not isinstance(node, ast.Compare) or len(node.ops) != 1:
        return
    left, right = ast.unparse(node.left), ast.unparse(node.comparators[0])
    match node.ops[0]:
        case ast.Lt():
            yield f"{left} <= {right}"
            if "." not in right and not isinstance(node.comparators[0], ast.Constant):
                yield f"{left} < {right} - 1"
        case ast.Gt():
            yield f"{left} >= {right}"
        case ast.LtE():
            yield f"{left} < {right}"
        case ast.GtE():
            yield f"{left} > {right}"
        case _:
            return


def _overwritten(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add):
        yield f"{ast.unparse(node.target)} = {ast.unparse(node.value)}"
    if not isinstance(node, ast.Assign) or len(node.targets) != 1:
        return
    target, value = ast.unparse(node.targets[0]), node.value
    if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Add):
        if target in _names(value.left):
            yield f"{target} = {ast.unparse(value.right)}"
    elif isinstance(value, ast.Call) and _calls(value, "tl.dot") and len(value.args) == 3:
        bare = ast.Call(func=value.func, args=value.args[:2], keywords=value.keywords)
        yield f"{target} = {ast.unparse(bare)}"


def _calls(node: ast.Call, *names: str) -> bool:
    return ast.unparse(node.func) in names


def _names(node: ast.AST) -> set[str]:
    return {inner.id for inner in ast.walk(node) if isinstance(inner, ast.Name)}


def _is_index(node: ast.AST) -> bool:
    text = ast.unparse(node).lower()
    return any(word in text for word in _INDEX_WORDS) or "_ptr" in text


def _factor_dropped(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult | ast.Div | ast.Sub):
        if not _is_index(node) and not isinstance(node.left, ast.Constant):
            yield ast.unparse(node.left)
        if isinstance(node.op, ast.Mult) and isinstance(node.left, ast.Constant):
            yield ast.unparse(node.right)


def _eps_dropped(node: ast.AST) -> Iterator[str]:
    if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Add):
        return
    if "eps" in ast.unparse(node.right):
        yield ast.unparse(node.left)


def _cast_dropped(node: ast.AST) -> Iterator[str]:
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return
    if node.func.attr == "to" and len(node.args) == 1:
        yield ast.unparse(node.func.value)


def _stride_one(node: ast.AST) -> Iterator[str]:
    if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Mult):
        return
    if isinstance(node.right, ast.Name) and "stride" in node.right.id:
        yield ast.unparse(node.left)


def _program_id(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Call) and _calls(node, "tl.program_id"):
        yield "tl.program_id(1)" if ast.unparse(node.args[0]) == "0" else "tl.program_id(0)"
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.FloorDiv | ast.Mod):
        sign = "%" if isinstance(node.op, ast.FloorDiv) else "//"
        yield f"{ast.unparse(node.left)} {sign} {ast.unparse(node.right)}"


def _accumulator(node: ast.AST) -> Iterator[str]:
    if not isinstance(node, ast.Call) or not _calls(node, "tl.zeros", "tl.full"):
        return
    if _keyword(node, "dtype") == "tl.float32":
        yield _with(node, "dtype", "tl.float16")


def _loop_bound(node: ast.AST) -> Iterator[str]:
    if not isinstance(node, ast.Call) or not _calls(node, "range") or len(node.args) < 2:
        return
    first, last, *step = (ast.unparse(arg) for arg in node.args)
    width = step[0] if step else "1"
    tail = f", {width}" if step else ""
    yield f"range({first}, {last} - {width}{tail})"
    yield f"range({first} + {width}, {last}{tail})"


def _reduction(node: ast.AST) -> Iterator[str]:
    swaps = {"tl.max": "tl.min", "tl.min": "tl.max", "tl.maximum": "tl.minimum"}
    if isinstance(node, ast.Call) and _calls(node, *swaps):
        words = ", ".join(ast.unparse(arg) for arg in (*node.args, *node.keywords))
        yield f"{swaps[ast.unparse(node.func)]}({words})"


def _precision(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Call) and _keyword(node, "input_precision") is not None:
        yield _without(node, "input_precision")


OPERATORS: Mapping[str, Offer] = MappingProxyType(
    {
        "mask dropped": _mask_dropped,
        "other changed": _other_changed,
        "comparison": _comparison,
        "accumulator overwritten": _overwritten,
        "eps dropped": _eps_dropped,
        "stride set to 1": _stride_one,
        "factor dropped": _factor_dropped,
        "cast dropped": _cast_dropped,
        "program id": _program_id,
        "accumulator dtype": _accumulator,
        "loop bound": _loop_bound,
        "reduction": _reduction,
        "precision": _precision,
    }
)
"""Operator -> what it offers; `strides swapped` stands apart, since it changes two names."""
SWAPPED = "strides swapped"
"""The operator that exchanges two strides of one tensor."""


def _swapped_strides(function: ast.FunctionDef, spots: _Spots) -> Iterator[Mutant]:
    strides = [arg.arg for arg in function.args.args if "stride" in arg.arg]
    uses = [
        node
        for statement in function.body
        for node in ast.walk(statement)
        if isinstance(node, ast.Name)
    ]
    for one, other in pairwise(strides):
        if one[:-1] != other[:-1]:
            continue
        swap = {one: other, other: one}
        nodes = [(node, swap[node.id]) for node in uses if node.id in swap]
        if {node.id for node, _ in nodes} == {one, other}:
            yield spots.renamed(nodes, SWAPPED, f"{other} and {one} exchanged")
