"""A result that contradicts itself is refused by whoever reads it."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from report_examples import EXAMPLES, green, illusion

from gate.cli.main import main
from gate.errors import ResultError
from gate.judge.model import CaseStatus, Verdict
from gate.report.consistent import check_consistent
from gate.report.jsonfile import dumps
from gate.report.reader import read_result
from gate.result import CaseLine, OpPart, OpReport, RunResult


@pytest.mark.parametrize("name", sorted(EXAMPLES))
def test_what_a_run_writes_does_not_contradict_itself(name: str) -> None:
    made = EXAMPLES[name]()
    assert check_consistent(made) is made


def op(change: Callable[[OpReport], OpReport], of: RunResult) -> RunResult:
    return replace(of, ops=(*of.ops[:-1], change(of.ops[-1])))


def counted(**more: int) -> Callable[[OpReport], OpReport]:
    return lambda report: replace(report, counts=replace(report.counts, **more))


def kernel_says(verdict: Verdict, of: RunResult) -> RunResult:
    return replace(of, kernels=(*of.kernels[:-1], replace(of.kernels[-1], verdict=verdict)))


def swapped(report: OpReport) -> OpReport:
    passed, failed = report.counts.passed, report.counts.failed
    return replace(report, counts=replace(report.counts, passed=passed - 1, failed=failed + 1))


def with_part(report: OpReport) -> OpReport:
    line = CaseLine(position=0, text="x", status=CaseStatus.PASS)
    return replace(report, part=OpPart(plan="p", planned=1, lines=(line,)))


CONTRADICTIONS: dict[str, tuple[RunResult, str]] = {
    "a pass beside findings": (
        op(lambda report: replace(report, verdict=Verdict.PASS), illusion()), "pass beside",
    ),
    "a pass beside failed cases": (op(swapped, green()), "cases that are not"),
    "counts that do not add up": (op(counted(passed=1), green()), "counted by status"),
    "a pass of nothing": (op(counted(ran=0, passed=0), green()), "no case passed"),
    "a defect without a finding": (
        op(lambda report: replace(report, findings=()), illusion()), "without a finding",
    ),
    "a kernel that passes where its op does not": (
        kernel_says(Verdict.PASS, illusion()), "is not",
    ),
    "a kernel that is undecided where its op found a defect": (
        kernel_says(Verdict.UNDECIDED, illusion()), "found a defect",
    ),
    "a kernel that no op covers although one does": (
        kernel_says(Verdict.UNMATCHED, green()), "cover it",
    ),
    "a kernel that passes and was never launched": (
        op(lambda report: replace(report, kernels_seen=()), green()), "seen to launch",
    ),
    "a kernel whose op has no report": (replace(green(), ops=()), "has no report"),
    "an op that is there twice": (
        replace(green(), ops=(*green().ops, green().ops[0])), "there twice",
    ),
    "a part of other cases": (op(with_part, green()), "of its part"),
}  # fmt: skip


@pytest.mark.parametrize("what", CONTRADICTIONS)
def test_a_contradiction_is_refused_and_named(what: str, tmp_path: Path) -> None:
    made, words = CONTRADICTIONS[what]
    (tmp_path / "result.json").write_text(dumps(made))
    with pytest.raises(ResultError, match=words):
        read_result(tmp_path)


def test_report_makes_none_of_a_result_that_contradicts_itself(tmp_path: Path, capsys) -> None:
    made, words = CONTRADICTIONS["a pass beside findings"]
    (tmp_path / "result.json").write_text(dumps(made))
    assert main(["report", str(tmp_path / "result.json")]) == 2
    assert words in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["result.json"]
