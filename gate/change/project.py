"""The Python files of one tree, parsed when they are first asked for, and what their names mean."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from gate.change.extract import extract
from gate.change.facts import OWN_CLASS, Definition, Dotted, Import, Kind, ModuleFacts
from gate.change.modules import ModuleMap
from gate.change.source import UnreadableSource, parse_source

MAX_HOPS = 16
"""Re-exports, base classes and aliases that are followed before a chain counts as endless."""


class Key(NamedTuple):
    """A definition by its place; sorts by file, then by name.

    A tuple, since sets and dicts of keys are most of the work here and a tuple hashes in C.
    """

    path: str
    """File, from the root."""
    name: str
    """Qualified name in the file."""

    def __str__(self) -> str:
        return f"{self.path}::{self.plain}"

    @property
    def plain(self) -> str:
        """The name as the source has it: `k@1`, a `k` that a later `k` shadows, is `k`."""
        return self.name.partition("@")[0]


@dataclass(frozen=True, slots=True)
class ModuleRef:
    """A module of the tree: the path of its file, or of its folder with a final `/`."""

    path: str
    """Where it is."""


@dataclass(frozen=True, slots=True)
class External:
    """A name that the tree does not define."""

    name: str
    """Dotted, as it would be imported: `triton.jit`."""


Meaning = Key | ModuleRef | External


class ParseCache:
    """Facts of files by their path and bytes, shared by the two sides of a comparison."""

    def __init__(self) -> None:
        self._facts: dict[tuple[str, bytes], ModuleFacts | UnreadableSource] = {}

    def facts(self, path: str, raw: bytes) -> ModuleFacts:
        """Return the facts of a file.

        Raises
            UnreadableSource  it cannot be parsed
        """
        key = (path, raw)
        if key not in self._facts:
            self._facts[key] = _read(path, raw)
        found = self._facts[key]
        if isinstance(found, UnreadableSource):
            raise UnreadableSource(found.line, found.why)
        return found


class Project:
    """The Python files of a tree.

    sources  path -> bytes, of every Python file
    """

    def __init__(self, sources: Mapping[str, bytes], cache: ParseCache) -> None:
        self.sources = sources
        """path -> bytes of every Python file."""
        self.unreadable: dict[str, UnreadableSource] = {}
        """Files that were asked for and cannot be parsed."""
        self.map = ModuleMap(sources)
        """Which file an import means."""
        self._cache = cache
        self._facts: dict[str, ModuleFacts | None] = {}
        self._looked_up: dict[tuple[str, str], tuple[Meaning, ...]] = {}
        self._meanings: dict[tuple[Key, Dotted], tuple[Meaning, ...]] = {}

    def facts(self, path: str) -> ModuleFacts | None:
        """Return the facts of a file; None if there is none or it cannot be parsed."""
        if path not in self._facts:
            self._facts[path] = self._parse(path)
        return self._facts[path]

    def loaded(self) -> Iterator[ModuleFacts]:
        """Yield the facts of every file that was parsed so far, by path."""
        for path in sorted(self._facts):
            facts = self._facts[path]
            if facts is not None:
                yield facts

    def definition(self, key: Key) -> Definition:
        """Return a definition that exists.

        Raises
            KeyError  there is none
        """
        facts = self.facts(key.path)
        if facts is None:
            raise KeyError(str(key))
        return facts.definitions[key.name]

    def meanings(self, key: Key, name: Dotted) -> tuple[Meaning, ...]:
        """Return what a name may mean inside a definition; several if branches bind it."""
        cached = self._meanings.get((key, name))
        if cached is None:
            cached = self._meanings[key, name] = tuple(dict.fromkeys(self._resolve(key, name)))
        return cached

    def _parse(self, path: str) -> ModuleFacts | None:
        raw = self.sources.get(path)
        if raw is None:
            return None
        try:
            return self._cache.facts(path, raw)
        except UnreadableSource as why:
            self.unreadable[path] = why
            return None

    def _resolve(self, key: Key, name: Dotted) -> Iterator[Meaning]:
        for start in self._heads(key, name[0]):
            rest = name[1:]
            if name[0] == OWN_CLASS and isinstance(start, Key):
                member = self.member(start, rest[0])  # an attribute of unknown origin is nothing
                yield from self._attributes(member, rest[1:], MAX_HOPS) if member else ()
            else:
                yield from self._attributes(start, rest, MAX_HOPS)

    def _heads(self, key: Key, head: str) -> tuple[Meaning, ...]:
        """What the first part of a name means: nested things first, then outwards, as Python."""
        definition = self.definition(key)
        if head == OWN_CLASS:
            return (Key(key.path, definition.owner),) if definition.owner else ()
        facts = self.facts(key.path)
        seen = key.name
        while seen and facts is not None:
            around = facts.definitions.get(seen)
            if around is None:
                break
            if around.kind is not Kind.CLASS or seen == definition.scope:
                if f"{seen}.{head}" in facts.definitions:
                    return (Key(key.path, f"{seen}.{head}"),)
                if head in around.imports:
                    return self._imported(key.path, around.imports[head], MAX_HOPS)
                if head in around.local and seen != key.name:
                    return (Key(key.path, seen),)
            seen = around.scope
        return self.lookup(key.path, head)

    def lookup(self, path: str, name: str, hops: int = MAX_HOPS) -> tuple[Meaning, ...]:
        """Return what a name of a module may mean; empty if the module does not bind it."""
        key = (path, name)
        if key not in self._looked_up:
            self._looked_up[key] = ()  # what an import cycle sees
            self._looked_up[key] = tuple(dict.fromkeys(self._lookup(path, name, hops)))
        return self._looked_up[key]

    def _lookup(self, path: str, name: str, hops: int) -> Iterator[Meaning]:
        facts = self.facts(path)
        if facts is not None and hops:
            if name in facts.definitions:
                yield Key(path, name)
            yield from self._imported(path, facts.imports.get(name, ()), hops - 1)
            if name not in facts.definitions and name not in facts.imports:
                for star in facts.stars:
                    yield from self._imported(path, (replace(star, name=name),), hops)
        submodule = self.map.submodule(path, name)
        if submodule and submodule != path:
            yield ModuleRef(submodule)

    def _imported(self, path: str, imports: Iterable[Import], hops: int) -> tuple[Meaning, ...]:
        found: list[Meaning] = []
        for one in imports:
            module = self._module(path, one)
            if not module:
                dots = "." * one.level
                found.append(External(f"{dots}{one.module}" + (f".{one.name}" if one.name else "")))
            elif not one.name:
                found.append(ModuleRef(module))
            elif hops:
                found.extend(self.lookup(module, one.name, hops - 1))
        return tuple(found)

    def _module(self, path: str, one: Import) -> str:
        if one.level:
            return self.map.relative(path, one.level, one.module)
        return self.map.absolute(path, one.module)

    def _attributes(self, start: Meaning, rest: Dotted, hops: int) -> Iterator[Meaning]:
        """What `start.rest` means; a definition whose attribute is unknown means itself."""
        if not rest:
            yield start
            return
        match start:
            case External():
                yield External(".".join((start.name, *rest)))
            case ModuleRef():
                for inner in self.lookup(start.path, rest[0]) if hops else ():
                    yield from self._attributes(inner, rest[1:], hops - 1)
            case Key():
                yield from self._members(start, rest, hops)

    def _members(self, owner: Key, rest: Dotted, hops: int) -> Iterator[Meaning]:
        member = self.member(owner, rest[0])
        if member is not None:
            yield from self._attributes(member, rest[1:], hops)
            return
        yield owner
        definition = self.definition(owner)
        if definition.kind is Kind.VALUE and definition.target and not definition.chain and hops:
            for start in self._heads(owner, definition.target[0]):  # `tt = triton; tt.jit`
                if start != owner:
                    yield from self._attributes(start, definition.target[1:] + rest, hops - 1)

    def member(self, owner: Key, name: str, hops: int = MAX_HOPS) -> Key | None:
        """Return the method or attribute `name` of a class or of its bases; None if unknown."""
        facts = self.facts(owner.path)
        if facts is None or owner.name not in facts.definitions:
            return None
        if facts.definitions[owner.name].kind is not Kind.CLASS:
            return None
        if f"{owner.name}.{name}" in facts.definitions:
            return Key(owner.path, f"{owner.name}.{name}")
        for base in facts.definitions[owner.name].bases if hops else ():
            for meaning in self.meanings(owner, base):
                if isinstance(meaning, Key) and meaning != owner:
                    found = self.member(meaning, name, hops - 1)
                    if found is not None:
                        return found
        return None


def _read(path: str, raw: bytes) -> ModuleFacts | UnreadableSource:
    try:
        return extract(path, parse_source(raw))
    except UnreadableSource as why:
        return why
    except RecursionError:
        return UnreadableSource(0, "nested too deeply to read")
