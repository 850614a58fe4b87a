"""What separates failing from passing cases, what it points to, and the ways out.

condition   the simplest condition over all factors of the cases (`gate.judge.conditions`)
cause       the likely cause in the words of the field, from the condition, the kind of
            failure and where the output is wrong
mends       ways out, a sentence each
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gate.case.shrink import sort_key
from gate.case.text import format_case
from gate.judge.bounds import to_be_left_out, without_bounds
from gate.judge.causes import BY_VALUE, find_cause
from gate.judge.clues import Clues
from gate.judge.conditions import Condition
from gate.judge.factors import JudgedCase, factors_of
from gate.judge.model import Failure, FailureKind
from gate.judge.separate import ENOUGH, Separation, separations
from gate.judge.wording import EVERY_CASE, NOTHING_SEPARATES, in_cases
from gate.schema.model import OpSchema

NEARLY = 0.9
"""Share of failing cases that is nearly all of them."""
FEW, MANY = 3, 20
"""So few passing cases beside so many failing ones are told apart by chance."""
FAR_FETCHED = 2.3
"""A condition of this cost explains too much of too little."""
PLAIN_COST = 1.3
"""A condition up to this cost (a known tile, a layout, a dtype, an option) is believed anyway."""


CERTAIN = frozenset(
    {
        FailureKind.UNWRITTEN,
        FailureKind.WRONG_SHAPE,
        FailureKind.WRONG_DTYPE,
        FailureKind.WRONG_DEVICE,
        FailureKind.OOB_WRITE,
        FailureKind.INT_WRAP,
        FailureKind.GRID,
        FailureKind.COMPILE,
    }
)
"""Kinds that values seldom hide: sizes, layouts, dtypes and options decide them."""
FEW_FAILING = 3
"""So few failing cases are separated by anything: only a plain condition is believed of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """What a diagnosis found."""

    condition: str = ""
    """`fails exactly when H % 128 != 0`; empty when nothing separates them."""
    cause: str = ""
    """The likely cause; empty when nothing points to one."""
    mends: tuple[str, ...] = ()
    """Ways out, each one a sentence."""
    exact: bool = False
    """Whether the condition holds on exactly the failing cases."""
    found: Condition | None = None
    """The condition as a predicate over factors."""
    unproven: tuple[tuple[str, str], ...] = ()
    """(arg, fill) of which no case at hand tells whether they hide it: nothing is said of them."""


def diagnose(
    schema: OpSchema,
    judged: Sequence[JudgedCase],
    failure: Failure,
    *,
    tiles: Sequence[int] = (),
    tested: bool = True,
) -> Explanation:
    """Explain a finding from all cases that were judged.

    judged   cases that failed like the finding, cases that passed, and cases that failed otherwise
    failure  the finding's failure, on its smallest case
    tiles    tile sizes of the kernel, from source, schema and launches
    tested   whether further cases came out as the condition says; else it is said of these alone,
             and without a bound that nothing but these put where it is

    Raises
        CaseTextError  a case does not fit the schema
    """
    words, separation = _condition(schema, judged, tiles, failure.kind in CERTAIN, tested)
    exact = separation.exact if separation else words == EVERY_CASE
    found = separation.condition if separation else None
    main = sum(e.failed for e in judged) >= sum(e.otherwise for e in judged)
    if found is not None and not (tested and (main or failure.kind not in BY_VALUE)):
        words = in_cases(words, sum(not entry.otherwise for entry in judged))
    clues = Clues(
        schema=schema, failure=failure, condition=found, tiles=tuple(tiles), exact=exact,
        main=main,
    )  # fmt: skip
    cause = find_cause(clues)
    return Explanation(
        condition=words,
        cause=cause.text if cause else "",
        mends=cause.mends if cause else (),
        exact=exact,
        found=found,
        unproven=_unproven(separation),
    )


def _unproven(separation: Separation | None) -> tuple[tuple[str, str], ...]:
    return tuple(p for p in separation.hidden if p not in separation.proven) if separation else ()


def _condition(
    schema: OpSchema,
    judged: Sequence[JudgedCase],
    tiles: Sequence[int],
    certain: bool,
    tested: bool,
) -> tuple[str, Separation | None]:
    others = [entry.case for entry in judged if entry.otherwise]
    judged = [entry for entry in judged if not entry.otherwise]
    failed = np.asarray([entry.failed for entry in judged], dtype=bool)
    count, total = int(failed.sum()), len(failed)
    if count == total:
        return (EVERY_CASE if total > 1 else ""), None
    held = factors_of(schema, [entry.case for entry in judged])
    found = separations(held, failed, tiles, factors_of(schema, others), certain=certain)
    if _nearly_all(found, count, total):
        return f"fails on nearly every case ({count} of {total})", None
    if count < FEW_FAILING and not (found and _is_plain(found[0])):
        return _seen_in(schema, judged, total), None
    best = found[0] if found else None
    if best is not None and not tested and to_be_left_out(best, tiles):
        best = without_bounds(best, held, failed, tiles)
    if best is None:
        return NOTHING_SEPARATES if total >= ENOUGH else "", None
    return str(best), best


def _is_plain(separation: Separation) -> bool:
    """Whether a condition is what bugs of the field depend on, so that few cases will do."""
    atoms = separation.condition.atoms
    plain = len(atoms) == 1 and atoms[0].kind in ("tile", "power", "word", "flag")
    return plain and separation.cost <= PLAIN_COST


def _seen_in(schema: OpSchema, judged: Sequence[JudgedCase], total: int) -> str:
    """Return `seen in 1 of 16 cases: M=1 N=1 T=float32`: the number, and the simplest case."""
    bad = [entry.case for entry in judged if entry.failed]
    if not bad or total < ENOUGH:
        return ""
    simplest = format_case(min(bad, key=lambda case: sort_key(schema, case)))
    sizes = [part.strip(" -") for part in simplest.partition("[")[2].split(";")[:2]]
    return f"seen in {len(bad)} of {total} cases: {' '.join(filter(None, sizes))}"


def _nearly_all(found: Sequence[Separation], count: int, total: int) -> bool:
    """Whether what passes is too little, or too much a matter of values, to be explained."""
    if not found:
        return count >= NEARLY * total and total >= ENOUGH
    few = total - count <= FEW and count >= MANY and found[0].cost > PLAIN_COST
    far_fetched = count >= NEARLY * total and found[0].cost > FAR_FETCHED
    return few or far_fetched
