"""A definition while its branches are being collected."""

from __future__ import annotations

import ast

from gate.change.facts import Applied, Definition, Dotted, Import, Kind
from gate.change.scopes import Scope

_WEIGHT = {Kind.SCRIPT: 0, Kind.VALUE: 1, Kind.CLASS: 2, Kind.FUNCTION: 3}
"""When branches give a name several kinds, the heaviest wins: `k = None` and `def k` is a `def`."""


class Draft:
    """Gathers what the branches of one definition say."""

    def __init__(self, kind: Kind, line: int, *, scope: str = "", owner: str = "") -> None:
        self.kind = kind
        self.nodes: list[ast.AST] = []
        self.refs: set[Dotted] = set()
        self.decorators: list[Dotted] = []
        self.local: set[str] = set()
        self.bound = False
        self.conditional = False
        self.params: list[str] = []
        self.bases: list[Dotted] = []
        self.chain: tuple[Dotted, ...] = ()
        self.target: Dotted = ()
        self._line = line
        self.scope = scope
        self.owner = owner
        self._calls: set[Dotted] = set()
        self._launches: set[Dotted] = set()
        self._applied: set[Applied] = set()
        self._returned_calls: set[Dotted] = set()
        self._returns_value = False
        self._imports: dict[str, tuple[Import, ...]] = {}

    def rename(self, old: str, new: str) -> None:
        """Read names that start with `old` as ones that start with `new`."""

        def renamed(name: Dotted) -> Dotted:
            return (new, *name[1:]) if name[:1] == (old,) else name

        self.refs = set(map(renamed, self.refs))
        self._calls = set(map(renamed, self._calls))
        self._launches = set(map(renamed, self._launches))
        self._applied = {Applied(renamed(a.callee), renamed(a.given)) for a in self._applied}
        self.chain = tuple(map(renamed, self.chain))
        self.target = renamed(self.target)

    def also(self, kind: Kind, line: int) -> None:
        """Note that another branch defines the same name as `kind`."""
        if _WEIGHT[kind] > _WEIGHT[self.kind]:
            self.kind = kind
            self._line = line

    def add_scope(self, scope: Scope, hidden: frozenset[str]) -> None:
        """Take over what a scope reads, without the names in `hidden`."""
        self.refs |= {name for name in scope.reads if name[0] not in hidden}
        self._calls |= {name for name in scope.calls if name[0] not in hidden}
        self._launches |= {name for name in scope.launches if name[0] not in hidden}
        self._applied |= {
            a for a in scope.applied if a.callee[0] not in hidden and a.given[0] not in hidden
        }

    def add_imports(self, scope: Scope) -> None:
        """Take over what a scope imports."""
        self._imports |= {name: tuple(found) for name, found in scope.imports.items()}

    def add_returns(self, scope: Scope) -> None:
        """Take over what a function's body returns."""
        self._returned_calls |= scope.returned_calls
        self._returns_value |= scope.returns_value

    def finish(self, name: str) -> Definition:
        """Freeze it."""
        return Definition(
            name=name, kind=self.kind, line=self._line, nodes=tuple(self.nodes),
            refs=frozenset(self.refs), calls=frozenset(self._calls),
            launches=frozenset(self._launches), applied=frozenset(self._applied),
            decorators=tuple(self.decorators), returned_calls=frozenset(self._returned_calls),
            returns_value=self._returns_value, imports=self._imports, local=frozenset(self.local),
            scope=self.scope, owner=self.owner, bound=self.bound, params=tuple(self.params),
            bases=tuple(self.bases), chain=self.chain, target=self.target,
        )  # fmt: skip
