"""The records of the mutation study: whole, as good as it is said to be, and explained by reasons
that hold. Each was made with one set of versions, and an op is in one of them."""

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from gate.study.corpus import load_corpus
from gate.study.fates import REASONS, MutantStudy, read_reasons, settled
from gate.study.mutants import controls_of, read_parts, source_of
from gate.study.operators import mutants_of

CORPUS = Path(__file__).resolve().parents[2] / "corpus"
RECORDS = sorted((CORPUS / "results").glob("mutants-*.json"))


@pytest.fixture(scope="module")
def record() -> MutantStudy:
    parts = [read_parts(CORPUS, [file]) for file in RECORDS]
    assert {(part.device, part.seed, part.cases) for part in parts} == {("interpreter", 0, 64)}
    rows = tuple(row for part in parts for row in part.rows)
    joined = replace(parts[0], rows=rows)
    return settled(joined, read_reasons(CORPUS / REASONS), whole=True)


def test_every_mutant_of_every_recorded_control_is_there_once(record: MutantStudy) -> None:
    held = Counter((row.op, row.operator, row.change) for row in record.rows)
    made = Counter(
        (task.schema.op, mutant.operator, mutant.change)
        for task in controls_of(load_corpus(CORPUS))
        for mutant in mutants_of(source_of(task).read_text())
    )
    assert held == made


def test_ninety_five_of_a_hundred_mutants_that_are_not_equivalent_are_killed(
    record: MutantStudy,
) -> None:
    assert record.cases == 64
    assert record.score >= 0.95


def test_every_mutant_that_lives_is_explained_by_a_proof_or_by_a_reason_that_holds(
    record: MutantStudy,
) -> None:
    assert record.unexplained == ()
    assert record.stale == ()
