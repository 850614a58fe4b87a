"""What running an op depends on in a tree of files, as one digest: rather too much than too little.

A file counts when a file that counts imports it, or names it in a string that could be a module or
a path, whatever the import machinery would make of it; so do the packages around it, and every
file beside or below it that is neither Python, documentation nor an op schema (tables of tuned
block sizes are read by paths that nobody can tell). A digest that changes too often costs a run,
one that changes too seldom would keep a wrong verdict.
"""

from __future__ import annotations

import ast
import hashlib
import posixpath
import re
from collections.abc import Iterable, Iterator

from gate.change.tree import Tree, read_all

_WORD = re.compile(r"\w+")
_NO_DATA = (".py", ".op.yaml", ".op.yml", ".md", ".rst", ".html", ".ipynb", ".pdf", ".png", ".svg",
            ".jpg", ".jpeg", ".gif")  # fmt: skip
"""Files that no kernel reads at run time, and Python, which is found by name."""


class Contents:
    """The files of one tree, read once."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self._paths = tree.paths()
        self._known = frozenset(self._paths)
        self._named: dict[str, list[str]] = {}
        for path in self._paths:
            if path.endswith(".py"):
                self._named.setdefault(_name_of(path), []).append(path)
        self._raw: dict[str, bytes] = {}
        self._uses: dict[str, frozenset[str]] = {}

    def digest(self, starts: Iterable[str]) -> str:
        """Return a digest of these files, of all that they may import, and of the data beside them.

        A file that is not in the tree counts as absent.

        Raises
            GitError  the tree cannot be read
        """
        wanted = sorted(set(starts))
        held = self._reached(wanted)
        files = sorted({*held, *self._data_beside(held)})
        raw = self._read(files)
        digest = hashlib.sha256()
        for path in [path for path in wanted if path not in self._known]:
            digest.update(f"absent {path}\n".encode("utf-8", "surrogateescape"))
        for path in files:
            line = f"{hashlib.sha256(raw[path]).hexdigest()} {path}\n"
            digest.update(line.encode("utf-8", "surrogateescape"))
        return digest.hexdigest()

    def _reached(self, starts: Iterable[str]) -> set[str]:
        held: set[str] = set()
        waiting = [path for path in starts if path in self._known]
        while waiting:
            path = waiting.pop()
            if path in held:
                continue
            held.add(path)
            waiting.extend(self._packages_of(path))
            if path.endswith(".py"):
                for word in self._words(path):
                    waiting.extend(self._named.get(word, ()))
        return held

    def _packages_of(self, path: str) -> Iterator[str]:
        for folder in _folders_of(path):
            init = posixpath.join(folder, "__init__.py")
            if init in self._known:
                yield init

    def _words(self, path: str) -> frozenset[str]:
        if path not in self._uses:
            self._uses[path] = frozenset(_words_of(self._read([path])[path]))
        return self._uses[path]

    def _data_beside(self, held: set[str]) -> Iterator[str]:
        folders = frozenset(posixpath.dirname(path) for path in held)
        for path in self._paths:
            if not path.endswith(_NO_DATA) and not folders.isdisjoint(_folders_of(path)):
                yield path

    def _read(self, paths: Iterable[str]) -> dict[str, bytes]:
        missing = [path for path in paths if path not in self._raw]
        if missing:
            self._raw.update(dict.fromkeys(missing, b""))
            self._raw.update(read_all(self._tree, missing))
        return self._raw


def _name_of(path: str) -> str:
    """Return the last word of a module's dotted name: of a package, its folder's name."""
    folder, name = posixpath.split(path)
    return posixpath.basename(folder) if name == "__init__.py" else name.removesuffix(".py")


def _folders_of(path: str) -> Iterator[str]:
    """Yield the folders that a path is in, from the innermost to the root, which is empty."""
    folder = posixpath.dirname(path)
    while folder:
        yield folder
        folder = posixpath.dirname(folder)
    yield ""


def _words_of(raw: bytes) -> Iterator[str]:
    """Yield the words of import statements, and of strings that could be a module or a path."""
    try:
        tree = ast.parse(raw)
    except (SyntaxError, ValueError, RecursionError):
        yield from _WORD.findall(raw.decode("utf-8", "replace"))
        return
    for node in ast.walk(tree):
        match node:
            case ast.Import():
                for alias in node.names:
                    yield from alias.name.split(".")
            case ast.ImportFrom():
                yield from (node.module or "").split(".")
                for alias in node.names:
                    yield alias.name
            case ast.Constant(value=str(text)) if len(text) < 500 and not re.search(r"\s", text):
                yield from _WORD.findall(text)
