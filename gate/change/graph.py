"""Who names whom: the edges between definitions of a project, resolved when first asked for."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from gate.change.facts import Dotted, Kind
from gate.change.project import MAX_HOPS, External, Key, Project

_SITES = (ast.keyword, ast.Dict, ast.Assign, ast.AnnAssign, ast.FunctionDef, ast.Call)


class Graph:
    """Edges between definitions."""

    def __init__(self, project: Project) -> None:
        self.project = project
        """Where names are looked up."""
        self._uses: dict[Key, tuple[Key, ...]] = {}
        self._called: dict[Key, frozenset[Key]] = {}
        self._sites: dict[Key, tuple[ast.AST, ...]] = {}

    def uses(self, key: Key) -> tuple[Key, ...]:
        """Return the definitions that one names, and those that lie in it, sorted."""
        if key not in self._uses:
            named = self.keys(key, self.project.definition(key).refs)
            self._uses[key] = tuple(sorted((named | self.inside(key)) - {key}))
        return self._uses[key]

    def called(self, key: Key) -> frozenset[Key]:
        """Return the definitions that one calls by name."""
        if key not in self._called:
            self._called[key] = frozenset(self.keys(key, self.project.definition(key).calls))
        return self._called[key]

    def keys(self, key: Key, names: Iterable[Dotted]) -> set[Key]:
        """Return the definitions that names inside `key` mean."""
        return {
            meaning
            for name in names
            for meaning in self.project.meanings(key, name)
            if isinstance(meaning, Key)
        }

    def inside(self, key: Key) -> set[Key]:
        """Return the definitions that lie directly in a class or function."""
        facts = self.project.facts(key.path)
        names = facts.children.get(key.name, ()) if facts is not None else ()
        return {Key(key.path, name) for name in names}

    def externals(self, key: Key) -> frozenset[tuple[Dotted, str]]:
        """Return what a definition names outside the tree, as (name here, name there)."""
        return frozenset(
            (name, meaning.name)
            for name in self.project.definition(key).refs
            for meaning in self.project.meanings(key, name)
            if isinstance(meaning, External)
        )

    def sites(self, key: Key) -> tuple[ast.AST, ...]:
        """Return the nodes of a definition that may give a constexpr its value.

        Keywords, dicts, assignments to items, launches, parameter defaults, annotated
        assignments and `arange` calls; collected once, since launchers are shared by kernels.
        """
        if key not in self._sites:
            nodes = self.project.definition(key).nodes
            self._sites[key] = tuple(
                inner for node in nodes for inner in ast.walk(node) if isinstance(inner, _SITES)
            )
        return self._sites[key]

    def functions_of(self, key: Key, name: Dotted, hops: int = MAX_HOPS) -> set[Key]:
        """Return the functions that a name stands for, also through `a = b` and `a = f(b)`."""
        found: set[Key] = set()
        for meaning in self.project.meanings(key, name) if name and hops else ():
            if isinstance(meaning, Key):
                definition = self.project.definition(meaning)
                if definition.kind is Kind.FUNCTION:
                    found.add(meaning)
                elif definition.kind is Kind.VALUE and meaning != key:
                    found |= self.functions_of(meaning, definition.target, hops - 1)
        return found
