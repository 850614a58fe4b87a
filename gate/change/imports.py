"""Which files import which names, read from their text without parsing them."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

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
_NAME_AS = re.compile(rb"(\*|\w+)(?:[\s\\]+as[\s\\]+(\w+))?")
_MODULE_AS = re.compile(rb"([\w.]+)(?:[\s\\]+as[\s\\]+(\w+))?")
_WORD = re.compile(rb"\w+")

_HELD = 16_384
"""Files whose text is read once for both sides of a comparison."""
_WHOLE = ""
"""Stands for a module itself among the names that are imported from it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Taken:
    """One name that a file imports from a module."""

    path: str
    """The file."""
    name: str
    """What it takes: a name, `*`, or the whole module."""
    bound: str
    """What it calls it."""


class ImportGraph:
    """Imports among the files of a project."""

    def __init__(self, project: Project) -> None:
        self.renames: dict[str, set[str]] = {}
        """Name -> the new names that imports on the way from a wanted name gave it."""
        self._project = project
        self._takers: dict[str, list[_Taken]] = {}
        self._words: dict[str, frozenset[bytes]] = {}
        self._visited: set[tuple[str, str]] = set()
        for path, raw in project.sources.items():
            for module, taken in self._imported(path, raw):
                self._takers.setdefault(module, []).append(taken)

    def users(self, wanted: Iterable[tuple[str, str]]) -> set[str]:
        """Return the files that may use one of the (module, name) pairs of `wanted`.

        They import it, perhaps through files that pass it on, and name it outside of imports.
        Pairs of earlier calls are not followed again. Tests, benchmarks and the like count only as
        users of one another.
        """
        found = set()
        waiting = list(wanted)
        while waiting:
            module, name = pair = waiting.pop()
            if pair in self._visited:
                continue
            self._visited.add(pair)
            for taken in self._takers.get(module, ()):
                if taken.name not in (name, "*", _WHOLE) or self._is_foreign(taken.path, module):
                    continue
                said = taken.bound if taken.name == name else name
                if said.encode() in self._words_of(taken.path):
                    found.add(taken.path)
                if said != name:
                    self.renames.setdefault(name, set()).add(said)
                waiting.append((taken.path, taken.bound if taken.name == _WHOLE else said))
        return found

    def _is_foreign(self, path: str, module: str) -> bool:
        return is_user_path(path) and not is_user_path(module)

    def _words_of(self, path: str) -> frozenset[bytes]:
        """The words of a file outside its import statements."""
        if path not in self._words:
            self._words[path] = _words_outside_imports(self._project.sources[path])
        return self._words[path]

    def _imported(self, path: str, raw: bytes) -> Iterator[tuple[str, _Taken]]:
        """Yield the imports of a file; a submodule comes as a name and as a whole module."""
        if b"import" not in raw:
            return
        for dots, module, listed, plain, modules in _import_statements(raw):
            if modules:
                for name, renamed in _MODULE_AS.findall(modules):
                    word = name.decode("latin-1")
                    bound = renamed.decode("latin-1") or word.partition(".")[0]
                    whole = self._project.map.absolute(path, word)
                    if whole:
                        yield whole, _Taken(path=path, name=_WHOLE, bound=bound)
                continue
            found = self._module(path, len(dots), module.decode("latin-1"))
            for name, renamed in _NAME_AS.findall(listed or plain) if found else ():
                word = name.decode("latin-1")
                bound = (renamed or name).decode("latin-1")
                yield found, _Taken(path=path, name=word, bound=bound)
                submodule = self._project.map.submodule(found, word)
                if submodule:
                    yield submodule, _Taken(path=path, name=_WHOLE, bound=bound)

    def _module(self, path: str, level: int, name: str) -> str:
        if level:
            return self._project.map.relative(path, level, name)
        return self._project.map.absolute(path, name)


@functools.lru_cache(maxsize=_HELD)
def _import_statements(raw: bytes) -> list[tuple[bytes, ...]]:
    return _IMPORT.findall(raw)


@functools.lru_cache(maxsize=_HELD)
def _words_outside_imports(raw: bytes) -> frozenset[bytes]:
    return frozenset(_WORD.findall(_IMPORT.sub(b"", raw)))


def is_user_path(path: str) -> bool:
    """Tell whether a file only uses kernels: tests, benchmarks, examples, docs, scripts."""
    *folders, name = path.split("/")
    return bool(_USER_FOLDERS & set(folders)) or _USER_FILE.fullmatch(name) is not None
