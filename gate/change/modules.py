"""Which file of a tree an import statement means.

Import roots are guessed as Python and the usual layouts have them: the folder above the topmost
package of the importer, the folders above that, then any folder that holds the wanted name.
"""

from __future__ import annotations

import posixpath
import sys
from collections.abc import Iterable, Iterator

_ALWAYS_EXTERNAL = frozenset({"triton", "torch", "numpy"})
"""Absolute imports of these never mean a folder of the repository that is called the same."""


class ModuleMap:
    """Finds modules among the paths of a tree.

    A module is named by the path of its file, or of its folder with a final `/` if that is a
    package without `__init__.py`.
    """

    def __init__(self, paths: Iterable[str]) -> None:
        self._files = frozenset(path for path in paths if path.endswith(".py"))
        self._folders: set[str] = set()
        self._tops: dict[str, set[str]] = {}
        for path in self._files:
            self._note(path)
        self._found: dict[tuple[str, str], str] = {}

    def absolute(self, importer: str, dotted: str) -> str:
        """Return the module that `import dotted` means in `importer`; empty if it is not here."""
        folder = posixpath.dirname(importer)
        key = (folder, dotted)
        if key not in self._found:
            self._found[key] = self._absolute(folder, dotted)
        return self._found[key]

    def relative(self, importer: str, level: int, dotted: str) -> str:
        """Return the module that `from ...dotted import x` means; empty if it is not here.

        level  the number of dots, at least 1
        """
        folder = posixpath.dirname(importer)
        for _ in range(level - 1):
            if not folder:
                return ""
            folder = posixpath.dirname(folder)
        return self._at(folder, dotted) if dotted else self._package(folder)

    def submodule(self, package: str, name: str) -> str:
        """Return the module `name` inside a package; empty if there is none."""
        if not package.endswith(("/", "/__init__.py")) and package != "__init__.py":
            return ""
        return self._at(posixpath.dirname(package).strip("/"), name)

    def by_name(self, dotted: str) -> str:
        """Return the file of a dotted module name, wherever its import root is; empty if none."""
        found = self.absolute("", dotted)
        return "" if found.endswith("/") else found

    def _absolute(self, folder: str, dotted: str) -> str:
        top = dotted.partition(".")[0]
        if top in _ALWAYS_EXTERNAL or top not in self._tops:
            return ""
        if top in sys.stdlib_module_names and folder not in self._tops[top]:
            return ""
        for root in self._roots(folder, top):
            found = self._at(root, dotted)
            if found:
                return found
        return ""

    def _roots(self, folder: str, top: str) -> Iterator[str]:
        root = folder
        while root and self._is_package(root):
            root = posixpath.dirname(root)
        while True:
            yield root
            if not root:
                break
            root = posixpath.dirname(root)
        near = posixpath.join(folder, "")

        def distance(other: str) -> tuple[bool, int, str]:
            shared = posixpath.commonprefix([near, posixpath.join(other, "")])
            return self._is_package(other), -len(shared), other

        yield from sorted(self._tops[top], key=distance)

    def _at(self, root: str, dotted: str) -> str:
        base = posixpath.join(root, *dotted.split("."))
        package = posixpath.join(base, "__init__.py")
        if package in self._files:
            return package
        if f"{base}.py" in self._files:
            return f"{base}.py"
        return f"{base}/" if base in self._folders else ""

    def _package(self, folder: str) -> str:
        init = posixpath.join(folder, "__init__.py")
        return init if init in self._files else f"{folder}/"

    def _is_package(self, folder: str) -> bool:
        return posixpath.join(folder, "__init__.py") in self._files

    def _note(self, path: str) -> None:
        folder, name = posixpath.split(path)
        self._tops.setdefault(name.removesuffix(".py"), set()).add(folder)
        while folder and folder not in self._folders:
            self._folders.add(folder)
            above, name = posixpath.split(folder)
            self._tops.setdefault(name, set()).add(above)
            folder = above
