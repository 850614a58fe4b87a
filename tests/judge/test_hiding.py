"""Whether a fill hides a failure is asked of a failing case with that fill, all else as it is."""

from __future__ import annotations

from judge_fakes import op, ret, tensor

from gate.case.text import format_case, parse_case
from gate.judge.diagnose import diagnose
from gate.judge.factors import JudgedCase
from gate.judge.hiding import fill_probes
from gate.judge.model import Failure, FailureKind
from gate.judge.reading import stated

SCHEMA = op(args=(tensor("x", "B H"), tensor("g", "B H")), returns=(ret("y", "B H"),))
FAILURE = Failure(kind=FailureKind.WRONG_VALUE, key="y", kernel="ops/k.py::k", message="")


def case(h: int, x: str = "normal", g: str = "normal") -> str:
    return f"op[B=4 H={h}; T=float32; x=contiguous/{x} g=contiguous/{g}; seed=000001]"


def judged(*cases: tuple[str, bool]) -> list[JudgedCase]:
    return [JudgedCase(case=parse_case(text), failed=failed) for text, failed in cases]


PLAN = judged(
    *((case(h), h % 128 != 0) for h in (64, 100, 128, 129, 256, 300, 384, 513)),
    (case(130, "large", "ramp"), False), (case(77, "large"), False),
    (case(128, "large", "ramp"), False),
)  # fmt: skip


def test_a_fill_is_put_in_a_failing_case_with_nothing_else_changed() -> None:
    (probe,) = fill_probes(SCHEMA, PLAN, [("g", "ramp")], lambda case: True)
    assert format_case(probe) == case(513, g="ramp")
    again = [*PLAN, JudgedCase(case=probe, failed=True)]
    (other,) = fill_probes(SCHEMA, again, [("x", "large")], lambda case: True)
    assert format_case(other) == case(513, x="large")


def test_no_probe_is_made_of_what_was_run_is_too_large_or_is_in_no_case() -> None:
    known = [*PLAN, *judged(*((case(h, g="ramp"), False) for h in (100, 129, 300, 513)))]
    assert fill_probes(SCHEMA, known, [("g", "ramp")], lambda case: True) == ()
    assert fill_probes(SCHEMA, PLAN, [("g", "ramp")], lambda case: False) == ()
    assert fill_probes(SCHEMA, PLAN, [("g", "needle")], lambda case: True) == ()


def test_nothing_is_said_of_a_fill_that_only_met_another_which_hides_the_failure() -> None:
    found = diagnose(SCHEMA, PLAN, FAILURE, tiles=(128,))
    assert stated(found.condition) == "H % 128 != 0"
    assert found.condition.endswith("; hidden by the values of `large` in x")
    assert found.unproven == (("g", "ramp"),)


def test_where_no_fill_is_proven_to_hide_the_failure_the_condition_is_not_exact() -> None:
    plan = [entry for entry in PLAN if format_case(entry.case) != case(77, "large")]
    found = diagnose(SCHEMA, plan, FAILURE, tiles=(128,))
    assert found.condition == "fails only when H % 128 != 0 (5 of 6 such cases)"
    assert found.unproven == (("g", "ramp"), ("x", "large"))
