"""Tile sizes that the source of a kernel names: where its masks and loops have their edges."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from gate.change.closure import Part, Role
from gate.change.facts import Kind
from gate.change.kernels import Kernel, KernelIndex
from gate.change.project import Key
from gate.change.scopes import all_args, callee, dotted

SMALLEST, LARGEST = 8, 8192
"""Powers of two outside are warps, stages and flags, or whole tensors; not tiles."""

_MAX_STEPS = 4096
"""Nodes of an expression that are looked at, so that no source can make this slow."""


def static_tiles(index: KernelIndex, kernel_id: str) -> tuple[int, ...]:
    """Return the powers of two from 8 to 8192 that constexprs of a kernel may take, sorted.

    They come from defaults of constexpr parameters, from `triton.Config` and other dicts that name
    such a parameter, from keyword and positional arguments of launches, from constants that the
    kernel reads, and from literals within it (`tl.arange(0, 64)`). Names are followed through
    assignments; of an expression that cannot be computed (`min(4096, next_power_of_2(n))`) every
    number in it counts.

    Raises
        KeyError  the index has no such kernel
    """
    kernel = index.kernels[kernel_id]
    if kernel.unreadable:
        return ()
    return tuple(sorted(set(filter(_is_tile, _Tiles(index, kernel).values()))))


def _is_tile(value: int) -> bool:
    return SMALLEST <= value <= LARGEST and value & (value - 1) == 0


class _Tiles:
    """Collects the integers of one kernel."""

    def __init__(self, index: KernelIndex, kernel: Kernel) -> None:
        self._graph = index.graph
        self._project = index.graph.project
        self._kernel = kernel
        self._own = kernel.parts[0].key
        self._constexprs = frozenset(self._constexpr_names())
        self._assigned: dict[Key, dict[str, list[ast.expr]]] = {}

    def values(self) -> Iterator[int]:
        """Yield every integer that a constexpr may take."""
        for part in self._kernel.parts:
            code = self._project.definition(part.key).kind is Kind.FUNCTION
            for node in self._graph.sites(part.key):
                yield from self._named(node, part.key)
                if part.device and code:
                    yield from self._in_device_code(node, part.key)
                if not part.device:
                    yield from self._positional(node, part.key)
            if part.device and part.role is Role.CONSTANT:
                yield from self._constant(part)

    def _constexpr_names(self) -> Iterator[str]:
        for node in self._project.definition(self._own).nodes:
            if isinstance(node, ast.FunctionDef):
                yield from (a.arg for a in all_args(node.args) if is_constexpr(a.annotation))

    def _named(self, node: ast.AST, key: Key) -> Iterator[int]:
        """Values given by the name of a constexpr: keywords, dict items, `meta["BLOCK"] = ...`."""
        match node:
            case ast.keyword(arg=str(name), value=value) if name in self._constexprs:
                yield from self._integers(value, key)
            case ast.Dict(keys=keys, values=values):
                for one, given in zip(keys, values, strict=True):
                    if isinstance(one, ast.Constant) and one.value in self._constexprs:
                        yield from self._integers(given, key)
            case ast.Assign(targets=targets, value=value):
                if any(_item_name(target) in self._constexprs for target in targets):
                    yield from self._integers(value, key)
            case _:
                return

    def _positional(self, node: ast.AST, key: Key) -> Iterator[int]:
        """Values given by position in `kernel[grid](...)`."""
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Subscript)):
            return
        name = callee(node.func)
        known = self._project.meanings(key, name) if name else ()
        if known and self._own not in known:
            return  # another kernel; an unknown name may be this one in a variable
        for param, value in zip(self._kernel.params, node.args, strict=False):
            if isinstance(value, ast.Starred):
                return
            if param in self._constexprs:
                yield from self._integers(value, key)

    def _in_device_code(self, node: ast.AST, key: Key) -> Iterator[int]:
        """Defaults and local constexprs, and the ends of `tl.arange`."""
        match node:
            case ast.FunctionDef(args=args):
                for arg, default in _defaults(args):
                    if is_constexpr(arg.annotation):
                        yield from self._integers(default, key)
            case ast.AnnAssign(annotation=annotation, value=ast.expr() as value):
                if is_constexpr(annotation):
                    yield from self._integers(value, key)
            case ast.Call(args=given) if callee(node)[-1:] == ("arange",):
                for end in given:
                    yield from self._integers(end, key)
            case _:
                return

    def _constant(self, part: Part) -> Iterator[int]:
        for node in self._project.definition(part.key).nodes:
            if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
                yield from self._integers(node.value, part.key)

    def _integers(self, value: ast.expr, key: Key) -> Iterator[int]:
        """Yield the integers that an expression may be; names are followed once each."""
        stack: list[tuple[ast.AST, Key]] = [(value, key)]
        seen: set[tuple[Key, tuple[str, ...]]] = set()
        for _ in range(_MAX_STEPS):
            if not stack:
                return
            node, where = stack.pop()
            computed = _computed(node)
            if computed is not None:
                yield computed
            elif dotted(node):
                name = dotted(node)
                if (where, name) not in seen:
                    seen.add((where, name))
                    stack.extend(self._behind(name, where))
            else:
                stack.extend((child, where) for child in ast.iter_child_nodes(node))

    def _behind(self, name: tuple[str, ...], key: Key) -> Iterator[tuple[ast.AST, Key]]:
        """Yield the expressions that a name may stand for."""
        if len(name) == 1 and self._project.definition(key).kind is Kind.FUNCTION:
            yield from ((value, key) for value in self._locals(key).get(name[0], ()))
        for meaning in self._project.meanings(key, name):
            if isinstance(meaning, Key) and meaning != key:
                yield from ((value, meaning) for value in self._given_by(meaning))

    def _given_by(self, key: Key) -> Iterator[ast.expr]:
        """Yield what a value is assigned, or what a function returns."""
        definition = self._project.definition(key)
        for node in definition.nodes:
            if definition.kind is Kind.VALUE:
                if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
                    yield node.value
            elif definition.kind is Kind.FUNCTION:
                for inner in ast.walk(node):
                    if isinstance(inner, ast.Return) and inner.value is not None:
                        yield inner.value

    def _locals(self, key: Key) -> dict[str, list[ast.expr]]:
        if key not in self._assigned:
            found: dict[str, list[ast.expr]] = {}
            for node in self._project.definition(key).nodes:
                for inner in ast.walk(node):
                    for name, value in _bindings(inner):
                        found.setdefault(name, []).append(value)
            self._assigned[key] = found
        return self._assigned[key]


def is_constexpr(annotation: ast.expr | None) -> bool:
    """Tell whether an annotation is `tl.constexpr`, under whatever name, or as a text."""
    match annotation:
        case ast.Constant(value=str(text)):
            return text.rpartition(".")[2] == "constexpr"
        case None:
            return False
        case _:
            return dotted(annotation)[-1:] == ("constexpr",)


def _computed(node: ast.AST, depth: int = 8) -> int | None:
    """Return the value of an integer expression of literals; None if it is none, or a deep one."""
    if not depth:
        return None
    match node:
        case ast.Constant(value=bool()):
            return None
        case ast.Constant(value=int(value)):
            return value
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            positive = _computed(operand, depth - 1)
            return None if positive is None else -positive
        case ast.BinOp(left=left, right=right, op=op):
            one, two = _computed(left, depth - 1), _computed(right, depth - 1)
            return None if one is None or two is None else _operated(op, one, two)
        case ast.Call(args=[given]) if callee(node)[-1:] == ("next_power_of_2",):
            size = _computed(given, depth - 1)
            return 1 << (size - 1).bit_length() if size and 0 < size <= LARGEST else None
        case _:
            return None


def _operated(op: ast.operator, one: int, two: int) -> int | None:
    if not (0 <= one <= 1 << 32 and 0 <= two <= 1 << 32):
        return None
    match op:
        case ast.Mult():
            return one * two
        case ast.FloorDiv() if two:
            return one // two
        case ast.LShift() if two < 32:
            return one << two
        case ast.Pow() if two < 32 and one <= 2:
            return int(one**two)
        case ast.Add():
            return one + two
        case ast.Sub():
            return one - two
        case _:
            return None


def _item_name(target: ast.expr) -> str:
    """Return `BLOCK` for the target `meta["BLOCK"]`; else an empty text."""
    match target:
        case ast.Subscript(slice=ast.Constant(value=str(name))):
            return name
        case _:
            return ""


def _defaults(args: ast.arguments) -> Iterator[tuple[ast.arg, ast.expr]]:
    positional = [*args.posonlyargs, *args.args]
    yield from zip(reversed(positional), reversed(args.defaults), strict=False)
    for arg, default in zip(args.kwonlyargs, args.kw_defaults, strict=True):
        if default is not None:
            yield arg, default


def _bindings(node: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    """Yield what a statement, a parameter default or a loop binds to a name."""
    match node:
        case ast.Assign(targets=targets, value=value):
            for target in targets:
                yield from _paired(target, value)
        case ast.AnnAssign(target=target, value=ast.expr() as value):
            yield from _paired(target, value)
        case ast.NamedExpr(target=target, value=value) | ast.AugAssign(target=target, value=value):
            yield from _paired(target, value)
        case ast.For(target=target, iter=items) | ast.comprehension(target=target, iter=items):
            yield from _paired(target, items)
        case ast.arguments():
            yield from ((arg.arg, default) for arg, default in _defaults(node))
        case _:
            return


def _paired(target: ast.expr, value: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    """Pair names with values, `a, b = 1, 2` one by one; a value of unknown shape goes to each."""
    match target, value:
        case ast.Name(id=name), _:
            yield name, value
        case (
            (ast.Tuple(elts=names) | ast.List(elts=names)),
            (ast.Tuple(elts=values) | ast.List(elts=values)),
        ) if len(names) == len(values):
            for one, two in zip(names, values, strict=True):
                yield from _paired(one, two)
        case ((ast.Tuple(elts=names) | ast.List(elts=names)), _):
            for one in names:
                yield from _paired(one, value)
        case _:
            return
