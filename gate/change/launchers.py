"""From a kernel up: the functions that launch it, and the functions that call those.

A launch is any mention of a kernel in host code, so that `kernel[grid](...)`, `k = kernel; k[...]`,
`partial(kernel, ...)` and a dict of kernels all count. From there callers are followed up to the
public entry: every mention in the same file, every call from another file. The way ends at methods
that need an instance (a schema's entry cannot be one) and leaves out code that only uses the
kernel: tests, benchmarks, examples.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable

from gate.change.facts import Kind
from gate.change.graph import Graph
from gate.change.imports import ImportGraph, is_user_path
from gate.change.mentions import Mentions
from gate.change.project import External, Key

_USER_FUNCTION = re.compile(r"(test|bench|benchmark)(_.*)?")


class Launchers:
    """Tells kernels from helpers, and who launches them."""

    def __init__(self, graph: Graph, jit: frozenset[Key], seeds: Iterable[str]) -> None:
        self._graph = graph
        self._project = graph.project
        self._jit = jit
        self._imports = ImportGraph(graph.project)
        self._mentions = Mentions(graph, self._imports.renames)
        self._mentions.add(seeds)
        self._callers_of: dict[Key, frozenset[Key]] = {}
        self._taken: set[str] = set()
        self._follow(jit)

    def is_kernel(self, key: Key) -> bool:
        """Tell whether a jit function is started from the host; else it is a helper of others.

        A function that returns a value is a helper (Triton compiles no kernel that returns one),
        unless it is launched by index or a foreign decorator makes a kernel of it. One that nobody
        uses is a kernel: its launch may be out of sight.
        """
        users = self._mentions.users(key)
        host = users - self._jit
        perhaps = bool(host) or not users
        if not self._project.definition(key).returns_value:
            return perhaps
        return any(self._launches(user, key) for user in host) or (
            perhaps and self._has_foreign_decorator(key)
        )

    def of(self, kernels: Iterable[Key]) -> dict[Key, tuple[Key, ...]]:
        """Return the launchers of each kernel: those that start it first, then their callers."""
        starts = {kernel: self._direct(kernel) for kernel in kernels}
        known: set[Key] = set()
        found = {key for direct in starts.values() for key in direct}
        while found - known:  # importers of the new launchers may hold callers of theirs
            self._follow(found - known)
            known |= found
            found = set(self._climb(sorted(known)))
        return {kernel: tuple(self._climb(direct)) for kernel, direct in starts.items()}

    def _follow(self, keys: Iterable[Key]) -> None:
        """Take in the files that import one of `keys` or what holds one, and use it."""
        wanted = set(keys)
        while True:
            wanted = {holder for key in wanted for holder in self._mentions.holders(key)}
            pairs = {(key.path, key.plain.partition(".")[0]) for key in wanted}
            new = self._imports.users(pairs) - self._taken
            if not new:
                return
            self._taken |= new
            self._mentions.add(new)
            self._callers_of.clear()

    def _launches(self, user: Key, kernel: Key) -> bool:
        launched = self._graph.keys(user, self._project.definition(user).launches)
        return not launched.isdisjoint(self._mentions.holders(kernel))

    def _has_foreign_decorator(self, key: Key) -> bool:
        for name in self._project.definition(key).decorators:
            meanings = self._project.meanings(key, name)
            if not any(isinstance(m, External) and "triton" in m.name for m in meanings):
                return True
        return False

    def _direct(self, kernel: Key) -> tuple[Key, ...]:
        found = sorted(filter(self._is_launcher, self._mentions.users(kernel) - self._jit))
        library = tuple(key for key in found if not is_user_path(key.path))
        return library or tuple(found)  # a kernel that lives among tests is launched there

    def _is_launcher(self, key: Key) -> bool:
        if self._project.definition(key).kind is not Kind.FUNCTION:
            return False
        return not _USER_FUNCTION.fullmatch(key.name.rpartition(".")[2])

    def _climb(self, direct: Iterable[Key]) -> Iterable[Key]:
        found = dict.fromkeys(direct)
        waiting = deque(found)
        while waiting:
            callers = sorted(self._callers(waiting.popleft()) - found.keys())
            found |= dict.fromkeys(callers)
            waiting.extend(callers)
        return found

    def _callers(self, key: Key) -> frozenset[Key]:
        """Launchers that start `key`: mentions in the same file, calls from other files."""
        if key not in self._callers_of:
            self._callers_of[key] = frozenset(self._find_callers(key))
        return self._callers_of[key]

    def _find_callers(self, key: Key) -> set[Key]:
        definition = self._project.definition(key)
        found = {user for user in self._mentions.users(key) if user.path == key.path}
        if not definition.bound:
            found |= self._mentions.callers(key)
        if definition.owner and self._is_class(Key(key.path, definition.owner)):
            owner = Key(key.path, definition.owner)
            found |= {
                user
                for user in self._mentions.users(owner)
                if user.path == key.path and not self._project.definition(user).bound
            }
            if self._is_autograd(owner):
                found |= self._mentions.callers(owner)
        return {
            caller
            for caller in found - self._jit
            if self._is_launcher(caller) and (caller.path == key.path or self._is_library(caller))
        }

    def _is_library(self, key: Key) -> bool:
        """Whether a caller in another file may be, or lead to, the entry that users call."""
        return not self._project.definition(key).bound and not is_user_path(key.path)

    def _is_class(self, key: Key) -> bool:
        facts = self._project.facts(key.path)
        return facts is not None and key.name in facts.definitions

    def _is_autograd(self, owner: Key) -> bool:
        """Whether a class is called without an instance: a `torch.autograd.Function`."""
        return any(base[-1] == "Function" for base in self._project.definition(owner).bases)
