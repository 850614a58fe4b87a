"""What a launcher refuses that the base's launcher runs and gets right.

A refusal is honest, and no finding; but a change that makes a launcher refuse most of what it took
would pass on the few cases that are left. So the base is asked, and the answer is reported as a
relaxation: the author may well want it, and nobody should have to find out later.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from gate.engine.context import CaseRecord
from gate.engine.settings import AS_SAID
from gate.judge.model import CaseStatus
from gate.judge.refusal import REFUSED_HERE

ASKED = 6
"""Cases of an op that the base is asked about, at most: each message by its first case, then the
others in order of the plan."""
TOLD = 3
"""Messages that are reported, at most."""


def to_ask(records: Sequence[CaseRecord]) -> list[CaseRecord]:
    """Return the refused cases that the base is asked about."""
    refused = [record for record in records if message_of(record)]
    first: dict[str, CaseRecord] = {}
    for record in refused:
        first.setdefault(message_of(record), record)
    firsts = list(first.values())
    chosen = [*firsts, *(record for record in refused if record not in firsts)]
    return chosen[:ASKED]


def message_of(record: CaseRecord) -> str:
    """Return what the launcher said when it refused a case; empty for a case that it did not
    refuse, and for a refusal that the schema declares (`raises`)."""
    if record.force != AS_SAID or record.judgement.status is not CaseStatus.REFUSED:
        return ""
    told = (note for note in record.judgement.notes if note.startswith(REFUSED_HERE))
    return next(told, "").removeprefix(REFUSED_HERE)


def narrowed(
    records: Sequence[CaseRecord], on_base: Iterable[tuple[CaseRecord, CaseRecord]]
) -> tuple[str, ...]:
    """Return a sentence for each message that refuses what the base gets right.

    records  the cases of the op
    on_base  (refused case, the same case on the base)
    """
    said: dict[str, CaseRecord] = {}
    for record, other in on_base:
        if other.judgement.status is CaseStatus.PASS:
            said.setdefault(message_of(record), record)
    sentences = []
    for message, record in list(said.items())[:TOLD]:
        count = sum(message_of(one) == message for one in records)
        sentences.append(
            f"the launcher now refuses {count} of {len(records)} cases with `{message}`; the base "
            f"runs {record.text} and gets it right"
        )
    return tuple(sentences)
