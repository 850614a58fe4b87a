"""Every Triton kernel of a tree, with all that it is made of. Nothing is imported or run."""

from __future__ import annotations

import gc
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from types import MappingProxyType

from gate.change.closure import Closures, Part
from gate.change.facts import Kind
from gate.change.graph import Graph
from gate.change.jit import find_jit_functions
from gate.change.launchers import Launchers
from gate.change.project import Key, ParseCache, Project
from gate.change.tree import Tree, read_all

_DEVICE_CODE = re.compile(rb"\btl\.")
"""How device code reads and writes memory, wherever its decorator comes from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kernel:
    """One jit function that is started from the host."""

    id: str
    """`path/from/root.py::name`; methods as `Class.name`, nested functions as `outer.name`."""
    file: str
    """Its file, from the root."""
    name: str
    """Its qualified name in the file."""
    line: int
    """1-based line of its `def`."""
    parts: tuple[Part, ...]
    """What it is made of: itself, helpers, constants, launchers; itself first."""
    launchers: tuple[str, ...]
    """Ids of the functions that launch it, then of their callers up to the public entry."""
    aliases: tuple[str, ...] = ()
    """Ids under which it is reachable too: `fast = triton.jit(kernel)` gives `path::fast`."""
    params: tuple[str, ...] = ()
    """Names of its parameters in order."""
    unreadable: str = ""
    """Why its file cannot be parsed any more; the rest is then told from the base."""

    @property
    def files(self) -> frozenset[str]:
        """Every file that a part of it lies in."""
        return frozenset(part.key.path for part in self.parts)


class KernelIndex:
    """The kernels of one tree."""

    def __init__(
        self,
        kernels: Mapping[str, Kernel],
        *,
        helpers: tuple[str, ...],
        graph: Graph,
    ) -> None:
        self.kernels = MappingProxyType(dict(sorted(kernels.items())))
        """Kernel id -> kernel, sorted."""
        self.helpers = helpers
        """Ids of the jit functions that only other jit functions call."""
        self.graph = graph
        """The definitions behind it, for comparison and for tile sizes."""

    @property
    def problems(self) -> tuple[str, ...]:
        """Files that were needed and could not be read: `path:line: why`, sorted."""
        return tuple(
            f"{path}:{why.line}: {why.why}; its kernels are not seen"
            if why.line
            else f"{path}: {why.why}; its kernels are not seen"
            for path, why in sorted(self.graph.project.unreadable.items())
        )

    def with_kernels(self, more: Mapping[str, Kernel]) -> KernelIndex:
        """Return an index that has `more` kernels beside its own."""
        return KernelIndex(
            {**self.kernels, **more},
            helpers=self.helpers,
            graph=self.graph,
        )

    def file_of_module(self, dotted: str) -> str:
        """Return the file of a dotted module name, such as `pkg.ops.norm`; empty if none."""
        return self.graph.project.map.by_name(dotted)

    def in_file(self, path: str) -> tuple[str, ...]:
        """Return the ids of the kernels that a file defines."""
        return tuple(id for id, kernel in self.kernels.items() if kernel.file == path)


def scan(tree: Tree, cache: ParseCache | None = None) -> KernelIndex:
    """Find every kernel of a tree.

    cache  parsed files of another scan; those with equal path and bytes are not parsed again

    Only files that may hold a kernel are parsed, those whose definitions they use, and those that
    call their launchers. A file that cannot be parsed is a problem, not an error.

    Raises
        GitError  the tree cannot be read
    """
    with _collector_paused():
        return _scan(tree, cache or ParseCache())


def affected_by_files(index: KernelIndex, paths: Iterable[str]) -> tuple[str, ...]:
    """Return the ids of the kernels of which a part lies in one of `paths`."""
    wanted = frozenset(paths)
    return tuple(id for id, kernel in index.kernels.items() if kernel.files & wanted)


@contextmanager
def _collector_paused() -> Iterator[None]:
    """Pause Python's garbage collector, which else takes as long as the scan itself.

    Syntax trees hold no cycles and are kept for the whole run. They are frozen at the end, so that
    the next collection does not walk through them either; dropping an index still frees it.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if was_on:
            gc.enable()


def _scan(tree: Tree, cache: ParseCache) -> KernelIndex:
    paths = [path for path in tree.paths() if path.endswith(".py")]
    project = Project(read_all(tree, paths), cache)
    seeds = [path for path, raw in project.sources.items() if _may_define_kernels(raw)]
    graph = Graph(project)
    jit = find_jit_functions(graph, seeds)
    launchers = Launchers(graph, jit, seeds)
    found = frozenset(key for key in jit if launchers.is_kernel(key))
    above = launchers.of(sorted(found))
    aliases = _aliases(graph, found)
    closures = Closures(graph, jit, found, aliases, above)
    kernels: dict[str, Kernel] = {}
    for key in sorted(found):
        kernel = _kernel(graph, key, closures.parts(key), above[key], aliases.get(key, ()))
        kernels[kernel.id] = _joined(kernels[kernel.id], kernel) if kernel.id in kernels else kernel
    return KernelIndex(
        kernels,
        helpers=tuple(sorted(str(key) for key in jit - found)),
        graph=graph,
    )


def _may_define_kernels(raw: bytes) -> bool:
    """Whether a file must be parsed in any case; others are when they use or help a kernel."""
    if b"jit" in raw or b"gluon" in raw:
        return True
    return b"tl." in raw and _DEVICE_CODE.search(raw) is not None


def _joined(kernel: Kernel, shadowed: Kernel) -> Kernel:
    """Return a kernel with the parts of an earlier one of the same name in the same file."""
    return replace(
        kernel,
        parts=tuple(dict.fromkeys((*kernel.parts, *shadowed.parts))),
        launchers=tuple(dict.fromkeys((*kernel.launchers, *shadowed.launchers))),
    )


def _kernel(
    graph: Graph, key: Key, parts: tuple[Part, ...], above: tuple[Key, ...], aliases: Iterable[Key]
) -> Kernel:
    definition = graph.project.definition(key)
    return Kernel(
        id=str(key), file=key.path, name=key.plain, line=definition.line, parts=parts,
        launchers=tuple(map(str, above)), aliases=tuple(sorted(map(str, aliases))),
        params=definition.params,
    )  # fmt: skip


def _aliases(graph: Graph, kernels: frozenset[Key]) -> dict[Key, frozenset[Key]]:
    """Values that are a kernel: `a = kernel`, `a = triton.jit(f)`, `a = autotune(...)(kernel)`."""
    found: dict[Key, set[Key]] = {}
    for facts in list(graph.project.loaded()):
        for name, definition in facts.definitions.items():
            if definition.kind is not Kind.VALUE or not definition.target:
                continue
            if any(call[-1] == "partial" for call in definition.chain):
                continue
            key = Key(facts.path, name)
            for function in graph.functions_of(key, definition.target) & kernels:
                found.setdefault(function, set()).add(key)
    return {kernel: frozenset(keys) for kernel, keys in found.items()}
