"""Who names whom: the edges between definitions of a project, resolved when first asked for."""

from __future__ import annotations

from collections.abc import Iterable

from gate.change.facts import Applied, Definition, Dotted, Kind
from gate.change.project import MAX_HOPS, External, Key, Meaning, Project


class Graph:
    """Edges between definitions, and which of them are jit functions."""

    def __init__(self, project: Project) -> None:
        self.project = project
        """Where names are looked up."""
        self._uses: dict[Key, frozenset[Key]] = {}
        self._calls: dict[Key, frozenset[Key]] = {}
        self._is_jit: dict[Meaning, bool] = {}

    def uses(self, key: Key) -> frozenset[Key]:
        """Return the definitions that one names, and those that lie in it."""
        if key not in self._uses:
            definition = self.project.definition(key)
            named = self._keys(key, definition.refs)
            self._uses[key] = frozenset(named | self.inside(key)) - {key}
        return self._uses[key]

    def calls(self, key: Key) -> frozenset[Key]:
        """Return the definitions that one calls, also through values, and functions within it."""
        if key not in self._calls:
            definition = self.project.definition(key)
            found = self._keys(key, definition.calls)
            if definition.kind is Kind.FUNCTION:
                found |= self.inside(key)
            self._calls[key] = frozenset(self._through_values(found)) - {key}
        return self._calls[key]

    def launches(self, key: Key) -> frozenset[Key]:
        """Return the definitions that one calls by index or `.run`, also through values."""
        launches = self.project.definition(key).launches
        return frozenset(self._through_values(self._keys(key, launches))) if launches else _NONE

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

    def jit_functions(self) -> frozenset[Key]:
        """Return every jit function of the files that were parsed so far."""
        found: set[Key] = set()
        for facts in list(self.project.loaded()):
            for name, definition in facts.definitions.items():
                key = Key(facts.path, name)
                if definition.kind is Kind.FUNCTION and self._decorated(key, definition):
                    found.add(key)
                for applied in definition.applied:
                    found |= self._made_by_call(key, applied)
        return frozenset(found)

    def is_jit(self, meaning: Meaning, hops: int = MAX_HOPS) -> bool:
        """Tell whether a thing turns a function into a jit function."""
        if meaning not in self._is_jit:
            self._is_jit[meaning] = False  # what a cycle sees
            self._is_jit[meaning] = hops > 0 and self._makes_jit(meaning, hops)
        return self._is_jit[meaning]

    def names_jit(self, key: Key, name: Dotted, hops: int = MAX_HOPS) -> bool:
        """Tell whether a name inside a definition turns a function into a jit function."""
        return any(self.is_jit(meaning, hops) for meaning in self.project.meanings(key, name))

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

    def _keys(self, key: Key, names: Iterable[Dotted]) -> set[Key]:
        return {
            meaning
            for name in names
            for meaning in self.project.meanings(key, name)
            if isinstance(meaning, Key)
        }

    def _through_values(self, keys: set[Key]) -> set[Key]:
        """Add what values among `keys` hold: a dict of functions, a partial, an alias."""
        found = set(keys)
        waiting = list(keys)
        while waiting:
            key = waiting.pop()
            if self.project.definition(key).kind is Kind.VALUE:
                more = self.uses(key) - found
                found |= more
                waiting.extend(more)
        return found

    def _decorated(self, key: Key, definition: Definition) -> bool:
        return any(self.names_jit(key, name) for name in definition.decorators)

    def _made_by_call(self, key: Key, applied: Applied) -> set[Key]:
        if not self.names_jit(key, applied.callee):
            return set()
        return self.functions_of(key, applied.given)

    def _makes_jit(self, meaning: Meaning, hops: int) -> bool:
        if isinstance(meaning, External):
            return is_jit_name(meaning.name)
        if not isinstance(meaning, Key):
            return False
        definition = self.project.definition(meaning)
        match definition.kind:
            case Kind.VALUE:
                return self._value_makes_jit(meaning, definition, hops - 1)
            case Kind.FUNCTION:
                inner = [meaning, *self.inside(meaning)]
                return any(
                    self.names_jit(one, name, hops - 1)
                    for one in inner
                    for name in self.project.definition(one).returned_calls
                )
            case Kind.CLASS | Kind.SCRIPT:
                return False

    def _value_makes_jit(self, key: Key, definition: Definition, hops: int) -> bool:
        """`j = triton.jit`, `j = partial(triton.jit, ...)` and `j = triton.jit(noinline=True)`."""
        wrapped = definition.target
        if not definition.chain or definition.chain[0][-1] == "partial":
            return bool(wrapped) and self.names_jit(key, wrapped, hops)
        return not wrapped and self.names_jit(key, definition.chain[-1], hops)


def is_jit_name(name: str) -> bool:
    """Tell whether an external name is Triton's (or Gluon's) `jit`, under whatever package.

    >>> is_jit_name("triton.jit"), is_jit_name("vllm.triton_utils.triton.jit")
    (True, True)
    >>> is_jit_name("torch.jit"), is_jit_name("numba.jit")
    (False, False)
    """
    *packages, last = name.split(".")
    return last == "jit" and any(part.startswith(("triton", "gluon")) for part in packages)


_NONE: frozenset[Key] = frozenset()
