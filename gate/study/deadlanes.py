"""Whether what masked lanes of a load hold can matter: a proof on the source of a kernel.

A lane of a block meets other lanes in few operations: reductions, products, scans, shuffles. Where
a loaded value goes through none of them, and every store that it reaches leaves out the lanes that
the load leaves out, no result depends on what those lanes hold (`other`).
"""

from __future__ import annotations

import ast
import enum
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from gate.study.operators import Mutant, is_jit

LANEWISE = frozenset(
    f"tl.{name}"
    for name in (
        "exp", "exp2", "log", "log2", "sqrt", "sqrt_rn", "rsqrt", "abs", "sigmoid", "erf", "sin",
        "cos", "where", "maximum", "minimum", "fma", "floor", "ceil", "clamp", "div_rn", "cast",
    )
)  # fmt: skip
"""Functions whose result in a lane depends on that lane of their arguments alone."""
_STORES = frozenset({"tl.store", "tl.atomic_add", "tl.atomic_max", "tl.atomic_min"})


class _Taint(enum.IntEnum):
    """What the masked lanes of a load do to a value."""

    NONE = 0
    """Nothing."""
    LANES = 1
    """They decide the same lanes of it."""
    ANY = 2
    """They may decide every lane of it."""


def lanes_are_dead(source: str, mutant: Mutant) -> bool:
    """Return whether no store depends on what the masked lanes of the mutant's load hold.

    False, too, where this proof does not reach: masks that are no plain name, values that outlive
    an iteration, branches, calls that are not known.
    """
    tree = ast.parse(source)
    functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    spots = [
        (function, node)
        for function in functions.values()
        if is_jit(function)
        for node in ast.walk(function)
        if isinstance(node, ast.Call)
        and node.lineno == mutant.line
        and ast.unparse(node) == mutant.before
    ]
    return bool(spots) and all(_dead(function, call, functions) for function, call in spots)


def _dead(
    function: ast.FunctionDef, load: ast.Call, functions: Mapping[str, ast.FunctionDef]
) -> bool:
    mask = _word(load, "mask")
    if not isinstance(mask, ast.Name):
        return False
    set_at = [node.lineno for node in _names(function, ast.Store) if node.id == mask.id]
    if len(set_at) != 1 or set_at[0] >= load.lineno:
        return False
    region = next((body for body in _bodies(function) if _place(body, load) is not None), None)
    if region is None:
        return False
    start = _place(region, load)
    flow = _Flow(load=load, mask=mask.id, functions=functions, tainted={})
    if not all(flow.follow(statement) for statement in region[start:]):
        return False
    return _stays(function, region, flow.tainted)


def _bodies(function: ast.FunctionDef) -> Iterator[list[ast.stmt]]:
    """The function's statements, and those of each loop."""
    yield function.body
    yield from (node.body for node in ast.walk(function) if isinstance(node, ast.For | ast.While))


def _place(body: Sequence[ast.stmt], load: ast.Call) -> int | None:
    """Which simple statement of a body holds the load itself."""
    return next(
        (
            n
            for n, statement in enumerate(body)
            if isinstance(statement, ast.Assign | ast.Expr) and load in ast.walk(statement)
        ),
        None,
    )


