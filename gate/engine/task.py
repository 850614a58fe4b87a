"""What the engine knows of one op before its first case."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from gate.schema.model import OpSchema


@dataclass(frozen=True, slots=True, kw_only=True)
class OpTask:
    """One op to run: its schema, and the two trees that its code and its truth come from."""

    schema: OpSchema
    """The op."""
    root: str
    """Folder of the tree whose kernels run (the head)."""
    trusted_root: str
    """Folder of the tree that references are read from (the base, when it has them)."""
    pythonpath: tuple[str, ...] = ()
    """Folders under the roots to import from."""
    setup: str = ""
    """A file under root that each worker runs once."""
    kernels: tuple[str, ...] = ()
    """Kernel ids that the op gates; empty for an op without Triton kernels."""
    changed: tuple[str, ...] = ()
    """Those of them whose code the change touches: themselves, what they use, or a launcher."""
    dots: bool = True
    """Whether one of them may multiply matrices on tensor cores; True where nothing is known."""
    must_launch: tuple[str, ...] = ()
    """Kernel ids that some case must launch (exact ids of the schema, changed kernels)."""
    tiles: tuple[int, ...] = ()
    """Tile sizes read from the source."""
    base_root: str = ""
    """Folder of the base tree, to place a finding; empty when there is none."""
    trusted: bool = True
    """False: the schema is new in the change."""
    untrusted_truth: bool = False
    """Whether references, being new in the change, are its code and not the base's."""
    files: Mapping[str, tuple[str, int]] = field(default_factory=dict)
    """kernel id -> file and 1-based line."""
    stores: Mapping[str, tuple[tuple[str, int], ...]] = field(default_factory=dict)
    """kernel id -> (pointer parameter, 1-based line) of its stores, where the source tells all."""
