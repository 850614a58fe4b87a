"""One case from facts to judgement: ends, refusals, receipts, faults, forms, and their order."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from judge_fakes import (
    KERNEL,
    UNARY,
    World,
    expr,
    fact,
    observation,
    op,
    picking,
    ret,
    softmax,
    tensor,
    world,
)

from gate.judge.model import CaseStatus, FailureKind
from gate.judge.oracle import ReferenceFault, judged_names
from gate.run.protocol import ErrorFact, Fault, LaunchFact, Outcome, OutputFact, TouchFact
from gate.schema.model import Io

PLAIN = "op[B=64 H=256; T=float32; x=contiguous/normal; seed=000001]"
ODD_SIZE = "op[B=64 H=257; T=float32; x=contiguous/normal; seed=000001]"
ODD_LAYOUT = "op[B=64 H=256; T=float32; x=row_gap/normal; seed=000001]"


@pytest.fixture
def w() -> World:
    return world(UNARY, PLAIN, softmax)


def raised(kind: str, stage: str = "launcher", trace: str = "", **more: Any) -> Any:
    bases = {"ValueError": ("Exception",), "Odd": ("ValueError", "Exception")}.get(kind, ())
    error = ErrorFact(type=kind, bases=bases, message="no\nmore", stage=stage, trace=trace,
                      file="ops/k.py", line=3)  # fmt: skip
    more.setdefault("launches", ())
    return observation(outcome=Outcome.RAISED, error=error, **more)


# --- ends ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("outcome", "status", "kind"),
    [
        (Outcome.DIED, CaseStatus.FAIL, FailureKind.DIED),
        (Outcome.HUNG, CaseStatus.FAIL, FailureKind.HUNG),
        (Outcome.GARBLED, CaseStatus.FAIL, FailureKind.DIED),
        (Outcome.NOT_LOADED, CaseStatus.UNDECIDED, None),
        (Outcome.UNSUPPORTED, CaseStatus.UNDECIDED, None),
    ],
)
def test_how_a_call_ends(
    w: World, outcome: Outcome, status: CaseStatus, kind: FailureKind | None
) -> None:
    error = ErrorFact(type="signal", message="SIGSEGV")
    judged = w.judge_seen(observation(outcome=outcome, error=error))
    assert judged.status is status
    assert [f.kind for f in judged.failures] == ([kind] if kind else [])
    assert all(f.kernel == KERNEL for f in judged.failures)


def test_a_signal_is_named(w: World) -> None:
    error = ErrorFact(type="signal", message="SIGSEGV")
    judged = w.judge_seen(observation(outcome=Outcome.DIED, error=error))
    assert judged.failures[0].message == "its process was killed by SIGSEGV"


# --- refusals -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("case", "seen", "status"),
    [
        (ODD_LAYOUT, raised("ValueError"), CaseStatus.REFUSED),
        (ODD_SIZE, raised("NotImplementedError"), CaseStatus.REFUSED),
        (ODD_SIZE, raised("Odd"), CaseStatus.REFUSED),
        (PLAIN, raised("ValueError"), CaseStatus.FAIL),
        (ODD_LAYOUT, raised("KeyError"), CaseStatus.FAIL),
        (ODD_LAYOUT, raised("ValueError", "launch"), CaseStatus.FAIL),
        (ODD_LAYOUT, raised("RuntimeError"), CaseStatus.FAIL),
        (
            ODD_LAYOUT,
            raised(
                "RuntimeError", trace="ops/k.py:2: run(x)\nops/k.py:3: raise RuntimeError('no')"
            ),
            CaseStatus.REFUSED,
        ),
        (
            ODD_LAYOUT,
            raised("RuntimeError", trace="ops/k.py:3: y = x.view(-1)"),
            CaseStatus.FAIL,
        ),
    ],
)
def test_an_unusual_layout_or_size_may_be_refused_before_any_launch(
    case: str, seen: Any, status: CaseStatus
) -> None:
    judged = world(UNARY, case, softmax).judge_seen(seen)
    assert judged.status is status
    if status is CaseStatus.FAIL:
        assert judged.failures[0].kind is FailureKind.RAISED
    else:
        assert judged.notes[0].startswith("refused: ")


def test_an_exception_after_a_launch_is_no_refusal() -> None:
    seen = raised("ValueError", launches=(LaunchFact(kernel=KERNEL, grid=(1, 1, 1)),))
    assert world(UNARY, ODD_LAYOUT, softmax).judge_seen(seen).status is CaseStatus.FAIL


def test_a_refusal_that_wrote_into_its_input_is_a_failure() -> None:
    touched = (TouchFact(arg="x", where="value", count=3, first=0),)
    judged = world(UNARY, ODD_LAYOUT, softmax).judge_seen(raised("ValueError", touched=touched))
    assert judged.failures[0].kind is FailureKind.MUTATED


def test_raises_demands_its_error_and_allows_it_nowhere_else() -> None:
    schema = op(args=UNARY.args, returns=UNARY.returns,
                raises=(("ValueError", (expr("H % 256 != 0"),)),))  # fmt: skip
    odd, plain = world(schema, ODD_SIZE, softmax), world(schema, PLAIN, softmax)
    assert odd.judge_seen(raised("ValueError")).status is CaseStatus.REFUSED
    assert odd.judge_seen(raised("Odd", "launch")).status is CaseStatus.REFUSED
    assert odd.judge_seen(raised("TypeError")).failures[0].kind is FailureKind.RAISED
    assert odd.judge(odd.rounded()).failures[0].kind is FailureKind.NOT_RAISED
    assert plain.judge(plain.rounded()).status is CaseStatus.PASS
    layout = world(schema, ODD_LAYOUT, softmax)
    assert layout.judge_seen(raised("ValueError")).failures[0].kind is FailureKind.RAISED


def test_what_does_not_compile_says_so(w: World) -> None:
    judged = w.judge_seen(raised("CompilationError", "compile"))
    assert judged.failures[0].kind is FailureKind.COMPILE
    assert judged.failures[0].line == 3
    assert "does not compile" in judged.failures[0].message


def test_too_little_memory_is_no_verdict(w: World) -> None:
    assert w.judge_seen(raised("OutOfMemoryError", "launch")).status is CaseStatus.UNDECIDED


@pytest.mark.parametrize(
    ("error", "message", "open_question"),
    [
        ("PermissionError", "[Errno 13] Permission denied: '/data/cache'", True),
        ("OSError", "[Errno 30] Read-only file system: '/opt/cache'", True),
        ("OSError", "[Errno 28] No space left on device", False),
        ("ValueError", "[Errno 30] Read-only file system", False),
    ],
)
def test_a_file_that_a_fence_refuses_is_no_defect_of_a_kernel(
    w: World, error: str, message: str, open_question: bool
) -> None:
    seen = raised(error, "host")
    seen = replace(seen, error=replace(seen.error, message=message))
    judged = w.judge_seen(seen)
    wanted = CaseStatus.UNDECIDED if open_question else CaseStatus.FAIL
    assert judged.status is wanted
    if open_question:
        assert message in " ".join(judged.notes)


@pytest.mark.parametrize(
    ("device", "message", "trace", "open_question"),
    [
        ("interpreter", "CUDA tensors only", "", True),
        ("interpreter", "", "ops/k.py:7 in run\n    assert x.is_cuda", True),
        ("interpreter", "Torch not compiled with CUDA enabled", "", True),
        ("interpreter", "", "ops/cuda/k.py:7 in run\n    assert x.dim() == 3", False),
        ("cuda", "CUDA tensors only", "", False),
    ],
)
def test_a_launcher_that_asks_for_a_gpu_says_nothing_of_its_kernel_on_the_cpu(
    w: World, device: str, message: str, trace: str, open_question: bool
) -> None:
    seen = raised("AssertionError", "launcher")
    fact = replace(seen.error, message=message, trace=trace)
    judged = w.judge_seen(replace(seen, error=fact, device=device, launches=(), launch_count=0))
    assert (judged.status is CaseStatus.UNDECIDED) is open_question
    if open_question:
        assert "run with `--device cuda`" in judged.notes[0]


# --- receipts and faults ------------------------------------------------------------------------


def test_a_right_answer_without_a_launch_is_not_exercised(w: World) -> None:
    assert w.judge(w.rounded(), launches=()).status is CaseStatus.NOT_EXERCISED
    elsewhere = (LaunchFact(kernel="ops/k.py::other", grid=(1, 1, 1)),)
    assert w.judge(w.rounded(), launches=elsewhere).status is CaseStatus.NOT_EXERCISED


def test_a_launch_of_no_program_is_no_receipt_that_the_kernel_ran(w: World) -> None:
    decoy = (LaunchFact(kernel=KERNEL, grid=(0, 1, 1)),)
    assert w.judge(w.rounded(), launches=decoy).status is CaseStatus.NOT_EXERCISED
    some = (*decoy, LaunchFact(kernel=KERNEL, grid=(2, 1, 1)))
    assert w.judge(w.rounded(), launches=some).status is CaseStatus.PASS


def test_a_wrong_answer_without_a_launch_still_fails(w: World) -> None:
    assert w.judge(np.zeros((64, 256), np.float32), launches=()).status is CaseStatus.FAIL


@pytest.mark.parametrize(
    ("kind", "judged_as"),
    [
        ("oob_read", FailureKind.OOB_READ),
        ("oob_write", FailureKind.OOB_WRITE),
        ("int_wrap", FailureKind.INT_WRAP),
        ("race", FailureKind.RACE),
        ("uninitialised", FailureKind.UNWRITTEN),
        ("grid", FailureKind.GRID),
        ("compile", FailureKind.COMPILE),
    ],
)
def test_each_fault_of_the_device_is_a_failure_at_its_line(
    w: World, kind: str, judged_as: FailureKind
) -> None:
    fault = Fault(kind=kind, kernel="ops/k.py::helper", line=12, tensor="x", message="there")
    failure = w.judge(w.rounded(), faults=(fault, fault)).failures
    assert [(f.kind, f.kernel, f.line, f.message) for f in failure] == [
        (judged_as, "ops/k.py::helper", 12, "there")
    ]


def test_a_fault_comes_before_the_wrong_value_that_it_explains(w: World) -> None:
    fault = Fault(kind="oob_read", kernel=KERNEL, line=12, tensor="x", message="there")
    touched = (TouchFact(arg="x", where="value", count=1, first=7),)
    judged = w.judge(np.zeros((64, 256), np.float32), faults=(fault,), touched=touched)
    kinds = [f.kind for f in judged.failures]
    assert kinds == [FailureKind.OOB_READ, FailureKind.WRONG_VALUE, FailureKind.MUTATED]


def test_another_tensor_object_is_a_changed_input(w: World) -> None:
    fact = TouchFact(arg="x", where="object", count=1, first=0, detail="shape [0], was [5]")
    failure = w.judge(w.rounded(), touched=(fact,)).failures[0]
    assert (failure.kind, failure.key) == (FailureKind.MUTATED, "tensor object x")
    assert failure.message.endswith("`x` itself, not what it holds: shape [0], was [5]")


@pytest.mark.parametrize(
    ("where", "kind"),
    [
        ("value", FailureKind.MUTATED),
        ("before", FailureKind.OOB_WRITE),
        ("after", FailureKind.OOB_WRITE),
        ("gap", FailureKind.OOB_WRITE),
    ],
)
def test_each_touched_place_is_a_failure(w: World, where: str, kind: FailureKind) -> None:
    touched = (TouchFact(arg="x", where=where, count=2, first=-4),)
    failure = w.judge(w.rounded(), touched=touched).failures[0]
    assert (failure.kind, failure.key) == (kind, "x")


@pytest.mark.parametrize(
    ("free", "status"),
    [(False, CaseStatus.FAIL), (True, CaseStatus.PASS), (("y",), CaseStatus.PASS),
     (("z",), CaseStatus.FAIL)],
)  # fmt: skip
def test_unequal_bits_fail_unless_declared(free: Any, status: CaseStatus) -> None:
    schema = op(args=UNARY.args, returns=UNARY.returns, nondeterministic=free)
    w = world(schema, PLAIN, softmax)
    assert w.judge(w.rounded(), differs=("y",)).status is status


# --- forms --------------------------------------------------------------------------------------


def test_forms_that_are_wrong(w: World) -> None:
    right = w.rounded()
    assert w.judge(None).failures[0].kind is FailureKind.WRONG_RETURN
    assert w.judge(right.astype(np.float16)).failures[0].kind is FailureKind.WRONG_DTYPE
    assert w.judge(right[:, :5]).failures[0].kind is FailureKind.WRONG_SHAPE
    assert w.judge(right.T.copy()).failures[0].kind is FailureKind.WRONG_SHAPE
    assert w.judge_seen(observation()).failures[0].kind is FailureKind.WRONG_RETURN
    text = OutputFact(name="y", dtype="str")
    assert w.judge(text).failures[0].kind is FailureKind.WRONG_RETURN
    extra = observation(fact("y", right), fact("#1", right))
    assert w.judge_seen(extra).failures[0].kind is FailureKind.WRONG_RETURN


def test_a_result_on_the_host_is_wrong_on_a_gpu(w: World) -> None:
    seen = replace(observation(fact("y", w.rounded())), device="cuda")
    failure = w.judge_seen(seen).failures[0]
    assert failure.kind is FailureKind.WRONG_DEVICE and "lies on cpu" in failure.message
    meta = observation(replace(fact("y", w.rounded()), device="meta", data=None))
    failure = w.judge_seen(meta).failures[0]
    assert failure.kind is FailureKind.WRONG_DEVICE and "has no values" in failure.message
    there = replace(fact("y", w.rounded()), device="cuda")
    assert w.judge_seen(replace(observation(there), device="cuda")).status is CaseStatus.PASS


def test_a_return_that_must_be_an_arg_itself() -> None:
    schema = op(args=(tensor("x", "B H", io=Io.INOUT),), returns=(ret("y", None, is_arg="x"),))
    assert judged_names(schema) == ("x",)
    w = world(schema, PLAIN, softmax)
    x = fact("x", w.rounded())
    same = OutputFact(name="y", is_arg="x", dtype="float32", shape=(64, 256))
    copy = OutputFact(name="y", dtype="float32", shape=(64, 256))
    assert w.judge_seen(observation(same, x)).status is CaseStatus.PASS
    failure = w.judge_seen(observation(copy, x)).failures[0]
    assert "must be the very tensor `x`, and another tensor came back" in failure.message


def test_a_return_that_is_none_when_its_condition_says_so() -> None:
    schema = op(args=UNARY.args, returns=(*UNARY.returns, ret("z", "B", when=expr("H > 256"))))
    w = world(schema, PLAIN, lambda x: (softmax(x), None))
    assert w.judge(w.rounded(), None).status is CaseStatus.PASS
    judged = w.judge(w.rounded(), np.zeros(64, np.float32))
    assert judged.failures[0].message == "`z` must be None here"


def test_shared_memory_is_told() -> None:
    w = world(UNARY, PLAIN, lambda x: x)
    shared = replace(fact("y", w["x"]), overlaps=("x",))
    judged = w.judge(shared)
    assert judged.status is CaseStatus.PASS
    assert judged.notes == ("`y` shares memory with `x`",)


def test_a_list_is_judged_tensor_by_tensor() -> None:
    schema = op(args=UNARY.args, returns=(ret("ys", None),))
    w = world(schema, PLAIN, lambda x: ([x[:, :100], x[:, 100:]],))
    parts = [w["x"][:, :100], w["x"][:, 100:]]
    both = [fact(f"ys[{i}]", part) for i, part in enumerate(parts)]
    assert w.judge_seen(observation(*both)).status is CaseStatus.PASS
    assert w.judge_seen(observation(both[0])).failures[0].key == "ys[1]"
    wrong = fact("ys[1]", parts[1] + 1)
    assert w.judge_seen(observation(both[0], wrong)).failures[0].key == "ys[1]"


@pytest.mark.parametrize("dtype", ["float32", "int32", "float8_e5m2", "bool"])
def test_outputs_without_axes_are_judged_too(dtype: str) -> None:
    from gate.dtypes import encode, to_float64

    schema = op(args=UNARY.args, returns=(ret("y", "", dtype),))
    w = world(schema, PLAIN, lambda x: x.sum() > 0 if dtype == "bool" else np.asarray(x.sum() // 1))
    right = encode(np.asarray(to_float64(w.truth[0])), dtype)
    assert w.judge(right).status is CaseStatus.PASS
    other = encode(np.asarray(1 - to_float64(w.truth[0])), dtype)
    assert w.judge(other).failures[0].kind is FailureKind.WRONG_VALUE
    if dtype == "float32":
        assert w.judge(np.asarray(np.nan, np.float32)).failures[0].kind is FailureKind.NONFINITE


def test_a_pick_from_a_whole_tensor_has_no_axes() -> None:
    schema = op(args=UNARY.args, returns=(ret("i", "", "int64", compare=picking("x", "None")),))
    w = world(schema, PLAIN, lambda x: np.asarray(x.argmax()))
    assert w.judge(np.asarray(w["x"].argmax())).status is CaseStatus.PASS
    assert w.judge(np.asarray(w["x"].argmin())).status is CaseStatus.FAIL


# --- reference ----------------------------------------------------------------------------------


def test_a_reference_that_fails_or_disagrees_leaves_the_case_undecided() -> None:
    def fails(x: Any) -> Any:
        raise ValueError("no such axis")

    w = world(UNARY, PLAIN, fails)
    judged = w.judge(w["x"])
    assert judged.status is CaseStatus.UNDECIDED
    assert "ValueError: no such axis" in judged.notes[0]
    w = world(UNARY, PLAIN, lambda x: x[:, :5])
    judged = w.judge(w["x"])
    assert judged.status is CaseStatus.UNDECIDED and "shape" in judged.notes[0]
    w = world(UNARY, PLAIN, lambda x: (x, x))
    assert "gives 2 values" in w.judge(w["x"]).notes[0]


def test_what_the_device_saw_stands_without_a_reference() -> None:
    def fails(x: Any) -> Any:
        raise ValueError("no")

    w = world(UNARY, PLAIN, fails)
    touched = (TouchFact(arg="x", where="after", count=2, first=4),)
    assert w.judge(w["x"], touched=touched).failures[0].kind is FailureKind.OOB_WRITE


def test_a_reference_fault_names_the_place() -> None:
    fault = ReferenceFault(ErrorFact(type="IndexError", message="3", file="refs/a.py", line=4))
    assert str(fault) == "IndexError: 3 (refs/a.py:4)"


# --- words --------------------------------------------------------------------------------------


def test_the_sentence_says_how_many_where_and_how_far() -> None:
    w = world(UNARY, ODD_SIZE, softmax)
    out = w.rounded()
    out[:, 256] = 0
    block = (LaunchFact(kernel=KERNEL, grid=(64, 1, 1), constexprs=(("BLOCK", 128),)),)
    failure = w.judge(out, launches=block).failures[0]
    assert failure.message.startswith(
        "`y` is wrong at 64 of 16448 elements (column 256 (the last partial tile of 128), all "
        "zeros): at ["
    )
    assert failure.comparison is not None and failure.comparison.rule == "rounding envelope"
    assert failure.fingerprint == f"wrong value|{KERNEL}|y"


@pytest.mark.parametrize(("value", "fill"), [(np.nan, 0), (-(2.0**14), 1), (-(2.0**13), None)])
def test_wrong_elements_that_hold_a_fill_of_fresh_memory_are_told_without_a_verdict(
    value: float, fill: int | None
) -> None:
    w = world(UNARY, ODD_SIZE, softmax)
    out = w.rounded()
    out[:, 256] = value
    failure = w.judge(out).failures[0]
    assert failure.kind is not FailureKind.UNWRITTEN
    assert failure.fill == fill
