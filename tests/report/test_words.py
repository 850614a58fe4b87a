from dataclasses import replace

import pytest
from report_examples import (
    BENCHMARKS,
    COMPARISON,
    CRASH,
    EXAMPLES,
    GREEN_OP,
    NORM,
    SOFTMAX,
    SOFTMAX_OP,
    WRONG,
    kernel,
    result,
)

from gate.judge.model import ErrorStats, FailureKind, Verdict
from gate.judge.wording import NOTHING_SEPARATES
from gate.report.annotations import annotate
from gate.report.comment import comment
from gate.report.headline import headline
from gate.report.words import (
    all_findings,
    benchmark_words,
    case_gist,
    device_words,
    does,
    meaning,
    measured,
    next_step,
    origin_words,
    ranked,
    spread,
    statement,
    when,
)
from gate.result import Diagnosis, Policy, RunResult


def marked(text: str) -> str:
    return f"<{text}>"


def test_every_verdict_and_kind_has_words_of_its_own() -> None:
    assert len({meaning(verdict) for verdict in Verdict}) == len(Verdict)
    assert len({does(kind) for kind in FailureKind}) == len(FailureKind)


@pytest.mark.parametrize(
    "verdict", [v for v in Verdict if v.is_unsettled or v is Verdict.UNMATCHED]
)
def test_whoever_is_not_told_what_is_wrong_is_told_what_to_do(verdict: Verdict) -> None:
    assert next_step(verdict)


@pytest.mark.parametrize(
    ("condition", "words"),
    [
        ("fails exactly when H % 128 != 0", " exactly when <H % 128 != 0>"),
        ("fails only when H > 4 (7 of 9 such cases)", " only when <H > 4>"),
        ("fails exactly when\nx", " (<fails exactly when\nx>)"),
        ("now and then", " (<now and then>)"),
        ("", ", for example at <B=4 H=513 T=float32>"),
    ],
)
def test_a_condition_becomes_a_clause(condition: str, words: str) -> None:
    finding = replace(WRONG, diagnosis=Diagnosis(condition=condition))
    assert when(finding, marked) == words


def test_a_case_that_cannot_be_read_gives_no_example() -> None:
    assert [case_gist(text) for text in ("", "x", "f[-; -; -; seed=0]", "f[B=1")] == [
        "", "", "", "B=1",
    ]  # fmt: skip


def test_the_figures_say_where_and_by_how_much() -> None:
    assert measured(COMPARISON, marked) == (
        "<y> is wrong at 4 of 2,052 elements: <column 512 (the last partial tile of 128), all "
        "zeros>. Worst at [0, 512]: got 0, expected 0.003906, allowed error 1e-07."
    )


def stats(**fields: object) -> ErrorStats:
    assert COMPARISON.stats is not None
    return replace(COMPARISON.stats, **fields)  # type: ignore[arg-type]


def test_two_values_that_round_alike_are_told_apart() -> None:
    close = replace(COMPARISON, stats=stats(worst_out=1.0000002, worst_ref=1.0), pattern="")
    assert "got 1.0000002, expected 1," in measured(close, marked)


def test_a_single_element_needs_no_index_and_no_allowance() -> None:
    one = stats(wrong=1, worst=(), worst_allowed=0.0, worst_out=float("nan"))
    text = measured(replace(COMPARISON, shape=(), stats=one, pattern=""), marked)
    assert text == "<y> is wrong at 1 of 1 element. Worst: got NaN, expected 0.003906."


def test_without_figures_the_message_speaks() -> None:
    assert statement(replace(WRONG, comparison=None), marked) == f"<{WRONG.message}>"
    none_wrong = replace(COMPARISON, stats=stats(wrong=0))
    assert statement(replace(WRONG, comparison=none_wrong), marked) == f"<{WRONG.message}>"


def test_a_benchmark_of_another_name_is_text_of_others() -> None:
    odd = replace(BENCHMARKS[0], oracle="@org")
    assert benchmark_words(odd, marked) == "<@org>'s check: passes 5 of 5"


def test_kernels_that_block_come_first_then_the_graver_verdict() -> None:
    made = result(
        kernel("a.py::passes", Verdict.PASS),
        kernel("b.py::open", Verdict.UNDECIDED),
        kernel("c.py::loose", Verdict.UNMATCHED),
        kernel("d.py::crash", Verdict.CRASH),
        policy=Policy(fail_on=("never",), unmatched="fail"),
    )
    assert [k.kernel[0] for k in ranked(made)] == ["c", "d", "b", "a"]


@pytest.mark.parametrize(
    ("name", "first"),
    [
        ("green", "Passed: 2 changed kernels, 400 cases."),
        ("nothing", "Nothing to gate: no Triton kernel changed."),
        ("unmatched", "Passed: 1 changed kernel, 200 cases; 1 more has no op schema,"),
        ("relaxed", "Blocked: this change relaxes the gate, which the policy forbids: <ops/norm"),
        ("undecided", "Not decided: <softmax_kernel> could not be judged: <self-check: the ref"),
        ("interrupted", "Not decided: the run was cut short after 37 of 200 cases; nothing that"),
        ("old_defect", "Passed: nothing new is wrong; <rms_norm_kernel> raises an exception,"),
        ("flaky", "Blocked: <softmax_kernel> returns wrong values, for example at <B=4 H=513 T="),
        ("crash", "Blocked: <rms_norm_kernel> raises an exception, for example at <B=1 H=1 T="),
    ],
)
def test_the_first_sentence_of_each_example(name: str, first: str) -> None:
    assert headline(EXAMPLES[name](), marked).startswith(first)


