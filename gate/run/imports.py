"""Import the file or module that a call names, as its repository would."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from gate.schema.expr import Target


class Importer:
    """Imports from one tree; modules are loaded once and kept.

    A path under a `pythonpath` folder is imported from there (the longest match wins); else, with
    an `__init__.py` beside it, from the folder above the topmost package; else by path under a
    private name, with its folder importable.
    """

    def __init__(self, root: str, pythonpath: Sequence[str]) -> None:
        self.root = Path(root).resolve()
        self.folders = [(self.root / folder).resolve() for folder in pythonpath]
        self._loaded: dict[str, ModuleType] = {}
        for folder in reversed([*self.folders, self.root]):
            _importable(folder)

    def find(self, target: Target) -> Any:
        """Return what a target names.

        Raises
            FileNotFoundError, ImportError, AttributeError, and whatever importing raises
        """
        value: Any = self.module(target)
        for part in target.name.split("."):
            value = getattr(value, part)
        return value

    def module(self, target: Target) -> ModuleType:
        """Return a target's module."""
        found = self._loaded.get(target.module)
        if found is None:
            found = self._path(target.module) if target.is_path else self._dotted(target.module)
            self._loaded[target.module] = found
        return found

    def _dotted(self, name: str) -> ModuleType:
        return importlib.import_module(name)

    def _path(self, text: str) -> ModuleType:
        file = (self.root / text).resolve()
        if not file.is_relative_to(self.root):
            raise FileNotFoundError(f"{text} leads out of the repository")
        if not file.is_file():
            raise FileNotFoundError(f"there is no file {text}")
        base = self._import_base(file)
        if base is not None:
            _importable(base)
            parts = file.relative_to(base).with_suffix("").parts
            if all(part.isidentifier() for part in parts):
                module = importlib.import_module(".".join(parts))
                if _is_from(module, file):
                    return module
        return self._private(file)

    def _import_base(self, file: Path) -> Path | None:
        under = [folder for folder in self.folders if file.is_relative_to(folder)]
        if under:
            return max(under, key=lambda folder: len(folder.parts))
        if not (file.parent / "__init__.py").is_file():
            return None
        base = file.parent
        while (base / "__init__.py").is_file() and base != self.root:
            base = base.parent
        return base

    def _private(self, file: Path) -> ModuleType:
        _importable(file.parent)
        relative = file.relative_to(self.root).with_suffix("").as_posix()
        name = "_kernel_gate_" + "".join(c if c.isalnum() else "_" for c in relative)
        spec = importlib.util.spec_from_file_location(name, file)
        if spec is None or spec.loader is None:
            raise ImportError(f"{file.name} cannot be imported")
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        try:
            spec.loader.exec_module(module)
        except BaseException:
            sys.modules.pop(name, None)
            raise
        return module


def _is_from(module: ModuleType, file: Path) -> bool:
    """Whether a module was loaded from this file, and not from another of the same name (a file
    `numbers.py` that the standard library has too)."""
    origin = getattr(module, "__file__", None)
    return isinstance(origin, str) and Path(origin).resolve() == file


def _importable(folder: Path) -> None:
    text = str(folder)
    if text in sys.path:
        sys.path.remove(text)
    sys.path.insert(0, text)


Entry = Callable[..., Any]
"""What a target names, once found."""
