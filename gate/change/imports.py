"""Which files import which names, read from their text without parsing them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from gate.change.project import Project

_USER_FOLDERS = frozenset(
    {"test", "tests", "benchmark", "benchmarks", "bench", "example", "examples", "tutorials"}
    | {"doc", "docs", "scripts"}
)
_USER_FILE = re.compile(r"(test_.*|.*_test|conftest|bench_.*|benchmark_.*|.*_benchmark|setup)\.py")

_IMPORT = re.compile(
    rb"""^[ \t]*(?:
    from[ \t]+(\.*)[ \t]*([\w.]*)[ \t]+import[ \t]*(?:\(([^)]*)\)|((?:[^\n#\\]|\\\r?\n)*))
    |import[ \t]+((?:[^\n#\\]|\\\r?\n)+))""",
    re.MULTILINE | re.VERBOSE,
)
_WORD = re.compile(rb"\w+")

_WHOLE = ""
"""Stands for a module itself among the names that are imported from it."""


class ImportGraph:
    """Imports among some files of a project."""

    def __init__(self, project: Project, paths: Iterable[str]) -> None:
        self._project = project
        self._importers: dict[str, list[tuple[str, str]]] = {}
        for path in paths:
            for module, name in set(self._imported(path, project.sources[path])):
                self._importers.setdefault(module, []).append((path, name))

    def importers(self, modules: Iterable[str], names: set[str]) -> set[str]:
        """Return the files that import one of `names`, or all, or the module, from `modules`.

        Tests, benchmarks and the like count only as importers of one another.
        """
        found = set()
        for module in modules:
            for path, name in self._importers.get(module, ()):
                if is_user_path(path) and not is_user_path(module):
                    continue
                if name in names or name == "*" or (name == _WHOLE and self._says(path, names)):
                    found.add(path)
        return found

    def _says(self, path: str, names: set[str]) -> bool:
        raw = self._project.sources[path]
        return any(word.decode("latin-1") in names for word in _WORD.findall(raw))

    def _imported(self, path: str, raw: bytes) -> Iterator[tuple[str, str]]:
        """Yield (module, name) of every import of a file, submodules as (submodule, whole)."""
        for dots, module, listed, plain, modules in _IMPORT.findall(raw):
            if modules:
                for one in modules.split(b","):
                    word = b"".join(one.split()[:1]).decode("latin-1")
                    yield self._project.map.absolute(path, word), _WHOLE
            else:
                found = self._module(path, len(dots), module.decode("latin-1"))
                if found:
                    yield from self._taken(found, listed or plain)

    def _module(self, path: str, level: int, name: str) -> str:
        if level:
            return self._project.map.relative(path, level, name)
        return self._project.map.absolute(path, name)

    def _taken(self, module: str, names: bytes) -> Iterator[tuple[str, str]]:
        if b"*" in names:
            yield module, "*"
        for raw in _WORD.findall(names):
            word = raw.decode("latin-1")
            submodule = self._project.map.submodule(module, word)
            if submodule:
                yield submodule, _WHOLE
            yield module, word


def is_user_path(path: str) -> bool:
    """Tell whether a file only uses kernels: tests, benchmarks, examples, docs, scripts."""
    *folders, name = path.split("/")
    return bool(_USER_FOLDERS & set(folders)) or _USER_FILE.fullmatch(name) is not None
