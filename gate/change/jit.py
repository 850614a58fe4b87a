"""Which functions of a project are jit functions, in every spelling."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from gate.change.facts import Applied, Definition, Dotted, Kind, ModuleFacts
from gate.change.graph import Graph
from gate.change.project import MAX_HOPS, External, Key, Meaning


def find_jit_functions(graph: Graph, paths: Iterable[str]) -> frozenset[Key]:
    """Return the jit functions of some files.

    Known are decorators (`@triton.jit`, `@j`, `@tr.jit(...)`, `@partial(jit, ...)`, one of the
    project that returns a jit function) and calls (`triton.jit(f)`, `jit(noinline=True)(f)`).
    """
    return _Finder(graph, paths).functions()


def is_jit_name(name: str) -> bool:
    """Tell whether an external name is Triton's (or Gluon's) `jit`, under whatever package.

    >>> is_jit_name("triton.jit"), is_jit_name("vllm.triton_utils.triton.jit")
    (True, True)
    >>> is_jit_name("torch.jit"), is_jit_name("numba.jit")
    (False, False)
    """
    *packages, last = name.split(".")
    return last == "jit" and any(part.startswith(("triton", "gluon")) for part in packages)


class _Finder:
    """Searches files: first for words that may mean `jit`, then for what they mean."""

    def __init__(self, graph: Graph, paths: Iterable[str]) -> None:
        self._graph = graph
        self._project = graph.project
        self._is_jit: dict[Meaning, bool] = {}
        found = (graph.project.facts(path) for path in paths)
        self._files = [facts for facts in found if facts is not None]
        self._words = self._words_for_jit()

    def functions(self) -> frozenset[Key]:
        """Return every jit function."""
        found: set[Key] = set()
        for facts in self._files:
            for name, definition in facts.definitions.items():
                key = Key(facts.path, name)
                if definition.kind is Kind.FUNCTION and self._decorated(key, definition):
                    found.add(key)
                for applied in definition.applied:
                    found |= self._made_by_call(key, applied)
        return frozenset(found)

    def _words_for_jit(self) -> set[str]:
        """Names that lead to `jit` as text: itself, its aliases, and what returns a call of one."""
        words = {"jit"}
        while True:
            more = {word for facts in self._files for word in _new_words(facts, words)} - words
            if not more:
                return words
            words |= more

    def _decorated(self, key: Key, definition: Definition) -> bool:
        return any(self._names_jit(key, name) for name in definition.decorators)

    def _made_by_call(self, key: Key, applied: Applied) -> set[Key]:
        if not self._names_jit(key, applied.callee):
            return set()
        return self._graph.functions_of(key, applied.given)

    def _names_jit(self, key: Key, name: Dotted, hops: int = MAX_HOPS) -> bool:
        if self._words.isdisjoint(name):
            return False
        return any(self._makes_jit(meaning, hops) for meaning in self._project.meanings(key, name))

    def _makes_jit(self, meaning: Meaning, hops: int) -> bool:
        """Whether a thing turns a function into a jit function."""
        if meaning not in self._is_jit:
            self._is_jit[meaning] = False  # what a cycle sees
            self._is_jit[meaning] = hops > 0 and self._works_as_jit(meaning, hops - 1)
        return self._is_jit[meaning]

    def _works_as_jit(self, meaning: Meaning, hops: int) -> bool:
        if isinstance(meaning, External):
            return is_jit_name(meaning.name)
        if not isinstance(meaning, Key):
            return False
        definition = self._project.definition(meaning)
        match definition.kind:
            case Kind.VALUE:
                return self._value_works(meaning, definition, hops)
            case Kind.FUNCTION:
                return any(
                    self._names_jit(one, name, hops)
                    for one in (meaning, *self._graph.inside(meaning))
                    for name in self._project.definition(one).returned_calls
                )
            case Kind.CLASS | Kind.SCRIPT:
                return False

    def _value_works(self, key: Key, definition: Definition, hops: int) -> bool:
        """`j = triton.jit`, `j = partial(triton.jit, ...)` and `j = triton.jit(noinline=True)`."""
        wrapped = definition.target
        if not definition.chain or definition.chain[0][-1] == "partial":
            return bool(wrapped) and self._names_jit(key, wrapped, hops)
        return not wrapped and self._names_jit(key, definition.chain[-1], hops)


def _new_words(facts: ModuleFacts, words: set[str]) -> Iterator[str]:
    """Yield the names of a file that lead to one of `words`."""
    for bound, imports in facts.imports.items():
        if any(one.name in words for one in imports):
            yield bound
    for name, definition in facts.definitions.items():
        leads = (*definition.returned_calls, definition.target, *definition.chain)
        if any(not words.isdisjoint(one) for one in leads):
            yield from name.split(".")  # a decorator may be returned by the function around it
