"""When a case counts as hung: the limit from what other cases took, and the second, whole one."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine import op_runs as ops
from gate.case.bind import bind
from gate.case.plan import make_plan
from gate.engine import hang
from gate.engine.blame import with_memory
from gate.engine.hang import ENOUGH, FACTOR, FLOOR_SECONDS, HangLimit, HangLimits, Timed
from gate.engine.lanes import Crew
from gate.engine.oprun import OpRun
from gate.engine.settings import Force, RunSettings
from gate.engine.task import OpTask
from gate.engine.variant import Variant, variant_of
from gate.judge.facts import ended_badly
from gate.judge.model import CaseJudgement, CaseStatus, FailureKind, Verdict
from gate.result import OpReport
from gate.run import link
from gate.run.pool import KernelWorker
from gate.run.protocol import ErrorFact, LoadRequest, Observation, Outcome, RunRequest

WHOLE = 60.0
EVER = float("inf")
seconds = st.floats(0.0, 100.0)


def taking(*needs: float, asked: list[float] | None = None) -> Callable[[float], Timed]:
    """A case that needs so many seconds: at the first ask, at the second, at all further ones."""
    left = list(needs)

    def ask(limit: float) -> Timed:
        if asked is not None:
            asked.append(limit)
        need = left.pop(0) if len(left) > 1 else left[0]
        if need <= limit:
            return Timed(seen=Observation(outcome=Outcome.RETURNED), seconds=need)
        error = ErrorFact(type="hang", message=f"no answer within {limit:g} s", stage="device")
        return Timed(seen=Observation(outcome=Outcome.HUNG, error=error), seconds=limit)

    return ask


def after(*took: float) -> HangLimit:
    limit = HangLimit()
    for one in took:
        limit.run(taking(one), WHOLE)
    return limit


@given(st.lists(seconds, max_size=ENOUGH - 1))
def test_few_cases_say_nothing(took: list[float]) -> None:
    assert after(*[min(one, WHOLE) for one in took]).limit(WHOLE) == WHOLE


@given(st.lists(st.floats(0.0, WHOLE), min_size=ENOUGH), st.floats(0.1, 200.0))
def test_the_limit_is_a_multiple_of_the_longest_case_between_the_floor_and_the_whole(
    took: list[float], whole: float
) -> None:
    limit = after(*took).limit(whole)
    assert min(FLOOR_SECONDS, whole) <= limit <= whole
    assert limit >= min(whole, FACTOR * max(took))


@given(st.lists(seconds, min_size=1, max_size=20))
def test_a_case_that_ends_is_no_hang_and_one_that_does_not_is(needs: list[float]) -> None:
    limit, hung = HangLimit(), False
    for need in needs:
        seen = limit.run(taking(need), WHOLE)
        if need > WHOLE:
            hung = True
            assert seen.outcome is Outcome.HUNG
        elif not hung:
            assert seen.outcome is Outcome.RETURNED


def test_what_did_not_return_says_nothing_of_how_long_a_case_takes() -> None:
    limit = HangLimit()
    for _ in range(5):
        raised = Observation(outcome=Outcome.RAISED)
        limit.run(lambda _, seen=raised: Timed(seen=seen, seconds=0.1), WHOLE)  # type: ignore[misc]
    assert limit.limit(WHOLE) == WHOLE


def test_the_first_hang_is_asked_again_with_the_whole_limit_and_the_next_is_not() -> None:
    limit, asked = after(0.1, 0.1, 0.31), list[float]()
    first = limit.run(taking(EVER, asked=asked), WHOLE)
    assert asked == [FLOOR_SECONDS, WHOLE] and first.outcome is Outcome.HUNG and first.error
    assert first.error.message == "no answer within 60 s; cases that returned took at most 0.4 s"
    second = limit.run(taking(EVER, asked=asked), WHOLE)
    assert asked[2:] == [FLOOR_SECONDS] and second.outcome is Outcome.HUNG and second.error
    assert second.error.message == "no answer within 10 s; cases that returned took at most 0.4 s"


def test_a_hang_before_any_case_returned_says_its_limit_alone() -> None:
    seen = HangLimit().run(taking(EVER), WHOLE)
    assert seen.error and seen.error.message == "no answer within 60 s"


def test_a_hang_that_was_established_before_the_others_returned_is_enough() -> None:
    limit, asked = HangLimit(), list[float]()
    for need in (EVER, 0.1, 0.1, 0.1):
        limit.run(taking(need), WHOLE)
    assert limit.run(taking(EVER, asked=asked), WHOLE).outcome is Outcome.HUNG
    assert asked == [FLOOR_SECONDS]
    assert limit.run(taking(EVER, asked=asked), 2 * WHOLE).outcome is Outcome.HUNG
    assert asked[1:] == [FLOOR_SECONDS, 2 * WHOLE]  # of a longer whole limit nothing was known


def test_a_slow_case_is_judged_by_its_second_answer_and_lengthens_the_limit() -> None:
    limit, asked = after(0.1, 0.1, 0.1), list[float]()
    seen = limit.run(taking(30.0, 9.0, asked=asked), WHOLE)
    assert seen.outcome is Outcome.RETURNED and asked == [FLOOR_SECONDS, WHOLE]
    assert not seen.notes  # what it compiled at first it needed not compile again
    assert limit.limit(WHOLE) == WHOLE


def test_a_case_that_hung_once_and_is_quick_the_next_time_is_noted() -> None:
    seen = after(0.1, 0.1, 0.1).run(taking(EVER, 0.1), WHOLE)
    assert seen.outcome is Outcome.RETURNED
    assert seen.notes == (hang.NOW_AND_THEN.format(FLOOR_SECONDS),)
    assert "ran past 10 s" in seen.notes[0]


@pytest.mark.parametrize(("need", "whole_asks"), [(EVER, 1), (20.0, 4)])
def test_of_cases_that_hang_side_by_side_one_takes_the_whole_limit(
    need: float, whole_asks: int
) -> None:
    limit, asked, seen = after(0.1, 0.1, 0.1), list[float](), list[Observation]()
    together = threading.Barrier(4, timeout=20)

    def work() -> None:
        case = taking(need, asked=asked)

        def ask(limit: float) -> Timed:
            found = case(limit)
            if limit < WHOLE:
                together.wait()  # nobody knows of another one's hang
            return found

        seen.append(limit.run(ask, WHOLE))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert len(seen) == 4 and len({one.outcome for one in seen}) == 1
    assert asked.count(WHOLE) == whole_asks


def test_each_tree_has_limits_of_its_own() -> None:
    limits = HangLimits()
    head, base = (LoadRequest(root=root, pythonpath=(), entry="a.py::f(x)") for root in "hb")
    assert limits.of(head) is limits.of(replace(head)) is not limits.of(base)


class Alone:
    """A bench on which a case that is called once returns."""

    def run(self, variant: Variant) -> Observation:
        assert variant.calls == 1
        return Observation(outcome=Outcome.RETURNED)

    def judge(self, observation: Observation, variant: Variant) -> CaseJudgement:
        raise AssertionError("a hang has nothing to judge")


def test_a_hang_of_the_second_call_alone_says_its_limit_too() -> None:
    seen = HangLimit().run(taking(EVER), WHOLE)
    told = ended_badly(seen, "op.py::k")
    assert told is not None
    judgement = CaseJudgement(status=CaseStatus.FAIL, failures=(told,))
    schema = ops.read(SCHEMA)
    case = make_plan(schema, cases=1, seed=0, device="interpreter").cases[0]
    variant = replace(variant_of(case), reuse=True, calls=2)
    found = with_memory(Alone(), bind(schema, case), seen, variant, judgement).failures[0]
    assert found.key == "second call: time limit"
    assert found.message.endswith("is not reset; it did not return: no answer within 60 s")


# --- with a worker --------------------------------------------------------------------------------

KERNEL = """
import time


