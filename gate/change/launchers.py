"""From a kernel up: the functions that launch it, and the functions that call those.

A launch is any mention of a kernel in host code, so that `kernel[grid](...)`, `k = kernel; k[...]`,
`partial(kernel, ...)` and a dict of kernels all count. From there callers are followed up to the
public entry: every mention in the same file, every call from another file. The way ends at methods
that need an instance (a schema's entry cannot be one) and leaves out code that only uses the
kernel: tests, benchmarks, examples.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from gate.change.facts import Kind
from gate.change.graph import Graph
from gate.change.project import Key, Project

_USER_FOLDERS = frozenset(
    {"test", "tests", "benchmark", "benchmarks", "bench", "example", "examples", "tutorials"}
    | {"doc", "docs", "scripts"}
)
_USER_FILE = re.compile(r"(test_.*|.*_test|conftest|bench_.*|benchmark_.*|.*_benchmark|setup)\.py")
_USER_FUNCTION = re.compile(r"(test|bench|benchmark)(_.*)?")

_IMPORT = re.compile(
    rb"^[ \t]*(?:from[ \t]+(\.*)([\w.]*)[ \t]+import[ \t]+([^\n#]*)|import[ \t]+([^\n#]+))",
    re.MULTILINE,
)
_WORD = re.compile(rb"\w+")


class Launchers:
    """Finds launchers over the files that were parsed, and parses importers on the way up."""

    def __init__(self, graph: Graph, jit: frozenset[Key], seeds: Iterable[str]) -> None:
        self._graph = graph
        self._project = graph.project
        self._jit = jit
        self._users: dict[Key, set[Key]] = {}
        self._callers: dict[Key, set[Key]] = {}
        self._launched: set[Key] = set()
        self._added: set[str] = set()
        self._imports = _ImportGraph(graph.project)
        for path in seeds:
            self._add_file(path)

    def is_kernel(self, key: Key) -> bool:
        """Tell whether a jit function is started from the host; else it is a helper of others.

        A function that returns a value is a helper (Triton compiles no kernel that returns one),
        unless a foreign decorator makes a kernel of it. One that nobody uses is a kernel: its
        launch may be out of sight.
        """
        definition = self._project.definition(key)
        if key in self._launched:
            return True
        users = self._users_through_values(key)
        host = any(user not in self._jit for user in users)
        if host and self._has_foreign_decorator(key):
            return True
        return not definition.returns_value and (host or not users)

    def of(self, kernels: Iterable[Key]) -> dict[Key, tuple[Key, ...]]:
        """Return the launchers of each kernel: those that start it first, then their callers."""
        starts = {kernel: self._direct(kernel) for kernel in kernels}
        self._parse_importers({key for found in starts.values() for key in found})
        return {kernel: self._climb(direct) for kernel, direct in starts.items()}

    def _add_file(self, path: str) -> None:
        facts = self._project.facts(path)
        if facts is None or path in self._added:
            return
        self._added.add(path)
        for name in facts.definitions:
            key = Key(path, name)
            for used in self._graph.uses(key):
                self._users.setdefault(used, set()).add(key)
            for called in self._graph.calls(key):
                self._callers.setdefault(called, set()).add(key)
            if key not in self._jit:
                self._launched |= self._graph.launches(key) & self._jit

    def _users_through_values(self, key: Key) -> set[Key]:
        """Functions and scripts that mention `key`, or a value that mentions it."""
        seen = {key}
        waiting = [key]
        found: set[Key] = set()
        while waiting:
            for user in self._users.get(waiting.pop(), set()) - seen:
                seen.add(user)
                if self._project.definition(user).kind is Kind.VALUE:
                    waiting.append(user)
                else:
                    found.add(user)
        return found

    def _has_foreign_decorator(self, key: Key) -> bool:
        for name in self._project.definition(key).decorators:
            meanings = self._project.meanings(key, name)
            if not any(self._graph.is_jit(m) or "triton" in str(m) for m in meanings):
                return True
        return False

    def _direct(self, kernel: Key) -> tuple[Key, ...]:
        users = self._users_through_values(kernel) - self._jit
        return tuple(sorted(filter(self._is_launcher, users), key=_order))

    def _is_launcher(self, key: Key) -> bool:
        if self._project.definition(key).kind is not Kind.FUNCTION:
            return False
        return not _USER_FUNCTION.fullmatch(key.name.rpartition(".")[2])

    def _climb(self, direct: tuple[Key, ...]) -> tuple[Key, ...]:
        found = dict.fromkeys(key for key in direct if not is_user_path(key.path))
        if not found:  # a kernel that lives among tests or examples is launched there
            found = dict.fromkeys(direct)
        waiting = list(found)
        while waiting:
            callers = sorted(self._callers_of(waiting.pop(0)) - set(found), key=_order)
            found |= dict.fromkeys(callers)
            waiting.extend(callers)
        return tuple(found)

    def _callers_of(self, key: Key) -> set[Key]:
        """Launchers that start `key`: mentions in the same file, calls from other files."""
        definition = self._project.definition(key)
        here = {u for u in self._users_through_values(key) if u.path == key.path}
        found = here if definition.bound else here | self._callers.get(key, set())
        if definition.owner and key.name != definition.owner:
            owner = Key(key.path, definition.owner)
            users = self._users_through_values(owner)
            found = found | {u for u in users if u.path == key.path}
            if self._is_autograd(owner):
                found |= self._callers.get(owner, set())
        return {
            caller
            for caller in found - self._jit
            if self._is_launcher(caller)
            and (caller.path == key.path or not is_user_path(caller.path))
        }

    def _is_autograd(self, owner: Key) -> bool:
        """Whether a class is called without an instance: a `torch.autograd.Function`."""
        facts = self._project.facts(owner.path)
        definition = facts.definitions.get(owner.name) if facts is not None else None
        return definition is not None and any(base[-1] == "Function" for base in definition.bases)

    def _parse_importers(self, launchers: set[Key]) -> None:
        """Parse the files that import a launcher, then those that import its callers, and so on."""
        names = {key.name.partition(".")[0] for key in launchers}
        reached = {key.path for key in launchers}
        while True:
            new = self._imports.importers(reached, names) - self._added
            if not new:
                return
            for path in sorted(new):
                self._project.facts(path)
            for path in sorted(new):
                self._add_file(path)
            self._added |= new
            reached |= {path for path in new if self._passes_on(path, names)}
            callers = set(self._climb(tuple(sorted(launchers, key=_order)))) - launchers
            launchers = launchers | callers
            names |= {key.name.partition(".")[0] for key in callers}
            reached |= {key.path for key in callers}

    def _passes_on(self, path: str, names: set[str]) -> bool:
        """Whether other files may take a launcher from this one: it imports one, or all names."""
        facts = self._project.facts(path)
        return facts is not None and bool(facts.stars or names & set(facts.imports))


class _ImportGraph:
    """Imports of every file, read from its text without parsing it."""

    def __init__(self, project: Project) -> None:
        self._project = project
        self._targets: Mapping[str, frozenset[str]] | None = None
        self._words: dict[str, frozenset[str]] = {}

    def importers(self, modules: set[str], names: set[str]) -> set[str]:
        """Return the files that import one of `modules`, or a package above it, and say a name."""
        wanted = modules | {package for module in modules for package in _packages(module)}
        if self._targets is None:
            self._targets = {
                path: frozenset(self._imported(path, raw))
                for path, raw in self._project.sources.items()
                if not is_user_path(path)
            }
        return {
            path
            for path, targets in self._targets.items()
            if targets & wanted and names & self._words_of(path)
        }

    def _words_of(self, path: str) -> frozenset[str]:
        if path not in self._words:
            raw = self._project.sources[path]
            self._words[path] = frozenset(word.decode("latin-1") for word in _WORD.findall(raw))
        return self._words[path]

    def _imported(self, path: str, raw: bytes) -> Iterator[str]:
        for dots, module, names, plain in _IMPORT.findall(raw):
            if plain:
                for one in plain.split(b","):
                    yield self._project.map.absolute(path, _text(one.split()[:1]))
            elif dots:
                found = self._project.map.relative(path, len(dots), module.decode("latin-1"))
                yield found
                yield from self._submodules(found, names)
            else:
                found = self._project.map.absolute(path, module.decode("latin-1"))
                yield found
                yield from self._submodules(found, names)

    def _submodules(self, package: str, names: bytes) -> Iterator[str]:
        for name in _WORD.findall(names) if package.endswith(("/", "__init__.py")) else ():
            yield self._project.map.submodule(package, name.decode("latin-1"))


def is_user_path(path: str) -> bool:
    """Tell whether a file only uses kernels: tests, benchmarks, examples, docs, scripts."""
    *folders, name = path.split("/")
    return bool(_USER_FOLDERS & set(folders)) or _USER_FILE.fullmatch(name) is not None


def _packages(module: str) -> Iterator[str]:
    folder = module.rstrip("/").rpartition("/")[0]
    while folder:
        yield f"{folder}/__init__.py"
        yield f"{folder}/"
        folder = folder.rpartition("/")[0]


def _order(key: Key) -> tuple[str, str]:
    return key.path, key.name


def _text(words: list[bytes]) -> str:
    return words[0].decode("latin-1") if words else ""