def _stays(
    function: ast.FunctionDef, region: Sequence[ast.stmt], tainted: Mapping[str, ast.stmt]
) -> bool:
    """Whether every read of a tainted name comes after the statement that taints it, in the same
    run through the region."""
    after: dict[str, set[ast.AST]] = {}
    for name, first in tainted.items():
        later = region[list(region).index(first) + 1 :]
        after[name] = {node for statement in later for node in ast.walk(statement)}
    return all(
        node in after[node.id] for node in _names(function, ast.Load) if node.id in tainted
    ) and not any(
        isinstance(node, ast.AugAssign)
        and isinstance(node.target, ast.Name)
        and node.target.id in tainted
        and node not in after[node.target.id]
        for node in ast.walk(function)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Flow:
    """Follows what a load brings from one statement to the next."""

    load: ast.Call
    mask: str
    functions: Mapping[str, ast.FunctionDef]
    tainted: dict[str, ast.stmt]
    """Name -> the first statement that taints it; grows."""

    def follow(self, statement: ast.stmt) -> bool:
        """Take one statement in; return whether the proof goes on."""
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                return self._assign(name, self.taint(value), statement)
            case ast.AugAssign(target=ast.Name(id=name), value=value):
                return self._assign(name, self.taint(value), statement)
            case ast.Expr(value=ast.Call() as call) if self._reads(statement):
                return self._left_out(call)
            case _:
                return not self._reads(statement)

    def _assign(self, name: str, taint: _Taint, statement: ast.stmt) -> bool:
        if taint is _Taint.LANES:
            self.tainted.setdefault(name, statement)
        return taint is not _Taint.ANY

    def _reads(self, node: ast.AST) -> bool:
        """Whether the load or a tainted name is below a node, read or written."""
        return any(
            inner is self.load or (isinstance(inner, ast.Name) and inner.id in self.tainted)
            for inner in ast.walk(node)
        )

    def _left_out(self, store: ast.Call) -> bool:
        """Whether a store leaves out the lanes that the mask leaves out."""
        held = _word(store, "mask")
        values = [*store.args[1:], *(w.value for w in store.keywords if w.arg != "mask")]
        return (
            _name(store) in _STORES
            and held is not None
            and self.mask in _conjuncts(held)
            and self.taint(held) is _Taint.NONE
            and all(self.taint(value) is not _Taint.ANY for value in (store.args[0], *values))
        )

    def taint(self, node: ast.expr) -> _Taint:
        """Return what the masked lanes do to an expression."""
        if not self._reads(node):
            return _Taint.NONE
        match node:
            case ast.Call() if node is self.load:
                return _Taint.LANES
            case ast.Name():
                return _Taint.LANES
            case ast.BinOp(left=left, right=right):
                return max(self.taint(left), self.taint(right))
            case ast.UnaryOp(operand=operand):
                return self.taint(operand)
            case ast.Compare(left=left, comparators=others):
                return max(self.taint(part) for part in (left, *others))
            case ast.Call():
                return self._call(node)
            case _:
                return self._mixed(c for c in ast.iter_child_nodes(node) if isinstance(c, ast.expr))

    def _mixed(self, parts: Iterable[ast.expr]) -> _Taint:
        """Return what masked lanes do to an expression in which any lane may meet any other."""
        clean = all(self.taint(part) is _Taint.NONE for part in parts)
        return _Taint.NONE if clean else _Taint.ANY

    def _call(self, call: ast.Call) -> _Taint:
        name = _name(call)
        parts = [*call.args, *(word.value for word in call.keywords)]
        if name == "tl.where" and len(parts) == 3 and self.mask in _conjuncts(parts[0]):
            kept = max(self.taint(parts[0]), self.taint(parts[1]))
            return _Taint.ANY if kept is _Taint.ANY else self.taint(parts[2])
        if name == "tl.load":
            held = _word(call, "mask")
            inside = held is not None and self.mask in _conjuncts(held)
            if not inside or held is None or self.taint(held) is not _Taint.NONE:
                return self._mixed(parts)
        elif isinstance(call.func, ast.Attribute) and call.func.attr == "to":
            parts.append(call.func.value)
        elif name not in LANEWISE and not self._helper(name):
            return self._mixed(parts)
        return max((self.taint(part) for part in parts), default=_Taint.NONE)

    def _helper(self, name: str) -> bool:
        """Whether a name is a helper: straight-line lanewise code on its parameters."""
        helper = self.functions.get(name)
        if helper is None:
            return False
        inner = replace(
            self, functions={}, mask="", tainted={arg.arg: helper for arg in helper.args.args}
        )
        for statement in helper.body:
            match statement:
                case ast.Return(value=ast.expr() as value):
                    if inner.taint(value) is _Taint.ANY:
                        return False
                case ast.Assign(targets=[ast.Name()]) | ast.Expr(value=ast.Constant()):
                    if not inner.follow(statement):
                        return False
                case _:
                    return False
        return True


def _names(
    function: ast.FunctionDef, context: type[ast.Load] | type[ast.Store]
) -> Iterator[ast.Name]:
    for node in ast.walk(function):
        if isinstance(node, ast.Name) and isinstance(node.ctx, context):
            yield node


def _conjuncts(node: ast.expr) -> set[str]:
    """Names that all have to hold for a mask to hold."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitAnd):
        return _conjuncts(node.left) | _conjuncts(node.right)
    return {node.id} if isinstance(node, ast.Name) else set()


def _word(call: ast.Call, name: str) -> ast.expr | None:
    return next((word.value for word in call.keywords if word.arg == name), None)


def _name(call: ast.Call) -> str:
    return ast.unparse(call.func)