@triton.jit
def twice_kernel(x_ptr, y_ptr, n, N: tl.constexpr):
    at = tl.program_id(0) * N + tl.arange(0, N)
    while ENDLESS:
        tl.store(y_ptr + at, 0.0, mask=at < n)
    tl.store(y_ptr + at, 2 * tl.load(x_ptr + at, mask=at < n, other=0.0), mask=at < n)


def twice(x):
    y = torch.empty_like(x)
    twice_kernel[(triton.cdiv(x.numel(), 64),)](x, y, x.numel(), N=64)
    if WHEN:
        SLOW
    return y
"""


def kernel(endless: str = "n < 0", when: str = "False", body: str = "pass") -> str:
    return KERNEL.replace("ENDLESS", endless).replace("WHEN", when).replace("SLOW", body)


SCHEMA = """\
format: 1
op: twice
entry: op.py::twice
reference: x * 2
dims: {N: 1..300}
args:
  x: {tensor: [N], dtype: float32, layouts: contiguous}
returns:
  y: {tensor: [N], dtype: float32}
"""


@pytest.fixture(scope="module")
def crew() -> Iterator[Crew]:
    with ops.crew() as made:
        yield made


@pytest.fixture
def hung(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The limits of the requests that ran past theirs, beside a floor that tests have time for."""
    limits: list[float] = []
    run = KernelWorker.run

    def spied(worker: KernelWorker, request: RunRequest) -> Observation:
        seen = run(worker, request)
        if seen.outcome is Outcome.HUNG:
            limits.append(request.seconds)
        return seen

    monkeypatch.setattr(KernelWorker, "run", spied)
    monkeypatch.setattr(link, "GRACE_SECONDS", 0.2)  # every hang waits for it as well
    monkeypatch.setattr(hang, "FLOOR_SECONDS", 0.5)
    monkeypatch.setattr(hang, "FACTOR", 0.0)  # a slow machine makes no other limit
    return limits


