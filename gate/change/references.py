"""Whether a change touches a function: the function and all of the tree that it is made of.

A reference often lies in the file of its kernel. That the file changed says nothing of it.
"""

from __future__ import annotations

from collections.abc import Sequence

from gate.change.facts import MODULE
from gate.change.git import ChangedFile
from gate.change.graph import Graph
from gate.change.normal import normal_form
from gate.change.project import Key, ParseCache, Project
from gate.change.tree import BaseTree, Tree, read_all


class Functions:
    """The functions of a head, beside what they were at the base."""

    def __init__(self, head: Graph, base: Tree, files: Sequence[ChangedFile]) -> None:
        """Hold the two sides; the base is read when it is first asked for.

        files  every difference between the two trees
        """
        self._head = head
        self._base = BaseTree(base, head.project.sources, files)
        self._before: Graph | None = None

    def changed(self, path: str, name: str) -> bool:
        """Whether a function, or anything in the tree that it is made of, is not what it was.

        One that cannot be found on both sides, or whose file cannot be parsed, counts as changed.

        Raises
            GitError  the base cannot be read
        """
        after = _form(self._head, Key(path, name))
        return not after or after != _form(self._base_graph(), Key(path, name))

    def _base_graph(self) -> Graph:
        if self._before is None:
            paths = [path for path in self._base.paths() if path.endswith(".py")]
            self._before = Graph(Project(read_all(self._base, paths), ParseCache()))
        return self._before


def _form(graph: Graph, start: Key) -> list[tuple[str, str, tuple[tuple[str, ...], ...]]]:
    """Return what a function is made of, definition by definition, with the statements that its
    files run on import; empty when there is none or a file of it cannot be parsed."""
    waiting, found = [start], {start}
    forms = []
    while waiting:
        key = waiting.pop()
        facts = graph.project.facts(key.path)
        if facts is None or key.name not in facts.definitions:
            return []
        externals = sorted((".".join(name), there) for name, there in graph.externals(key))
        nodes = graph.project.definition(key).nodes
        forms.append((str(key), normal_form(nodes), tuple(externals)))
        more = set(graph.uses(key))
        if MODULE in facts.definitions:
            more.add(Key(key.path, MODULE))
        waiting += more - found
        found |= more
    return sorted(forms)
