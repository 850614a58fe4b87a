"""The syntax tree of a file to `ModuleFacts`."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import count

from gate.change.draft import Draft
from gate.change.facts import MODULE, OWN_CLASS, Kind, ModuleFacts
from gate.change.scopes import Nested, Scope, all_args, dotted, header_nodes
from gate.change.statements import (
    BRANCHES,
    assigned_names,
    bodies,
    bound_names,
    conditions,
    decorator_names,
    is_main_guard,
    mutated_name,
    unwrap,
)

Function = ast.FunctionDef | ast.AsyncFunctionDef
Assignment = ast.Assign | ast.AnnAssign | ast.AugAssign


def extract(path: str, tree: ast.Module) -> ModuleFacts:
    """Read what a file defines.

    Raises
        RecursionError  functions, lambdas or comprehensions are nested deeper than Python allows
    """
    reader = _Reader()
    script = _Script(Draft(Kind.SCRIPT, 1))
    reader.container(tree.body, _Place(script=script))
    script.settle(reader.drafts)
    reader.drafts[MODULE] = script.draft
    return ModuleFacts(
        path=path,
        definitions={name: draft.finish(name) for name, draft in reader.drafts.items()},
        imports={name: tuple(found) for name, found in script.scope.imports.items()},
        stars=tuple(script.scope.stars),
        children={name: tuple(kids) for name, kids in reader.children.items()},
    )


class _Script:
    """The statements of a module or class that define nothing."""

    def __init__(self, draft: Draft) -> None:
        self.draft = draft
        self.scope = Scope()
        self._mutations: list[tuple[str, ast.stmt]] = []

    def statement(self, node: ast.stmt, prefix: str) -> None:
        """Read a statement; one that changes a value (`X.append(...)`) is noted as such."""
        self.scope.add([node])
        name = mutated_name(node)
        if name:
            self._mutations.append((prefix + name, node))

    def settle(self, drafts: dict[str, Draft]) -> None:
        """Give each change to the value that it changes, and the rest to the container."""
        for name, node in self._mutations:
            if name in drafts and drafts[name].kind is Kind.VALUE:
                drafts[name].nodes.append(node)
                drafts[name].add_scope(Scope.of([node]), frozenset({name}))
        self.draft.add_scope(self.scope, frozenset())


@dataclass(frozen=True, slots=True, kw_only=True)
class _Place:
    """Where statements stand."""

    script: _Script
    """Takes what defines nothing."""
    prefix: str = ""
    """Qualified name of the class and a dot; empty in a module."""
    owner: str = ""
    """Qualified name of the class; empty in a module."""
    scope: str = ""
    """The function around it."""
    context: tuple[ast.AST, ...] = ()
    """Conditions that hold here."""


class _Reader:
    """Collects definitions from a module down."""

    def __init__(self) -> None:
        self.drafts: dict[str, Draft] = {}
        self.children: dict[str, list[str]] = {}

    def container(self, body: Iterable[ast.stmt], place: _Place) -> None:
        """Read the statements of a module or class, or of a branch in one."""
        for node in body:
            if isinstance(node, ast.ClassDef):
                self._class(node, place.prefix + node.name, place)
            elif isinstance(node, Function):
                self._function(node, place.prefix + node.name, place, outer_self="")
            elif isinstance(node, Assignment) and assigned_names(node):
                self._assignment(node, place)
            elif isinstance(node, ast.If) and is_main_guard(node.test):
                place.script.scope.add([node])
            elif isinstance(node, BRANCHES):
                self._branch(node, place)
            else:
                place.script.statement(node, place.prefix)

    def _branch(self, node: ast.stmt, place: _Place) -> None:
        held = conditions(node)
        place.script.scope.add(held)
        inner = replace(place, context=(*place.context, *held))
        for name in bound_names(held):
            self._value(name, node.lineno, inner.context, place)
        for part in bodies(node):
            self.container(part, inner)

    def _assignment(self, node: Assignment, place: _Place) -> None:
        if isinstance(node, ast.AnnAssign) and node.value is None:
            return  # a declaration; in a class it is part of the class
        names = assigned_names(node)
        for name in names:
            draft = self._value(name, node.lineno, (*place.context, node), place)
            if len(names) == 1 and node.value is not None:
                draft.chain, draft.target = unwrap(node.value)

    def _value(self, name: str, line: int, nodes: tuple[ast.AST, ...], place: _Place) -> Draft:
        full = place.prefix + name
        draft = self._draft(full, Kind.VALUE, line, place.owner or place.scope, place.owner)
        draft.nodes.extend(nodes)
        draft.add_scope(Scope.of(nodes), frozenset())
        return draft

    def _class(self, node: ast.ClassDef, name: str, place: _Place) -> None:
        draft = self._draft(name, Kind.CLASS, node.lineno, place.scope, "")
        draft.nodes.extend((*place.context, node))
        header = [*node.decorator_list, *node.bases, *(k.value for k in node.keywords)]
        draft.add_scope(Scope.of([*place.context, *header]), frozenset())
        draft.decorators.extend(decorator_names(node.decorator_list))
        draft.bases.extend(base for base in map(dotted, node.bases) if base)
        script = _Script(draft)
        inside = _Place(script=script, prefix=f"{name}.", owner=name, scope=place.scope)
        self.container(node.body, inside)
        script.settle(self.drafts)
        draft.add_imports(script.scope)

    def _function(self, node: Function, name: str, place: _Place, *, outer_self: str) -> None:
        """Read a function.

        outer_self  the name of `self` or `cls` in the method around it
        """
        self._shadow(name, place)
        draft = self._draft(name, Kind.FUNCTION, node.lineno, place.scope, place.owner)
        draft.nodes.extend((*place.context, node))
        draft.conditional |= bool(place.context)
        params = [arg.arg for arg in all_args(node.args)]
        decorators = decorator_names(node.decorator_list)
        method = bool(place.owner) and name == f"{place.owner}.{node.name}"
        static = ("staticmethod",) in decorators
        self_name = "" if outer_self in params else outer_self
        if method and params and not static:
            self_name = params[0]
        body = Scope.of(node.body, self_name)
        body.binds.update(params)
        header = Scope.of([*place.context, *header_nodes(node)])
        self._add_header(draft, header, place.owner if method else "")
        draft.add_scope(body, body.variables)
        draft.add_imports(body)
        draft.add_returns(body)
        draft.decorators.extend(decorators)
        draft.local |= body.variables
        draft.params = params
        draft.bound = method and not static and ("classmethod",) not in decorators
        self._own_stores(body, place.owner)
        inner = replace(place, prefix=f"{name}.", scope=name, context=())
        for nested in body.nested:
            self._nested(nested, inner, self_name)

    def _nested(self, node: Nested, place: _Place, outer_self: str) -> None:
        if isinstance(node, ast.ClassDef):
            self._class(node, place.prefix + node.name, place)
        else:
            self._function(node, place.prefix + node.name, place, outer_self=outer_self)

    def _add_header(self, draft: Draft, header: Scope, owner: str) -> None:
        """Add what a `def` line reads; in a class, the class's names come first."""
        own = {child.rpartition(".")[2] for child in self.children.get(owner, ())} if owner else ()
        draft.add_scope(header, frozenset(own))
        draft.refs |= {(OWN_CLASS, *name) for name in header.reads if name[0] in own}

    def _own_stores(self, body: Scope, owner: str) -> None:
        """Make a value `Class.x` of `self.x = kernel`, if the right side names anything."""
        for attribute, node in body.own_stores if owner else ():
            found = Scope.of(_right_side(node))
            if {name for name in found.reads if name[0] not in body.variables}:
                draft = self._draft(f"{owner}.{attribute}", Kind.VALUE, node.lineno, owner, owner)
                draft.nodes.append(node)
                draft.add_scope(found, body.variables)

    def _shadow(self, name: str, place: _Place) -> None:
        """Set an earlier function aside when a module defines its name again.

        It lives on as `name@1`: in `kernel = f; def f(...): kernel[grid](...)` the first `f` is
        what `kernel` holds. Branches are no second definition, they are one that varies.
        """
        earlier = self.drafts.get(name)
        if earlier is None or earlier.kind is not Kind.FUNCTION:
            return
        if earlier.conditional or place.context or place.owner or place.scope:
            return
        aside = next(n for i in count(1) if (n := f"{name}@{i}") not in self.drafts)
        moved = {old: aside + old[len(name) :] for old in self._family(name)}
        for draft in self.drafts.values():
            if draft is earlier or (draft.kind is Kind.VALUE and not draft.owner):
                draft.rename(name, aside)
            draft.scope = moved.get(draft.scope, draft.scope)
        self.drafts = {moved.get(old, old): draft for old, draft in self.drafts.items()}
        self.children = {
            moved.get(outer, outer): [moved.get(kid, kid) for kid in kids]
            for outer, kids in self.children.items()
        }

    def _family(self, name: str) -> list[str]:
        """Return a definition and all that lies in it."""
        return [known for known in self.drafts if known == name or known.startswith(f"{name}.")]

    def _draft(self, name: str, kind: Kind, line: int, scope: str, owner: str) -> Draft:
        """Return the draft of a name, begun now or in another branch."""
        if name not in self.drafts:
            self.drafts[name] = Draft(kind, line, scope=scope, owner=owner)
            self.children.setdefault(name.rpartition(".")[0], []).append(name)
        draft = self.drafts[name]
        draft.also(kind, line)
        return draft


def _right_side(node: ast.stmt) -> Iterator[ast.AST]:
    if isinstance(node, Assignment) and node.value is not None:
        yield node.value