def report(task: OpTask, crew: Crew, case_seconds: float) -> OpReport:
    settings = RunSettings(
        cases=16, diagnose_runs=0, case_seconds=case_seconds, oracles=False, checks=("bounds",)
    )
    return OpRun(task=task, crew=crew, settings=settings).run()


@pytest.mark.triton
def test_a_case_that_never_ends_costs_the_whole_limit_once(
    tmp_path: Path, crew: Crew, hung: list[float]
) -> None:
    task = ops.task(tmp_path, kernel("n == 300"), SCHEMA)
    told = report(task, crew, 1.0)
    assert told.verdict is Verdict.HANG
    (found,) = told.findings
    assert found.kind is FailureKind.HUNG and found.confirmed == found.reruns == 2
    words = "it did not return: no answer within 1 s; cases that returned took at most"
    assert words in found.message
    assert hung == [0.5, 1.0, 0.5, 0.5]


@pytest.mark.triton
def test_a_hang_that_is_shown_ran_past_the_limit_that_a_replay_gives_it(
    tmp_path: Path, crew: Crew, hung: list[float]
) -> None:
    task = ops.task(tmp_path, kernel("n != 257"), SCHEMA)
    told = report(task, crew, 1.0)
    (found,) = told.findings
    assert found.failed >= 3  # N = 127 among them, which is simpler
    assert "N=129" in found.case and "no answer within 1 s" in found.message
    assert hung.count(1.0) == 1 and len(hung) >= 5, hung


@pytest.mark.triton
def test_a_case_that_ends_past_the_measured_limit_passes(
    tmp_path: Path, crew: Crew, hung: list[float]
) -> None:
    task = ops.task(tmp_path, kernel(when="x.numel() in (97, 300)", body="time.sleep(1.0)"), SCHEMA)
    told = report(task, crew, 30.0)
    assert told.verdict is Verdict.PASS, told
    assert hung == [0.5, 0.5]


@pytest.mark.triton
def test_cases_under_a_tool_have_the_whole_limit(
    tmp_path: Path, crew: Crew, hung: list[float]
) -> None:
    task = ops.task(tmp_path, kernel(when="x.numel() > 290", body="time.sleep(1.0)"), SCHEMA)
    settings = RunSettings(cases=16, case_seconds=30.0, force=Force(memcheck=True))
    run = OpRun(task=task, crew=crew, settings=settings)
    plan = run._plan(())
    run._run_cases(plan.cases, 16)
    assert len(run.records) == 16 and not hung


@pytest.mark.triton
def test_a_case_that_waits_for_a_lane_does_not_start_when_the_time_is_up(
    tmp_path: Path, crew: Crew
) -> None:
    task = ops.task(tmp_path, kernel(when="True", body="time.sleep(1.0)"), SCHEMA)
    run = OpRun(task=task, crew=crew, settings=RunSettings(cases=8))
    cases = run._plan(()).cases
    crew.call(lambda lane: None)
    run.deadline = time.monotonic() + 0.5
    run._run_cases(cases, len(cases))
    assert len(run.records) == 1 and run.cut
    assert [note for note in run.notes if "time was up" in note]
