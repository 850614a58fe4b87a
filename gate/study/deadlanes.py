"""Whether what masked lanes of a load hold can matter: a proof on the source of a kernel.

A lane of a block meets other lanes in few operations: reductions, products, scans, shuffles. Where
a loaded value goes through none of them, and every store that it reaches leaves out the lanes that
the load leaves out, no result depends on what those lanes hold (`other`).
"""

from __future__ import annotations

import ast
import enum
from collections import Counter
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
_SIMPLE = (ast.Assign, ast.AugAssign, ast.Expr, ast.If)
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

    False, too, where this proof does not reach: masks that hold calls, values that outlive an
    iteration, branches, calls that are not known.
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
    region = next((body for body in _bodies(function) if _place(body, load) is not None), None)
    if mask is None or region is None or any(isinstance(n, ast.Call) for n in ast.walk(mask)):
        return False
    rest = region[_place(region, load) :]
    parts = {node.id for node in ast.walk(mask) if isinstance(node, ast.Name)}
    if any(node.id in parts for statement in rest for node in _names(statement, ast.Store)):
        return False
    flow = _Flow(
        load=load, mask=_conjuncts(mask, {}), functions=functions, tainted={},
        masks=_settled_masks(function), once=region is function.body,
    )  # fmt: skip
    if not all(flow.follow(statement) for statement in rest):
        return False
    return flow.once or _stays(function, region, flow.tainted, load)


def _bodies(function: ast.FunctionDef) -> Iterator[list[ast.stmt]]:
    """The function's statements, and those of each loop."""
    yield function.body
    yield from (node.body for node in ast.walk(function) if isinstance(node, ast.For | ast.While))


def _place(body: Sequence[ast.stmt], load: ast.Call) -> int | None:
    """Which statement of a body holds the load, in no loop of its own."""
    return next(
        (
            n
            for n, statement in enumerate(body)
            if isinstance(statement, _SIMPLE) and load in ast.walk(statement)
        ),
        None,
    )


def _stays(
    function: ast.FunctionDef,
    region: Sequence[ast.stmt],
    tainted: Mapping[str, ast.stmt],
    load: ast.Call,
) -> bool:
    """Whether every read of a tainted name comes after the statement that taints it, in the same
    run through the region, or sees what another statement has assigned since."""
    after: dict[str, set[ast.AST]] = {}
    for name, first in tainted.items():
        later = region[list(region).index(first) + 1 :]
        after[name] = {node for statement in later for node in ast.walk(statement)}
    added = [
        node.target
        for node in ast.walk(function)
        if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name)
    ]
    return all(
        node in after[node.id] or _fresh(function, node, load)
        for node in (*_names(function, ast.Load), *added)
        if node.id in tainted
    )


def _fresh(function: ast.FunctionDef, read: ast.Name, load: ast.Call) -> bool:
    """Whether a name was assigned earlier in the same body, and the load is not between."""
    for body in _bodies(function):
        place = next((n for n, s in enumerate(body) if read in ast.walk(s)), 0)
        for start in reversed(range(place)):
            match body[start]:
                case ast.Assign(targets=[ast.Name(id=name)]) if name == read.id:
                    between = body[start : place + 1]
                    return not any(load in ast.walk(statement) for statement in between)
                case _:
                    continue
    return False


@dataclass(frozen=True, slots=True, kw_only=True)
class _Flow:
    """Follows what a load brings from one statement to the next."""

    load: ast.Call
    mask: frozenset[str]
    """What has to hold in a lane for the load to read it, part by part."""
    functions: Mapping[str, ast.FunctionDef]
    masks: Mapping[str, ast.expr]
    """Name of a mask that is assigned once -> what it is."""
    once: bool
    """Whether the statements run once, from the first to the last."""
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
            case ast.If(test=test, body=body, orelse=others) if self.once:
                clean = self.taint(test) is _Taint.NONE
                return clean and all(self.follow(inner) for inner in (*body, *others))
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
            and self.mask <= _conjuncts(held, self.masks)
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
        if name == "tl.where" and len(parts) == 3 and self.mask <= _conjuncts(parts[0], self.masks):
            kept = max(self.taint(parts[0]), self.taint(parts[1]))
            return _Taint.ANY if kept is _Taint.ANY else self.taint(parts[2])
        if name == "tl.load":
            held = _word(call, "mask")
            inside = held is not None and self.mask <= _conjuncts(held, self.masks)
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
            self,
            functions={},
            mask=frozenset({""}),
            tainted={arg.arg: helper for arg in helper.args.args},
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


def _names(tree: ast.AST, context: type[ast.Load] | type[ast.Store]) -> Iterator[ast.Name]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, context):
            yield node


def _conjuncts(node: ast.expr, masks: Mapping[str, ast.expr]) -> frozenset[str]:
    """Texts of conditions that all have to hold for a mask to hold.

    masks  names that stand for a mask, and what they are
    """
    parts = frozenset({ast.unparse(node)})
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitAnd):
        return _conjuncts(node.left, masks) | _conjuncts(node.right, masks)
    if isinstance(node, ast.Name) and node.id in masks:
        return parts | _conjuncts(masks[node.id], masks)
    return parts


def _settled_masks(function: ast.FunctionDef) -> dict[str, ast.expr]:
    """Names that are assigned once, without a call, from names that are assigned once at most."""
    count = Counter(node.id for node in _names(function, ast.Store))
    return {
        node.targets[0].id: node.value
        for node in ast.walk(function)
        if isinstance(node, ast.Assign)
        and isinstance(node.targets[0], ast.Name)
        and isinstance(node.value, ast.BinOp | ast.Compare)
        and count[node.targets[0].id] == 1
        and not any(isinstance(inner, ast.Call) for inner in ast.walk(node.value))
        and all(count[inner.id] <= 1 for inner in _names(node.value, ast.Load))
    }


def _word(call: ast.Call, name: str) -> ast.expr | None:
    return next((word.value for word in call.keywords if word.arg == name), None)


def _name(call: ast.Call) -> str:
    return ast.unparse(call.func)
