"""Where a kernel stores: the lines of its stores, each with the pointer that it goes through."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from gate.change.kernels import KernelIndex
from gate.change.scopes import all_args, dotted

_WRITES = ("store", "atomic_")
"""How the names of functions and methods that write memory begin."""
_PASSED_ON = frozenset(
    {"advance", "make_block_ptr", "make_tensor_descriptor", "max_contiguous", "multiple_of"}
)
"""Functions whose first argument is the pointer that they hand back in another form."""
_MANY = 64
"""Names that are followed from one store, at most."""


def store_lines(index: KernelIndex, kernel_id: str) -> tuple[tuple[str, int], ...]:
    """Return (pointer parameter, 1-based line) of each store and atomic of a kernel, by line.

    Empty where the source does not tell all of them: it cannot be read, a helper of the kernel
    stores, or a store goes through what is no single parameter.

    Raises
        KeyError  the index has no such kernel
    """
    kernel = index.kernels[kernel_id]
    if kernel.unreadable:
        return ()
    found: set[tuple[str, int]] = set()
    for part in kernel.parts:
        if not part.device:
            continue
        own = part.key == kernel.parts[0].key
        for node in index.graph.project.definition(part.key).nodes:
            writes = list(_writes(node))
            if writes and not (own and isinstance(node, ast.FunctionDef)):
                return ()
            pointers = _Pointers(node) if writes else None
            for call, target in writes:
                params = sorted(pointers.behind(target)) if pointers else []
                if len(params) != 1:
                    return ()
                found.add((params[0], call.lineno))
    return tuple(sorted(found, key=lambda one: (one[1], one[0])))


def _writes(node: ast.AST) -> Iterator[tuple[ast.Call, ast.expr]]:
    """Yield each call that writes memory, with the expression that says where."""
    for inner in ast.walk(node):
        if not (isinstance(inner, ast.Call) and isinstance(inner.func, ast.Attribute)):
            continue
        if not inner.func.attr.startswith(_WRITES):
            continue
        if dotted(inner.func)[:-1] in (("tl",), ("triton", "language"), ("language",)):
            target = _given(inner, "pointer")
            if target is not None:
                yield inner, target
        else:  # `descriptor.store(...)`
            yield inner, inner.func.value


def _given(call: ast.Call, name: str) -> ast.expr | None:
    if call.args:
        return call.args[0]
    return next((k.value for k in call.keywords if k.arg in (name, "base", "desc")), None)


class _Pointers:
    """Finds which parameter of a kernel an address is made from."""

    def __init__(self, node: ast.AST) -> None:
        self._params = frozenset(
            arg.arg
            for inner in ast.walk(node)
            if isinstance(inner, ast.FunctionDef)
            for arg in all_args(inner.args)
        )
        self._bound: dict[str, list[ast.expr]] = {}
        self._numbers: set[str] = set()
        for inner in ast.walk(node):
            self._look(inner)

    def behind(self, target: ast.expr) -> frozenset[str]:
        """Return the parameters that an address may be made from, those aside that are multiplied
        or compared somewhere and so are numbers."""
        found: set[str] = set()
        seen: set[str] = set()
        waiting = [target]
        while waiting and len(seen) < _MANY:
            for name in _leading(waiting.pop()):
                if name in seen:
                    continue
                seen.add(name)
                if name in self._params and name not in self._numbers:
                    found.add(name)
                waiting += self._bound.get(name, ())
        return frozenset(found)

    def _look(self, node: ast.AST) -> None:
        match node:
            case ast.Assign(targets=targets, value=value):
                for target in targets:
                    if isinstance(target, ast.Name):
                        self._bound.setdefault(target.id, []).append(value)
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                self._bound.setdefault(name, []).append(value)
            case ast.AugAssign(target=ast.Name(id=name), value=value):
                self._bound.setdefault(name, []).append(value)
            case ast.BinOp(op=ast.Add()):
                return
            case ast.BinOp(left=left, right=right):
                self._note(left, right)
            case ast.Compare(left=left, ops=ops, comparators=others):
                if not any(isinstance(op, ast.Is | ast.IsNot) for op in ops):
                    self._note(left, *others)
            case ast.Call(func=func, args=args) if dotted(func)[-1:] in (("range",), ("cdiv",)):
                self._note(*args)
            case _:
                return

    def _note(self, *operands: ast.expr) -> None:
        self._numbers |= {one.id for one in operands if isinstance(one, ast.Name)}


def _leading(node: ast.expr) -> Iterator[str]:
    """Yield the names that may be the pointer in an address: terms of its sums."""
    match node:
        case ast.Name(id=name):
            yield name
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub(), right=right):
            yield from _leading(left)
            yield from _leading(right)
        case ast.IfExp(body=body, orelse=other):
            yield from _leading(body)
            yield from _leading(other)
        case ast.Subscript(value=value):
            yield from _leading(value)
        case ast.Call(func=ast.Attribute(value=value, attr=attr)):
            if attr in _PASSED_ON and dotted(value)[-1:] in (("tl",), ("language",)):
                target = _given(node, "base")
                if target is not None:
                    yield from _leading(target)
            elif attr in ("to", "cast"):
                yield from _leading(value)
        case _:
            return
