"""What a run is worth when the code under test wrote into the trees that the gate laid out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from gate.change.seal import Seal
from gate.engine.task import OpTask
from gate.judge.model import Verdict
from gate.result import Finding, OpReport

_SHOWN = 4
"""Paths that a note names."""


def seals_on(tasks: Iterable[OpTask], folder: Path) -> tuple[Seal, ...]:
    """Seal the trees under `folder` that tasks run from; no worker has started yet.

    A working tree is used where it lies, and its owner may write in it: it is not sealed.
    """
    trusted: dict[Path, None] = {}
    tested: dict[Path, None] = {}
    for task in tasks:
        roots = (task.base_root, "" if task.trusted_root == task.root else task.trusted_root)
        trusted.update((Path(root), None) for root in roots if root)
        tested[Path(task.root)] = None
    laid = [Seal.on(root) for root in trusted if root.is_relative_to(folder)]
    return (
        *laid,
        *(Seal.on(root, code_only=True) for root in tested if root.is_relative_to(folder)),
    )


def written(seals: Iterable[Seal]) -> str:
    """Return a sentence that names what was written into sealed trees; empty when nothing was."""
    paths = [f"{seal.root.name}/{path}" for seal in seals for path in seal.broken()]
    if not paths:
        return ""
    more = f" and {len(paths) - _SHOWN} more" if len(paths) > _SHOWN else ""
    return (
        f"changed while the workers ran: {', '.join(paths[:_SHOWN])}{more}. The code under test "
        "wrote into the trees that it is judged by, so that nothing of this run is a pass; write "
        "elsewhere (TMPDIR), or run the workers in a container, where these trees are read-only"
    )


def distrusted(reports: Sequence[OpReport], why: str) -> tuple[OpReport, ...]:
    """Return reports as they count after such a write.

    A defect stays one, for nobody gains by forging it, but where it comes from is not known any
    more; all else is undecided. A shard's part carries the reason to where parts are joined.
    """
    return tuple(_distrusted(report, why) for report in reports)


def _distrusted(report: OpReport, why: str) -> OpReport:
    part = report.part
    return replace(
        report,
        verdict=report.verdict if report.verdict.is_defect else Verdict.UNDECIDED,
        findings=tuple(_unplaced(finding) for finding in report.findings),
        notes=tuple(dict.fromkeys((why, *report.notes))),
        part=replace(part, unproven=(*part.unproven, why)) if part is not None else None,
    )


def _unplaced(finding: Finding) -> Finding:
    return replace(finding, origin="")
