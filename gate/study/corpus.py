"""The corpus as data: which kernels there are, which are wrong on purpose, and when it shows."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import yaml

from gate.change.dots import may_dot
from gate.change.kernels import KernelIndex, scan
from gate.change.stores import store_lines
from gate.change.tiles import static_tiles
from gate.datafiles import data_folder
from gate.engine.task import OpTask
from gate.errors import UsageError, did_you_mean
from gate.schema.load import load_files
from gate.schema.match import covered
from gate.schema.model import OpSchema

INDEXES = {"paper": "corpus.yaml", "field": "field/index.yaml"}
"""Part of a corpus -> its index file, from the corpus's folder; the first must exist."""
PARTS = (*INDEXES, "all")
"""What a study may take: the paper's rows, the field's pairs, or both."""
_DEVICES = ("interpreter", "cuda")
_ROW_KEYS = frozenset(
    {"row", "op", "role", "family", "control", "bug", "class", "trigger", "visible", "devices"}
)


class Role(enum.Enum):
    """What a corpus kernel is there for."""

    CONTROL = "control"
    """Correct: a failure on it is a false alarm."""
    BUGGY = "buggy"
    """Wrong on purpose: a pass on it is a miss."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CorpusKernel:
    """One kernel of the corpus."""

    op: str
    """Its op, and its name in every table."""
    role: Role
    """Control or buggy."""
    family: str
    """The op that a control and its bugs share."""
    control: str = ""
    """For a buggy one: the correct kernel that the bug was planted in."""
    bug: str = ""
    """For a buggy one: what is wrong, in words."""
    kind: str = ""
    """For a buggy one of the field: its class of bug (key `class`)."""
    trigger: str = ""
    """For a buggy one: the exact condition under which a result is wrong, in the words of a
    diagnosis (`gate.judge.reading`)."""
    devices: tuple[str, ...] = _DEVICES
    """Devices that can show the bug."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Corpus:
    """A corpus folder, read."""

    root: Path
    """The folder that holds the corpus folder; entries are paths from here."""
    name: str
    """Name of the corpus folder."""
    kernels: tuple[CorpusKernel, ...]
    """In the order of the index files."""
    tasks: tuple[OpTask, ...]
    """One a kernel, in the same order."""


@dataclass(frozen=True, slots=True)
class _CorpusTree:
    """The files of a corpus as a tree; what else lies in its root is not looked at."""

    root: Path
    """The folder that holds the corpus folder."""
    name: str
    """Name of the corpus folder."""
    part: str = "all"
    """What of it is looked at."""

    def paths(self) -> tuple[str, ...]:
        """Every Python and schema file, from the root, sorted."""
        found = (self.root / self.name).rglob("*")
        wanted = (path for path in found if path.suffix in (".py", ".yaml") and path.is_file())
        if self.part != "all":
            field = self.root / self.name / "field"
            wanted = (path for path in wanted if (field in path.parents) is (self.part == "field"))
        return tuple(sorted(path.relative_to(self.root).as_posix() for path in wanted))

    def read(self, path: str) -> bytes | None:
        """The bytes of a file, None if there is none."""
        place = self.root / path
        return place.read_bytes() if place.is_file() else None


def load_corpus(
    folder: Path | None = None, only: tuple[str, ...] = (), part: str = "all"
) -> Corpus:
    """Read a corpus: its index files, every schema and every kernel's source. Nothing is imported.

    folder  the corpus; None: the one that belongs to this copy of kernel-gate.
    only    globs over op names; empty: all.
    part    one of `PARTS`.

    Raises
        UsageError   no index, a row that says too little, an op without schema, or `only` that
                     names nothing
        SchemaError  a schema of the corpus is wrong
    """
    place = (folder or data_folder("corpus")).resolve()
    kernels = _chosen(_read_indexes(place, part), only, place)
    tree = _CorpusTree(place.parent, place.name, part)
    index = scan(tree)
    texts = {path: tree.read(path) or b"" for path in tree.paths() if path.endswith(".op.yaml")}
    schemas = {schema.op: schema for schema in load_files(texts)}
    missing = [kernel.op for kernel in kernels if kernel.op not in schemas]
    if missing:
        near = did_you_mean(missing[0], schemas)
        raise UsageError(f"{place}: {missing[0]} is in the index and has no op schema{near}")
    tasks = tuple(_task(schemas[kernel.op], index, place.parent) for kernel in kernels)
    return Corpus(root=place.parent, name=place.name, kernels=kernels, tasks=tasks)


