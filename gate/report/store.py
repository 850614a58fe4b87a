"""Verdicts kept by content: what did not change is not run again.

An entry is a file whose name is the key (the engine makes it) and whose text is a result of
one op behind a line with its key and its digest. What is damaged, truncated or foreign is left out
with a warning; an entry appears whole or not at all. Kept are verdicts that were decided, and of
those none that hangs on how busy the machine was.

The code under test must not write here, or it could keep a pass for itself. So entries are read
before a worker starts, the folder must belong to this user alone, and when the workers are gone,
whatever changed meanwhile is removed.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import secrets
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from gate.errors import ResultError, UsageError
from gate.judge.model import FailureKind, Verdict
from gate.report.jsonfile import dumps, loads
from gate.report.limits import MAX_BYTES
from gate.result import OpReport, RunInfo, RunResult

MAGIC = "kernel-gate cache 1"
"""First words of an entry; another version is foreign."""
_HEAD = re.compile(rf"{MAGIC} ([0-9a-f]{{64}}) ([0-9a-f]{{64}})")
_SUFFIX = ".entry"
_BY_CHANCE = frozenset({Verdict.FLAKY, Verdict.HANG})
"""Defects that another run on the same machine may not see."""
_Stamp = tuple[int, int, int, int]


@dataclass(slots=True, eq=False)
class Cache:
    """One folder of entries. Used by one thread, on the trusted side of a run."""

    folder: Path
    """Where entries are; it is made if need be."""
    warnings: list[str] = field(default_factory=list)
    """Entries that were left out, and why."""
    _stamps: dict[str, _Stamp] = field(default_factory=dict)
    """Entry -> what its file looked like before the workers started."""

    def __post_init__(self) -> None:
        """Make the folder and see that nobody else may write to it.

        Raises
            UsageError  it cannot be made or read, or others may write to it
        """
        try:
            self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            found = self.folder.lstat()
            self._stamps = dict(self._look())
        except OSError as problem:
            raise UsageError(f"--cache {self.folder}: {problem.strerror}") from problem
        if not stat.S_ISDIR(found.st_mode):
            raise UsageError(f"--cache {self.folder}: a link or a file stands there, not a folder")
        if found.st_uid != os.geteuid() or found.st_mode & 0o022:
            raise UsageError(
                f"--cache {self.folder}: others may write to it, and so keep a pass for what never "
                "passed; give it to this user alone (chmod 700)"
            )

    def get(self, key: str, op: str) -> tuple[OpReport, RunInfo] | None:
        """Return the report that was kept under a key, and the run that made it."""
        path = self.folder / f"{key}{_SUFFIX}"
        try:
            result = _read(path, key)
        except FileNotFoundError:
            return None
        except (OSError, ResultError) as problem:
            why = problem.message if isinstance(problem, ResultError) else problem.strerror
            self.warnings.append(f"the cache's entry for {op} was left out: {why}")
            return None
        if len(result.ops) != 1 or result.ops[0].op != op or not is_decided(result.ops[0]):
            self.warnings.append(f"the cache's entry for {op} was left out: it decides nothing")
            return None
        return replace(result.ops[0], cached=True), result.info

    def put(self, key: str, report: OpReport, info: RunInfo) -> bool:
        """Keep a report under its key if it was decided; return whether it was."""
        if not is_decided(report):
            return False
        body = dumps(RunResult(info=info, ops=(report,)))
        digest = hashlib.sha256(body.encode()).hexdigest()
        path = self.folder / f"{key}{_SUFFIX}"
        unready = self.folder / f".{secrets.token_hex(8)}"
        try:
            unready.write_text(f"{MAGIC} {key} {digest}\n{body}", encoding="utf-8")
            os.replace(unready, path)
            self._stamps[path.name] = _stamp(path)
        except OSError as problem:
            with contextlib.suppress(OSError):
                unready.unlink()
            self.warnings.append(f"the verdict on {report.op} was not kept: {problem.strerror}")
            return False
        return True

    def settle(self) -> None:
        """Remove what others put in or changed since this was opened; call it before `put`, when
        the workers are gone."""
        try:
            for name, stamp in self._look():
                if self._stamps.get(name) != stamp:
                    (self.folder / name).unlink()
                    self.warnings.append(f"removed from the cache, not written by this run: {name}")
        except OSError as problem:
            self.warnings.append(f"the cache could not be tidied: {problem.strerror}")

    def _look(self) -> Iterator[tuple[str, _Stamp]]:
        for entry in os.scandir(self.folder):
            if entry.name.endswith(_SUFFIX):
                yield entry.name, _stamp(Path(entry.path))


def _read(path: Path, key: str) -> RunResult:
    """Return what an entry holds.

    Raises
        FileNotFoundError  there is none
        OSError            it cannot be read
        ResultError        it is foreign or damaged
    """
    found = path.lstat()
    if not stat.S_ISREG(found.st_mode) or found.st_size > MAX_BYTES:
        raise ResultError("it is no plain file of bounded size")
    head, _, body = path.read_text(encoding="utf-8", errors="replace").partition("\n")
    named = _HEAD.fullmatch(head)
    if named is None or named[1] != key:
        raise ResultError("it was written by another version, or for something else")
    if hashlib.sha256(body.encode()).hexdigest() != named[2]:
        raise ResultError("it is damaged")
    return loads(body)


def is_decided(report: OpReport) -> bool:
    """Whether a report may be kept: a pass or a defect, on all planned cases, not by chance."""
    hung = any(finding.kind is FailureKind.HUNG for finding in report.findings)
    if hung or report.verdict in _BY_CHANCE or report.counts.ran < report.counts.planned:
        return False
    return report.verdict is Verdict.PASS or report.verdict.is_defect


def _stamp(path: Path) -> _Stamp:
    """Return what changes whenever a file is written; the change time cannot be set by its user."""
    found = path.lstat()
    return found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns
