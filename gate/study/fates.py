"""What became of mutants, and the reasons that people give for those that live."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import yaml

from gate.errors import UsageError

REASONS = "mutants.yaml"
"""File of a corpus that says of mutants why they are equivalent, or why they survive."""
_KEYS = frozenset({"op", "operator", "change", "fate", "why"})


class Fate(enum.Enum):
    """What became of a mutant."""

    KILLED = "killed"
    """A case failed."""
    EQUIVALENT = "equivalent"
    """No case failed, and none can: it is proven, or the file of reasons says why."""
    SURVIVED = "survived"
    """No case failed."""
    UNDECIDED = "undecided"
    """No case failed and none passed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """A line of the file of reasons: which mutants it speaks of, and what it says."""

    op: str
    """Glob over op names."""
    operator: str
    """Glob over operators."""
    change: str
    """Glob over changes, `before -> after`."""
    fate: Fate
    """EQUIVALENT or SURVIVED."""
    why: str
    """The reason, a sentence."""

    def covers(self, op: str, operator: str, change: str) -> bool:
        """Whether it speaks of this mutant."""
        return (
            fnmatchcase(op, self.op)
            and fnmatchcase(operator, self.operator)
            and fnmatchcase(_plain(change), _plain(self.change))
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class MutantRow:
    """One mutant: what was seen of it, and what that comes to."""

    op: str
    """The op whose kernel it was made from."""
    operator: str
    """Which kind of mistake."""
    line: int
    """1-based line of the mistake."""
    change: str
    """`before -> after`."""
    cases: int
    """Cases that were run: up to the first failure, none of one that was proven before."""
    passed: int
    """Of them, passed."""
    case: str = ""
    """Text of the failing case; empty without one."""
    kind: str = ""
    """What the failing case showed; empty without one."""
    proof: str = ""
    """What proves it equivalent; empty without a proof."""
    why: str = ""
    """The reason of the file of reasons; empty for a killed or proven one, or when it has none."""
    fate: Fate = Fate.UNDECIDED
    """What became of it; `settled` works it out."""

    @property
    def open(self) -> bool:
        """Whether neither a case nor a proof decides it."""
        return not self.case and not self.proof


@dataclass(frozen=True, slots=True, kw_only=True)
class MutantStudy:
    """A whole study."""

    device: str
    """Where it ran."""
    seed: int
    """The seed."""
    cases: int
    """Cases a mutant."""
    rows: tuple[MutantRow, ...]
    """By op, then by line."""
    versions: tuple[tuple[str, str], ...] = ()
    """python, torch, triton, numpy -> version."""
    stale: tuple[str, ...] = ()
    """Reasons that do not hold, each with what contradicts it."""
    interrupted: bool = False
    """Whether it was cut short."""

    @property
    def score(self) -> float:
        """Share of the mutants that are not equivalent that were killed."""
        counted = [row for row in self.rows if row.fate is not Fate.EQUIVALENT]
        killed = sum(row.fate is Fate.KILLED for row in counted)
        return killed / len(counted) if counted else 1.0

    @property
    def unexplained(self) -> tuple[MutantRow, ...]:
        """Mutants that were not killed and of which neither a proof nor a reason is given."""
        return tuple(row for row in self.rows if row.open and not row.why)


def settled(study: MutantStudy, reasons: Sequence[Reason], *, whole: bool = False) -> MutantStudy:
    """Return a study with the fate of every row, by what was seen and by these reasons.

    The first reason that covers a mutant counts. A reason is stale when it calls a mutant
    equivalent that a case killed, and, in a study of the whole corpus, when all that it covers are
    killed. One that covers what is proven by now does no harm.

    whole  whether every mutant of the corpus is among the rows
    """
    covered: dict[int | None, list[MutantRow]] = {}
    rows = []
    for row in study.rows:
        place = _first(row, reasons)
        covered.setdefault(place, []).append(row)
        rows.append(_settled(row, None if place is None else reasons[place]))
    stale = (_stale(reason, covered.get(n, []), whole) for n, reason in enumerate(reasons))
    return replace(study, rows=tuple(rows), stale=tuple(words for words in stale if words))


def _first(row: MutantRow, reasons: Sequence[Reason]) -> int | None:
    covering = (
        n for n, reason in enumerate(reasons) if reason.covers(row.op, row.operator, row.change)
    )
    return next(covering, None)


def _settled(row: MutantRow, reason: Reason | None) -> MutantRow:
    if row.case:
        return replace(row, fate=Fate.KILLED, why="")
    if row.proof:
        return replace(row, fate=Fate.EQUIVALENT, why="")
    if reason is not None:
        return replace(row, fate=reason.fate, why=reason.why)
    return replace(row, fate=Fate.SURVIVED if row.passed else Fate.UNDECIDED, why="")


def _stale(reason: Reason, rows: Sequence[MutantRow], whole: bool) -> str:
    """Say what contradicts a reason that comes first for these rows; empty when nothing does."""
    said = f"{reason.op}, {reason.operator}, `{reason.change}`"
    killed = next((row for row in rows if row.case), None)
    if killed is not None and reason.fate is Fate.EQUIVALENT:
        return f"{said}: called equivalent, but `{killed.change}` is killed by {killed.case}"
    if whole and all(row.case for row in rows):
        return f"{said}: {'every such mutant is killed' if rows else 'no mutant is such'}"
    return ""


def read_reasons(file: Path) -> tuple[Reason, ...]:
    """Read the file of reasons; none when there is no such file.

    Raises
        UsageError  it is not a list of rows with op, operator, change, fate and why
    """
    if not file.is_file():
        return ()
    try:
        rows = yaml.safe_load(file.read_text(encoding="utf-8"))
    except yaml.YAMLError as problem:
        raise UsageError(f"{file}: not YAML: {problem}") from None
    if not isinstance(rows, list):
        raise UsageError(f"{file}: a list with a row for each reason is expected")
    return tuple(reason for i, row in enumerate(rows) for reason in _read(row, f"{file}[{i}]"))


def _read(row: Any, where: str) -> Iterable[Reason]:
    """Read one row; an op that is a list stands for a reason for each."""
    if not isinstance(row, dict) or set(row) != _KEYS:
        raise UsageError(f"{where}: a row has {', '.join(sorted(_KEYS))} and nothing else")
    fates = {fate.value: fate for fate in (Fate.EQUIVALENT, Fate.SURVIVED)}
    if row["fate"] not in fates:
        raise UsageError(f"{where}: fate is {row['fate']}; it is {' or '.join(fates)}")
    ops = row["op"] if isinstance(row["op"], list) else [row["op"]]
    texts = {key: str(row[key]) for key in ("operator", "change", "why")}
    return [Reason(op=str(op), fate=fates[row["fate"]], **texts) for op in ops]


def _plain(text: str) -> str:
    """A change without the brackets and spaces that a glob would misread or a reader miscount."""
    return text.replace("[", "(").replace("]", ")").replace(" ", "")
