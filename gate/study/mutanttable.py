"""The mutation study as a table and as a file."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from gate.errors import UsageError
from gate.study.fates import Fate, MutantRow, MutantStudy
from gate.study.operators import OPERATORS, SWAPPED


def counts(rows: Iterable[MutantRow]) -> str:
    """Return how many mutants came to each fate, in words."""
    found = Counter(row.fate for row in rows)
    return ", ".join(f"{found[fate]} {fate.value}" for fate in Fate)


def mutant_table(study: MutantStudy) -> str:
    """Return a Markdown table by operator, then every mutant that was not killed."""
    head = ("operator", "mutants", *(fate.value for fate in Fate))
    lines = ["| " + " | ".join(head) + " |", "|---" + "|--:" * (len(head) - 1) + "|"]
    for operator in (*OPERATORS, SWAPPED):
        rows = [row for row in study.rows if row.operator == operator]
        if rows:
            lines.append(_line(operator, rows))
    lines.append(_line("all", study.rows))
    lines += ["", _closing(study)]
    left = [row for row in study.rows if row.fate in (Fate.SURVIVED, Fate.UNDECIDED)]
    for row in left:
        why = row.why or "no reason is given"
        lines.append(f"- {row.op}:{row.line} {row.operator}: `{row.change}`: {why}")
    lines += [f"- a reason does not hold: {words}" for words in study.stale]
    return "\n".join(lines)


def _closing(study: MutantStudy) -> str:
    proven = sum(bool(row.proof) for row in study.rows)
    ops = len({row.op for row in study.rows})
    return (
        f"{study.score:.1%} of the mutants that are not equivalent are killed "
        f"({ops} control{'' if ops == 1 else 's'}, {study.cases} cases, seed {study.seed}, "
        f"{study.device}); {proven} {'is' if proven == 1 else 'are'} proven equivalent"
        + ("; interrupted" if study.interrupted else "")
    )


def _line(name: str, rows: Sequence[MutantRow]) -> str:
    found = Counter(row.fate for row in rows)
    cells = [name, str(len(rows)), *(str(found[fate]) for fate in Fate)]
    return "| " + " | ".join(cells) + " |"


def write_mutants(study: MutantStudy, path: Path) -> None:
    """Write a study as JSON: what it ran on, the score, and a line for each mutant."""
    path.parent.mkdir(parents=True, exist_ok=True)
    plain = {
        "device": study.device, "versions": dict(study.versions), "seed": study.seed,
        "cases": study.cases, "score": round(study.score, 4),
    }  # fmt: skip
    head = json.dumps(plain, indent=1, ensure_ascii=False).removesuffix("\n}")
    rows = (json.dumps(_plain_row(row), ensure_ascii=False) for row in study.rows)
    body = ",\n  ".join(rows)
    path.write_text(f'{head},\n "rows": [\n  {body}\n ]\n}}\n', encoding="utf-8")


def _plain_row(row: MutantRow) -> dict[str, Any]:
    """A row as JSON, without what is empty."""
    plain = {**asdict(row), "fate": row.fate.value}
    return {key: value for key, value in plain.items() if value != ""}


def read_mutants(files: Sequence[Path]) -> MutantStudy:
    """Read studies of parts of a corpus, as `write_mutants` wrote them, as one.

    An op in several files counts as in the last of them. Fates are to be `settled` anew.

    Raises
        UsageError  a file is no such study, or two differ in device, versions, seed or cases
    """
    loaded = [_read(file) for file in files]
    first = loaded[0]
    by_op: dict[str, list[MutantRow]] = {}
    for file, study in zip(files, loaded, strict=True):
        for key in ("device", "versions", "seed", "cases"):
            if study[key] != first[key]:
                raise UsageError(f"{file}: {key} is {study[key]}, in {files[0]} {first[key]}")
        fresh: dict[str, list[MutantRow]] = {}
        for row in study["rows"]:
            fresh.setdefault(row.op, []).append(row)
        by_op |= fresh
    return MutantStudy(
        device=first["device"], seed=first["seed"], cases=first["cases"],
        versions=tuple(first["versions"].items()),
        rows=tuple(row for rows in by_op.values() for row in rows),
    )  # fmt: skip


def _read(file: Path) -> dict[str, Any]:
    try:
        study = json.loads(file.read_text(encoding="utf-8"))
        rows = [MutantRow(**{**row, "fate": Fate(row["fate"])}) for row in study["rows"]]
        kept = {key: study[key] for key in ("device", "versions", "seed", "cases")}
    except (OSError, ValueError, KeyError, TypeError) as problem:
        raise UsageError(f"{file}: no mutation study: {problem}") from None
    return {**kept, "rows": rows}