def _chosen(
    kernels: list[CorpusKernel], only: tuple[str, ...], place: Path
) -> tuple[CorpusKernel, ...]:
    chosen = [k for k in kernels if not only or any(fnmatchcase(k.op, glob) for glob in only)]
    if not chosen:
        near = did_you_mean(only[0], (k.op for k in kernels)) if only else ""
        raise UsageError(f"{place}: no kernel of the corpus is named {', '.join(only)}{near}")
    return tuple(chosen)


def _task(schema: OpSchema, index: KernelIndex, root: Path) -> OpTask:
    gated = covered(schema, index)
    return OpTask(
        schema=schema,
        root=str(root),
        trusted_root=str(root),
        kernels=gated,
        dots=not gated or any(may_dot(index, kernel) for kernel in gated),
        must_launch=tuple(kernel for kernel in schema.kernels if kernel in gated),
        tiles=tuple(sorted({t for kernel in gated for t in static_tiles(index, kernel)})),
        files={k: (index.kernels[k].file, index.kernels[k].line) for k in gated},
        stores={k: store_lines(index, k) for k in gated},
    )


def _read_indexes(place: Path, part: str) -> list[CorpusKernel]:
    kernels: list[CorpusKernel] = []
    for key, name in INDEXES.items():
        file = place / name
        if part not in (key, "all"):
            continue
        if not file.is_file():
            if key == part or key == "paper":
                raise UsageError(f"{file}: not found; a corpus folder has a {name}")
            continue
        kernels += [_kernel(row, f"{file}[{i}]") for i, row in enumerate(_rows(file))]
    twice = {k.op for k in kernels if sum(other.op == k.op for other in kernels) > 1}
    if twice:
        raise UsageError(f"{place}: in the index twice: {', '.join(sorted(twice))}")
    return kernels


def _rows(file: Path) -> list[Any]:
    try:
        rows = yaml.safe_load(file.read_text(encoding="utf-8"))
    except yaml.YAMLError as problem:
        raise UsageError(f"{file}: not YAML: {problem}") from None
    if not isinstance(rows, list):
        raise UsageError(f"{file}: an index is a list with a row for each kernel")
    return rows


def _kernel(row: Any, where: str) -> CorpusKernel:
    if not isinstance(row, dict):
        raise UsageError(f"{where}: a row is a mapping with op, role and family")
    unknown = set(row) - _ROW_KEYS
    if unknown:
        word = str(min(unknown))
        raise UsageError(f"{where}: unknown key {word}{did_you_mean(word, _ROW_KEYS)}")
    if row.get("role") not in {role.value for role in Role}:
        raise UsageError(f"{where}: role is {row.get('role')}; it is control or buggy")
    role = Role(row["role"])
    strangers = set(row.get("devices", ())) - set(_DEVICES)
    if strangers:
        known = " and ".join(_DEVICES)
        raise UsageError(f"{where}: no device is named {min(strangers)}; there are {known}")
    needed = ("op", "family", *(("control", "bug", "trigger") if role is Role.BUGGY else ()))
    missing = [key for key in needed if not row.get(key)]
    if missing:
        raise UsageError(f"{where}: a {role.value} row needs {', '.join(missing)}")
    return CorpusKernel(
        op=row["op"], role=role, family=row["family"], control=row.get("control", ""),
        bug=row.get("bug", ""), kind=row.get("class", ""), trigger=str(row.get("trigger", "")),
        devices=tuple(row.get("devices", _DEVICES)),
    )  # fmt: skip
