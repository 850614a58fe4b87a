"""Who mentions a definition: the edges of the graph backwards, without resolving every name.

Names are first matched as text: only where a part of a name, or what an import bound to it, is
spelled like the wanted definition (or like a new name that an import gave it) is its meaning
worked out. So files are parsed only if they stand between a mention and its meaning.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from gate.change.facts import Dotted, Kind, ModuleFacts
from gate.change.graph import Graph
from gate.change.project import Key

_Place = tuple[Key, Dotted]
"""A definition, and a name that it reads."""


class Mentions:
    """Finds the users of definitions among the files that were added."""

    def __init__(self, graph: Graph, renames: Mapping[str, set[str]]) -> None:
        """renames  name -> new names that files which are not added gave it; may grow"""
        self._graph = graph
        self._renames = renames
        self._project = graph.project
        self._added: set[str] = set()
        self._places: dict[str, list[_Place]] = {}
        self._renamed: dict[str, set[str]] = {}
        self._users: dict[Key, frozenset[Key]] = {}
        self._holders: dict[Key, frozenset[Key]] = {}

    def add(self, paths: Iterable[str]) -> None:
        """Take in the mentions of more files; those that cannot be parsed have none."""
        for path in set(paths) - self._added:
            facts = self._project.facts(path)
            self._added.add(path)
            if facts is not None:
                self._add(facts)
        self._users.clear()
        self._holders.clear()

    def users(self, key: Key) -> frozenset[Key]:
        """Return the functions and scripts that mention `key`, or a value that mentions it."""
        if key not in self._users:
            values, found = self._spread(key)
            self._users[key] = frozenset(found)
            self._holders[key] = frozenset(values)
        return self._users[key]

    def holders(self, key: Key) -> frozenset[Key]:
        """Return `key` and the values that hold it: aliases, partials, dicts of functions."""
        self.users(key)
        return self._holders[key]

    def callers(self, key: Key) -> frozenset[Key]:
        """Return the definitions that call `key` or a value that holds it, or that contain it."""
        holders = self.holders(key)
        return frozenset(
            user
            for user in self.users(key)
            if user in self._containers(key)
            or any(holder in self._graph.called(user) for holder in holders)
        )

    def _spread(self, key: Key) -> tuple[set[Key], set[Key]]:
        values = {key}
        found: set[Key] = set()
        waiting = [key]
        while waiting:
            for user in self._direct(waiting.pop()):
                if self._project.definition(user).kind is not Kind.VALUE:
                    found.add(user)
                elif user not in values:
                    values.add(user)
                    waiting.append(user)
        return values, found

    def _direct(self, key: Key) -> set[Key]:
        found = {
            user
            for name in self._spellings(key.plain.rpartition(".")[2])
            for user, mention in self._places.get(name, ())
            if user != key and key in self._project.meanings(user, mention)
        }
        return found | self._containers(key)

    def _containers(self, key: Key) -> set[Key]:
        outer = key.name.rpartition(".")[0]
        return {Key(key.path, outer)} if outer else set()

    def _spellings(self, name: str) -> set[str]:
        found = {name}
        waiting = [name]
        while waiting:
            spelled = waiting.pop()
            more = self._renamed.get(spelled, set()) | self._renames.get(spelled, set())
            more -= found
            found |= more
            waiting.extend(more)
        return found

    def _add(self, facts: ModuleFacts) -> None:
        for bound, imports in facts.imports.items():
            for one in imports:
                if one.name and one.name != bound:
                    self._renamed.setdefault(one.name, set()).add(bound)
        for name, definition in facts.definitions.items():
            key = Key(facts.path, name)
            for mention in definition.refs:
                for word in set(mention):
                    plain = word.partition("@")[0]
                    self._places.setdefault(plain, []).append((key, mention))
                for bindings in (facts.imports, definition.imports):
                    for one in bindings.get(mention[0], ()):
                        if one.name and one.name not in mention:
                            self._places.setdefault(one.name, []).append((key, mention))
