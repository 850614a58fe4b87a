"""The record of the mutation study: whole, as good as it is said to be, and explained by reasons
that hold."""

from collections import Counter
from pathlib import Path

import pytest

from gate.study.corpus import load_corpus
from gate.study.fates import MutantStudy
from gate.study.mutants import controls_of, read_parts, source_of
from gate.study.operators import mutants_of

CORPUS = Path(__file__).resolve().parents[2] / "corpus"
RECORD = CORPUS / "results" / "mutants.json"
pytestmark = pytest.mark.skipif(not RECORD.is_file(), reason="the study has not been recorded")


@pytest.fixture(scope="module")
def record() -> MutantStudy:
    return read_parts(CORPUS, [RECORD])


def test_every_mutant_of_the_corpus_is_in_the_record_once(record: MutantStudy) -> None:
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
