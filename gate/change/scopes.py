"""What one scope (a function's body, a lambda, an expression) reads, binds, calls and defines.

Recursion is kept to nested scopes; statements and expressions go through a stack, so that a file
which parses can also be read.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from gate.change.facts import OWN_CLASS, Applied, Dotted, Import

_WITHOUT_NAMES = frozenset({"ctx", "op", "ops", "attr", "kind", "lineno", "type_comment"})
"""Fields of nodes that never hold a name that is read or bound."""

_LAUNCHING = frozenset({"run", "warmup"})
"""Methods of a jit function that launch or compile it, beside `kernel[grid](...)`."""

Nested = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


class Scope:
    """Names of one scope, collected from its nodes."""

    def __init__(self, self_name: str = "") -> None:
        self.reads: set[Dotted] = set()
        """Names that are read, bound here or not."""
        self.binds: set[str] = set()
        """Variables that are bound here."""
        self.elsewhere: set[str] = set()
        """Names that `global` and `nonlocal` declare."""
        self.imports: dict[str, list[Import]] = {}
        """Names that are imported here."""
        self.stars: list[Import] = []
        """`from m import *`."""
        self.calls: set[Dotted] = set()
        """Names that are called."""
        self.launches: set[Dotted] = set()
        """Names that are called by index or through `.run`."""
        self.applied: set[Applied] = set()
        """Calls of a name on a name."""
        self.returned_calls: set[Dotted] = set()
        """What a `return` calls."""
        self.returns_value = False
        """Whether a `return` gives something."""
        self.nested: list[Nested] = []
        """Functions and classes that are defined here."""
        self.own_stores: list[tuple[str, ast.stmt]] = []
        """`self.NAME = ...` statements."""
        self._self_name = self_name

    @classmethod
    def of(cls, nodes: Iterable[ast.AST], self_name: str = "") -> Scope:
        """Read the nodes of a scope; nested functions and classes are noted, not entered."""
        scope = cls(self_name)
        scope.add(nodes)
        return scope

    def add(self, nodes: Iterable[ast.AST]) -> None:
        """Read more nodes of the same scope."""
        stack = list(nodes)
        while stack:
            node = stack.pop()
            handler = _HANDLERS.get(type(node), _children)
            handler(self, node, stack)

    @property
    def variables(self) -> frozenset[str]:
        """Names that are bound here to something unknown."""
        known = {node.name for node in self.nested} | set(self.imports)
        return frozenset(self.binds - self.elsewhere - known)

    def absorb(self, inner: Scope) -> None:
        """Take over what an inner scope (a lambda, a comprehension) reads and does not bind."""
        hidden = inner.binds
        self.reads |= {name for name in inner.reads if name[0] not in hidden}
        self.calls |= {name for name in inner.calls if name[0] not in hidden}
        self.launches |= {name for name in inner.launches if name[0] not in hidden}
        self.applied |= {
            a for a in inner.applied if a.callee[0] not in hidden and a.given[0] not in hidden
        }

    def read(self, name: Dotted) -> Dotted:
        """Note that a name is read; return it, with `self` replaced by the own class."""
        if name[0] == self._self_name and len(name) > 1:
            name = (OWN_CLASS, *name[1:])
        self.reads.add(name)
        return name


def dotted(node: ast.AST) -> Dotted:
    """Return the name that an expression is: `a.b.c` -> `("a", "b", "c")`; else `()`."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return (node.id, *reversed(parts)) if isinstance(node, ast.Name) else ()


def callee(node: ast.AST) -> Dotted:
    """Return the name that a chain of calls and indices starts from: `f(a)[b](c)` -> `f`."""
    while isinstance(node, ast.Call | ast.Subscript):
        node = node.func if isinstance(node, ast.Call) else node.value
    return dotted(node)


def first_given(call: ast.Call) -> ast.expr | None:
    """Return the first argument of a call, or the one named `fn` or `func`."""
    if call.args:
        return call.args[0]
    return next((k.value for k in call.keywords if k.arg in ("fn", "func")), None)


def _name(scope: Scope, node: ast.Name, stack: list[ast.AST]) -> None:
    if isinstance(node.ctx, ast.Load):
        scope.read((node.id,))
    else:
        scope.binds.add(node.id)


def _attribute(scope: Scope, node: ast.Attribute, stack: list[ast.AST]) -> None:
    name = dotted(node)
    if name:
        scope.read(name)
    else:
        stack.append(node.value)


def _call(scope: Scope, node: ast.Call, stack: list[ast.AST]) -> None:
    stack.append(node.func)
    stack.extend(node.args)
    stack.extend(keyword.value for keyword in node.keywords)
    name = callee(node.func)
    if not name:
        return
    name = scope.read(name)
    scope.calls.add(name)
    if isinstance(node.func, ast.Subscript):
        scope.launches.add(name)
    elif isinstance(node.func, ast.Attribute) and name[-1] in _LAUNCHING and len(name) > 1:
        scope.launches.add(name[:-1])
    given = first_given(node)
    given_name = dotted(given) if given is not None else ()
    if given_name:
        scope.applied.add(Applied(name, scope.read(given_name)))


def _function(scope: Scope, node: Nested, stack: list[ast.AST]) -> None:
    scope.binds.add(node.name)
    scope.nested.append(node)