def test_a_schema_that_is_asked_for_and_missing_blocks() -> None:
    strict = replace(EXAMPLES["unmatched"](), policy=Policy(unmatched="fail"))
    assert headline(strict, marked) == (
        "Blocked: no op schema covers <softmax_kernel>, and the policy asks for one."
    )


def test_kernels_without_any_schema_are_not_called_passed() -> None:
    made = result(kernel(SOFTMAX, Verdict.UNMATCHED), kernel(NORM, Verdict.UNMATCHED))
    assert headline(made, marked) == (
        "Nothing was checked: no op schema covers the 2 changed kernels."
    )


def test_a_policy_that_lets_a_defect_through_is_named() -> None:
    made = replace(EXAMPLES["illusion"](), policy=Policy(fail_on=("never",)))
    assert headline(made, marked).startswith("Wrong, but not blocked by the policy: <softmax_ker")


def test_the_finding_of_the_kernel_itself_is_told_first() -> None:
    other = replace(WRONG, kernel="ops/softmax.py::helper", kind=FailureKind.RACE)
    op = replace(SOFTMAX_OP, findings=(other, WRONG))
    made = result(kernel(SOFTMAX, Verdict.ILLUSION, "softmax"), ops=(op, GREEN_OP))
    assert headline(made, marked).startswith("Blocked: <softmax_kernel> returns wrong values")


def test_an_interruption_before_an_op_is_through_says_so() -> None:
    made = replace(result(kernel(NORM, Verdict.UNDECIDED, "x")), interrupted=True)
    words = "Not decided: the run was cut short before it was through with an op."
    assert headline(made, marked) == words


def test_a_defect_without_a_finding_is_still_named() -> None:
    op = replace(SOFTMAX_OP, findings=(), verdict=Verdict.HANG)
    made = result(kernel(SOFTMAX, Verdict.HANG, "softmax"), ops=(op,))
    assert headline(made, marked) == "Blocked: <softmax_kernel> does not end."
    assert next_step(Verdict.HANG) == ""


def test_elements_that_are_not_finite_are_counted_apart() -> None:
    odd = replace(COMPARISON, stats=stats(nonfinite=3, swallowed=1200), rule="")
    assert spread(odd, marked).endswith("8388608 ulp; 3 not finite; 1,200 swallow NaN")
    assert spread(replace(COMPARISON, stats=None), marked) == ""
    assert measured(replace(COMPARISON, stats=None), marked) == "<y> could not be compared."


def test_where_it_ran_is_said_in_words_of_ours_or_marked() -> None:
    def where(device: str, name: str = "") -> str:
        made = result()
        return device_words(
            replace(made, info=replace(made.info, device=device, device_name=name)), marked
        )

    assert where("cuda", "NVIDIA H200") == "on <NVIDIA H200>"
    assert where("cuda") == "on <a GPU>"
    assert where("interpreter", "x") == "on the CPU, in Triton's interpreter"
    assert where("@org") == "on <@org>"
    assert where("") == ""


def test_an_origin_that_is_none_of_ours_is_marked() -> None:
    assert origin_words(replace(WRONG, origin="@org"), marked) == " (<@org>)"
    assert origin_words(replace(WRONG, origin=""), marked) == ""


def two_findings() -> RunResult:
    """An old finding of one op before a new one of another, both in kernels that block."""
    old = replace(CRASH, origin="already there")
    norm = replace(GREEN_OP, verdict=Verdict.CRASH, findings=(old,), benchmarks=())
    made = result(
        kernel(NORM, Verdict.CRASH, "rms_norm"),
        kernel(SOFTMAX, Verdict.ILLUSION, "softmax"),
        ops=(norm, SOFTMAX_OP),
    )
    return replace(made, policy=Policy(fail_on=("wrong",)))


def test_what_the_change_introduces_is_told_before_what_the_base_has_too() -> None:
    made = two_findings()
    assert [k.kernel for k in ranked(made)] == [SOFTMAX, NORM]
    assert [f.kernel for _, f in all_findings(made)] == [SOFTMAX, NORM]
    assert headline(made, marked).startswith("Blocked: <softmax_kernel> returns wrong values")
    told = comment(made)
    assert told.index("introduced by this change") < told.index("already there on the base")
    assert annotate(made).splitlines()[0].startswith("::error file=ops/softmax.py")


def test_of_two_findings_of_one_kernel_the_introduced_one_is_the_headline() -> None:
    old = replace(WRONG, kind=FailureKind.RACE, origin="already there")
    op = replace(SOFTMAX_OP, findings=(old, replace(WRONG, kernel="ops/softmax.py::helper")))
    made = result(kernel(SOFTMAX, Verdict.ILLUSION, "softmax"), ops=(op,))
    assert headline(made, marked).startswith("Blocked: <helper> returns wrong values")


def test_a_finding_that_nothing_separates_is_told_by_an_example() -> None:
    lost = replace(WRONG, diagnosis=Diagnosis(condition=NOTHING_SEPARATES))
    assert when(lost, marked) == ", for example at <B=4 H=513 T=float32>"
    few = replace(WRONG, diagnosis=Diagnosis(condition="seen in 1 of 16 cases: N=1"))
    assert when(few, marked) == " (<seen in 1 of 16 cases: N=1>)"


def test_a_condition_that_was_not_tested_is_told_of_the_cases_run() -> None:
    said = "in the 40 cases run, fails only when M > 4 (9 of 11 such cases)"
    told = replace(WRONG, diagnosis=Diagnosis(condition=said))
    assert when(told, marked) == " only when <M > 4> in the 40 cases run"
