"""Everything that the report on an op is made from, as plain data: the key of the cache.

The code and its truth by content, the versions and the machine by name, the settings one by one.
Settings that say how fast a run is, not what it finds, are left out by name, so that a setting that
is added later counts until somebody says that it does not.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
import platform
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from gate import __version__
from gate.engine.content import Contents
from gate.engine.scope import Scope
from gate.engine.settings import RunSettings
from gate.schema.expr import Call
from gate.schema.match import covered
from gate.schema.model import OpSchema

LEFT_OUT = frozenset(
    {"jobs", "seconds", "gpus", "worker_socket", "trees", "triton_cache", "cases", "op_cases"}
)
"""Settings that change no report of a run that had time to end; `cases` and `op_cases` count as the
cases of the op."""
_PACKAGES = ("torch", "triton", "numpy", "ml_dtypes")
_NVIDIA = Path("/proc/driver/nvidia")


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """Where a report holds, told without importing torch."""

    device: str
    """`cuda` or `interpreter`."""
    name: str
    """What a worker will call its device; empty when that cannot be told."""
    driver: str
    """The GPU driver's version line; empty in the interpreter."""
    versions: Mapping[str, str]
    """Package -> version; python among them."""


def this_machine(device: str) -> Machine:
    """Return the machine for a device that is settled (`cuda` or `interpreter`)."""
    versions = {name: found for name in _PACKAGES if (found := _version(name))}
    versions["python"] = platform.python_version()
    if device == "cuda":
        return Machine(device=device, name=_gpu_name(), driver=_driver(), versions=versions)
    name = platform.processor() or platform.machine()
    return Machine(device=device, name=name, driver="", versions=versions)


class Recipes:
    """Makes the ingredients of the ops of one scope; each tree is read once."""

    def __init__(self, scope: Scope, settings: RunSettings) -> None:
        self._scope = scope
        self._settings = settings
        self._head = Contents(scope.head_tree)
        self._base = Contents(scope.base_tree) if scope.base_tree is not None else None

    def ingredients(self, schema: OpSchema) -> dict[str, Any] | None:
        """Return what the report on an op is made from, but for the machine.

        None when that cannot be told: the entry or a reference is in an installed package, or the
        kernels of the op are gone.

        Raises
            GitError  a tree cannot be read
        """
        code, truth = self._code_files(schema), self._truth_files(schema)
        if code is None or truth is None or self._scope.gone.of(schema.op):
            return None
        scope = self._scope
        trusted = schema.op not in scope.fresh
        from_base = self._base is not None and trusted and not scope.trust_head
        judge = self._base if from_base and self._base is not None else self._head
        gated = covered(schema, scope.index)
        return {
            "kernel-gate": f"{__version__} {source_digest()}",
            "op": schema.op,
            "schema": f"{schema.file} {schema.digest}",
            "kernels": list(gated),
            "code": self._head.digest(code),
            "truth": judge.digest(truth),
            "base": self._base.digest(code) if self._base is not None else "",
            "trusted": trusted,
            "pythonpath": list(scope.pythonpath),
            "setup": scope.config.setup,
            "settings": self._settings_of(schema.op),
        }

    def _settings_of(self, op: str) -> dict[str, str]:
        fields = dataclasses.fields(self._settings)
        kept = {f.name: repr(getattr(self._settings, f.name)) for f in fields}
        return {
            **{name: text for name, text in sorted(kept.items()) if name not in LEFT_OUT},
            "cases": repr(self._settings.cases_of(op)),
        }

    def _code_files(self, schema: OpSchema) -> set[str] | None:
        """Files of the entry, of the kernels with all they are made of, and of the setup."""
        index = self._scope.index
        target = schema.entry.target
        entry = target.module if target.is_path else index.file_of_module(target.module)
        if not entry:
            return None
        files = {entry, *filter(None, (self._scope.config.setup,))}
        for kernel in covered(schema, index):
            files |= index.kernels[kernel].files
            files |= {launcher.partition("::")[0] for launcher in index.kernels[kernel].launchers}
        return files

    def _truth_files(self, schema: OpSchema) -> set[str] | None:
        """Files of the reference and of `make` rules."""
        files = set()
        for call in (schema.reference, *(arg.make for arg in schema.args)):
            if isinstance(call, Call):
                if not call.target.is_path:
                    return None
                files.add(call.target.module)
        return files


def key_of(ingredients: Mapping[str, Any], machine: Machine) -> str:
    """Return the key: equal for equal ingredients on equal machines, whatever their order."""
    body = {**ingredients, "machine": dataclasses.asdict(machine)}
    return hashlib.sha256(json.dumps(body, sort_keys=True, default=str).encode()).hexdigest()


def scope_digest(recipes: Recipes, scope: Scope) -> str:
    """Return a digest of all that is to be run, equal in every shard of one run."""
    made = []
    for schema in scope.op_schemas:
        found = recipes.ingredients(schema)
        if found is not None:
            found["settings"].pop("shard")
        made.append(found or f"{schema.op} {schema.digest}")
    return hashlib.sha256(json.dumps(made, sort_keys=True).encode()).hexdigest()


@functools.cache
def source_digest() -> str:
    """Return a digest of kernel-gate's own source: a version number does not change with it."""
    digest = hashlib.sha256()
    for path in _sources(Path(__file__).resolve().parent.parent):
        digest.update(path.name.encode() + hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()[:16]


def _sources(package: Path) -> Iterator[Path]:
    yield from sorted(package.rglob("*.py"))


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return ""


def _gpu_name() -> str:
    """Return the one name that all GPUs of the host have; empty when there is none to be read."""
    names = set()
    for file in sorted(_NVIDIA.glob("gpus/*/information")):
        found = re.search(r"^Model:\s*(.+?)\s*$", _text(file), re.MULTILINE)
        names.add(found[1] if found else "")
    return names.pop() if len(names) == 1 else ""


def _driver() -> str:
    return _text(_NVIDIA / "version").partition("\n")[0].strip()


def _text(file: Path) -> str:
    try:
        return file.read_text(errors="replace")
    except OSError:
        return ""