def _lambda(scope: Scope, node: ast.Lambda, stack: list[ast.AST]) -> None:
    inner = Scope.of([node.body], scope._self_name)
    inner.binds |= {arg.arg for arg in all_args(node.args)}
    scope.absorb(inner)
    stack.extend(default_nodes(node.args))


def _comprehension(
    scope: Scope,
    node: ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp,
    stack: list[ast.AST],
) -> None:
    scope.absorb(Scope.of(ast.iter_child_nodes(node), scope._self_name))


def _import(scope: Scope, node: ast.Import, stack: list[ast.AST]) -> None:
    for alias in node.names:
        bound = alias.asname or alias.name.split(".")[0]
        module = alias.name if alias.asname else bound
        scope.imports.setdefault(bound, []).append(Import(level=0, module=module, name=""))


def _import_from(scope: Scope, node: ast.ImportFrom, stack: list[ast.AST]) -> None:
    for alias in node.names:
        taken = Import(level=node.level, module=node.module or "", name=alias.name)
        if alias.name == "*":
            scope.stars.append(taken)
        else:
            scope.imports.setdefault(alias.asname or alias.name, []).append(taken)


def _elsewhere(scope: Scope, node: ast.Global | ast.Nonlocal, stack: list[ast.AST]) -> None:
    scope.elsewhere.update(node.names)


def _return(scope: Scope, node: ast.Return, stack: list[ast.AST]) -> None:
    if node.value is None:
        return
    stack.append(node.value)
    if not (isinstance(node.value, ast.Constant) and node.value.value is None):
        scope.returns_value = True
    called: ast.expr | None = node.value
    while isinstance(called, ast.Call):
        name = callee(called)
        if name:
            scope.returned_calls.add(name)
        called = first_given(called)


def _assign(
    scope: Scope, node: ast.Assign | ast.AnnAssign | ast.AugAssign, stack: list[ast.AST]
) -> None:
    _children(scope, node, stack)
    for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
        name = dotted(target)
        if len(name) == 2 and name[0] == scope._self_name:
            scope.own_stores.append((name[1], node))


def _handler(scope: Scope, node: ast.ExceptHandler, stack: list[ast.AST]) -> None:
    if node.name:
        scope.binds.add(node.name)
    _children(scope, node, stack)


def _match_name(
    scope: Scope, node: ast.MatchAs | ast.MatchStar | ast.MatchMapping, stack: list[ast.AST]
) -> None:
    name = node.rest if isinstance(node, ast.MatchMapping) else node.name
    if name:
        scope.binds.add(name)
    _children(scope, node, stack)


def _children(scope: Scope, node: ast.AST, stack: list[ast.AST]) -> None:
    """Go on with what a node holds; written out, since most of the time is spent here."""
    for field in _FIELDS[type(node)]:
        value = getattr(node, field, None)
        if isinstance(value, list):
            stack += [item for item in value if isinstance(item, ast.AST)]
        elif isinstance(value, ast.AST):
            stack.append(value)


def _nothing(scope: Scope, node: ast.AST, stack: list[ast.AST]) -> None:
    return


class _Fields(dict[type[ast.AST], tuple[str, ...]]):
    """Fields of each kind of node that may hold names."""

    def __missing__(self, kind: type[ast.AST]) -> tuple[str, ...]:
        fields = tuple(field for field in kind._fields if field not in _WITHOUT_NAMES)
        self[kind] = fields
        return fields


_FIELDS = _Fields()
_Handler = Callable[[Scope, Any, list[ast.AST]], None]

_HANDLERS: dict[type[ast.AST], _Handler] = {
    ast.Name: _name,
    ast.Attribute: _attribute,
    ast.Call: _call,
    ast.Lambda: _lambda,
    ast.Import: _import,
    ast.ImportFrom: _import_from,
    ast.Global: _elsewhere,
    ast.Nonlocal: _elsewhere,
    ast.Return: _return,
    ast.Assign: _assign,
    ast.AnnAssign: _assign,
    ast.AugAssign: _assign,
    ast.ExceptHandler: _handler,
    ast.MatchAs: _match_name,
    ast.MatchStar: _match_name,
    ast.MatchMapping: _match_name,
    ast.Constant: _nothing,
    ast.ClassDef: _function,
    ast.FunctionDef: _function,
    ast.AsyncFunctionDef: _function,
    ast.ListComp: _comprehension,
    ast.SetComp: _comprehension,
    ast.DictComp: _comprehension,
    ast.GeneratorExp: _comprehension,
}


def all_args(args: ast.arguments) -> list[ast.arg]:
    """Return every parameter in order, `*args` and `**kwargs` too."""
    found = [*args.posonlyargs, *args.args]
    found += [args.vararg] if args.vararg else []
    found += args.kwonlyargs
    return found + ([args.kwarg] if args.kwarg else [])


def default_nodes(args: ast.arguments) -> Sequence[ast.expr]:
    """Return the default values of parameters."""
    return [*args.defaults, *(default for default in args.kw_defaults if default is not None)]


def header_nodes(node: ast.FunctionDef | ast.AsyncFunctionDef) -> list[ast.expr]:
    """Return what a `def` evaluates in the scope around it: decorators, defaults, annotations."""
    notes = [arg.annotation for arg in all_args(node.args) if arg.annotation is not None]
    after = [node.returns] if node.returns is not None else []
    return [*node.decorator_list, *default_nodes(node.args), *notes, *after]
