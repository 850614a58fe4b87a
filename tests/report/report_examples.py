"""Results of runs that never were, one for each thing that a report has to say."""

from __future__ import annotations

from dataclasses import replace

from gate.change.model import ChangeReason
from gate.judge.model import (
    BenchmarkVerdict,
    Comparison,
    ErrorStats,
    FailureKind,
    Verdict,
)
from gate.result import (
    CaseCounts,
    Diagnosis,
    Digest,
    Finding,
    KernelReport,
    LevelGroup,
    OpReport,
    Place,
    Policy,
    RunInfo,
    RunResult,
)

SOFTMAX = "ops/softmax.py::softmax_kernel"
NORM = "ops/norm.py::rms_norm_kernel"
CASE = "softmax[B=4 H=513; T=float32; x=contiguous/normal; seed=00002a]"

INFO = RunInfo(
    tool="0.1.0",
    seed=20,
    device="cuda",
    device_name="NVIDIA H200",
    base="5f2c7d1e" * 5,
    head="a91b04c3" * 5,
    versions=(("python", "3.12.4"), ("torch", "2.11.0"), ("triton", "3.6.0")),
    fences=(("network", True), ("token", True), ("memory", False)),
    seconds=12.25,
    budget_cases=200,
    budget_seconds=300.0,
)

STATS = ErrorStats(
    compared=2052,
    wrong=4,
    nonfinite=0,
    swallowed=0,
    max_abs=0.0039061,
    max_rel=1.0,
    max_ulp=8388608.0,
    p50_abs=0.0,
    p99_abs=0.0,
    worst=(0, 512),
    worst_out=0.0,
    worst_ref=0.0039061,
    worst_allowed=1e-07,
)

COMPARISON = Comparison(
    output="y",
    dtype="float32",
    shape=(4, 513),
    ok=False,
    stats=STATS,
    rule="native error",
    pattern="column 512 (the last partial tile of 128), all zeros",
    map=("." * 56 + ":",) * 4,
)


def digest(name: str) -> Digest:
    return Digest(name=name, sha256=(name.encode().hex() * 64)[:64])


def counts(ran: int, failed: int = 0, **more: int) -> CaseCounts:
    passed = ran - failed - sum(more.values())
    return CaseCounts(
        planned=ran, ran=ran, passed=passed, failed=failed, elements=ran * 2052, **more
    )


def kernel(
    kernel_id: str, verdict: Verdict, *ops: str, line: int = 12, near: str = ""
) -> KernelReport:
    file, _, name = kernel_id.partition("::")
    return KernelReport(
        kernel=kernel_id,
        file=file,
        line=12,
        reasons=(
            ChangeReason(what="kernel", name=name, file=file),
            ChangeReason(what="constant", name="BLOCK", file=file),
        ),
        ops=ops,
        verdict=verdict,
        near=near,
    )


WRONG = Finding(
    fingerprint=f"wrong value|{SOFTMAX}|y",
    kind=FailureKind.WRONG_VALUE,
    op="softmax",
    kernel=SOFTMAX,
    file="ops/softmax.py",
    line=27,
    message="`y` is wrong at 4 of 2052 elements",
    case=CASE,
    first_case="softmax[B=64 H=1000; T=float16; x=row_gap/needle_last; seed=9f3c01]",
    failed=61,
    inputs=(digest("x"),),
    outputs=(digest("y"),),
    comparison=COMPARISON,
    diagnosis=Diagnosis(
        condition="fails exactly when H % 128 != 0",
        cause="the last, partial tile of 128 of H is not handled: the tail is not masked, or the "
        "loop or grid stops one tile short",
        mends=("cover H with `triton.cdiv(H, BLOCK)` tiles and mask with `< H`",),
    ),
    confirmed=2,
    reruns=2,
    origin="introduced",
    shrink_runs=14,
    place=Place.STORE,
)

BENCHMARKS = (
    BenchmarkVerdict(
        oracle="KernelBench",
        passed=True,
        draws=5,
        passed_draws=5,
        detail="allclose, atol = rtol = 1e-4, 5 draws of U[0, 1) at B=64 H=256 float32",
    ),
    BenchmarkVerdict(
        oracle="TritonBench",
        passed=None,
        draws=0,
        passed_draws=0,
        detail="the file prints nothing to compare",
    ),
    BenchmarkVerdict(
        oracle="GEAK",
        passed=False,
        draws=3,
        passed_draws=2,
        detail="allclose, atol = rtol = 1e-3, at three sizes",
    ),
)

SOFTMAX_OP = OpReport(
    op="softmax",
    schema="ops/softmax.op.yaml",
    verdict=Verdict.ILLUSION,
    counts=counts(200, 61, refused=2),
    kernels_seen=((SOFTMAX, 198),),
    findings=(WRONG,),
    benchmarks=BENCHMARKS,
    groups=(
        LevelGroup(name="dtype float16", counts=counts(70, 21)),
        LevelGroup(name="dtype float32", counts=counts(128, 40)),
        LevelGroup(name="layout col_stride2", counts=counts(2, refused=2)),
    ),
    notes=("the launcher refuses col_stride2: ValueError (2 cases)",),
    cases=(CASE, "softmax[B=1 H=128; T=float32; x=contiguous/negative; seed=000001]"),
    seconds=9.5,
)

GREEN_OP = OpReport(
    op="rms_norm",
    schema="ops/norm.op.yaml",
    verdict=Verdict.PASS,
    counts=counts(200),
    kernels_seen=((NORM, 200),),
    groups=(LevelGroup(name="dtype bfloat16", counts=counts(200)),),
    cases=("rms_norm[B=3 H=7; T=bfloat16; x=contiguous/normal w=contiguous/normal; seed=000007]",),
    seconds=2.0,
)

TRACE = "\n".join(
    [
        "Traceback (most recent call last):",
        '  File "ops/norm.py", line 31, in rms_norm',
        "    rms_norm_kernel[grid](x, y, n, BLOCK=block)",
        "\x1b[31m::error::you are fired\x1b[0m",
        "##[add-mask]pass",
        "</details> ![x](https://evil.example/x.png) @org/everyone fixes #1",
        "````` <!-- kernel-gate v1 tag=default --> \u202egnp.exe",
        "RuntimeError: kaput ]]> \ud800 \x00",
    ]
)

CRASH = Finding(
    fingerprint=f"raised|{NORM}|RuntimeError",
    kind=FailureKind.RAISED,
    op="rms_norm",
    kernel=NORM,
    file="ops/norm.py",
    line=31,
    message="RuntimeError: kaput `]]>`\r\n::set-output name=verdict::pass",
    case='rms_norm[B=1 H=1; T=bfloat16; x=contiguous/normal mode="it\'s"; seed=000000]',
    first_case='rms_norm[B=3 H=7; T=bfloat16; x=contiguous/normal mode="it\'s"; seed=000007]',
    failed=1,
    confirmed=2,
    reruns=2,
    origin="already there",
    trace=TRACE,
    shrink_runs=3,
)


def result(*kernels: KernelReport, ops: tuple[OpReport, ...] = (), **more: object) -> RunResult:
    return RunResult(info=INFO, kernels=kernels, ops=ops, **more)  # type: ignore[arg-type]


def green() -> RunResult:
    op = replace(
        GREEN_OP, op="softmax", schema="ops/softmax.op.yaml", kernels_seen=((SOFTMAX, 200),)
    )
    return result(
        kernel(NORM, Verdict.PASS, "rms_norm"),
        kernel(SOFTMAX, Verdict.PASS, "softmax"),
        ops=(GREEN_OP, op),
    )


def illusion() -> RunResult:
    return result(
        kernel(NORM, Verdict.PASS, "rms_norm"),
        kernel(SOFTMAX, Verdict.ILLUSION, "softmax"),
        ops=(GREEN_OP, SOFTMAX_OP),
    )


def crash() -> RunResult:
    op = replace(
        GREEN_OP, verdict=Verdict.CRASH, counts=counts(200, 1), findings=(CRASH,), benchmarks=()
    )
    made = result(kernel(NORM, Verdict.CRASH, "rms_norm"), ops=(op,))
    return replace(made, info=replace(INFO, device="interpreter", device_name="x86_64"))


def unmatched() -> RunResult:
    near = "ops/softmax.op.yaml names `soft_max_kernel`"
    return result(
        kernel(NORM, Verdict.PASS, "rms_norm"),
        kernel(SOFTMAX, Verdict.UNMATCHED, near=near),
        ops=(GREEN_OP,),
        notes=("ops/old.py: not Python 3: line 3, column 7",),
    )


def relaxed() -> RunResult:
    return result(
        kernel(NORM, Verdict.PASS, "rms_norm"),
        ops=(replace(GREEN_OP, trusted=False),),
        policy=Policy(fail_on=("defect", "relaxed")),
        relaxed=(
            "ops/norm.op.yaml: tolerance of float32 is 1e-2, was 1e-5",
            "ops/norm.op.yaml: dim H no longer reaches 16384",
        ),
        protected=(".github/workflows/kernel-gate.yml",),
    )


def undecided() -> RunResult:
    op = replace(
        SOFTMAX_OP,
        verdict=Verdict.UNDECIDED,
        counts=counts(0),
        findings=(),
        benchmarks=(),
        groups=(),
        cases=(),
        kernels_seen=(),
        notes=(
            "self-check: the reference returns 1 value, the schema declares 2: `y`, `lse`",
            "no case could be judged",
        ),
    )
    return result(
        kernel(NORM, Verdict.NOT_EXERCISED, "rms_norm"),
        kernel(SOFTMAX, Verdict.UNDECIDED, "softmax"),
        ops=(replace(GREEN_OP, verdict=Verdict.NOT_EXERCISED, kernels_seen=()), op),
    )


def interrupted() -> RunResult:
    partial = replace(counts(37), planned=200)
    return result(
        kernel(NORM, Verdict.UNDECIDED, "rms_norm"),
        kernel(SOFTMAX, Verdict.UNDECIDED, "softmax"),
        ops=(replace(GREEN_OP, counts=partial, groups=()),),
        notes=("interrupted by Ctrl-C; ops that had not ended are missing",),
        interrupted=True,
    )


def nothing() -> RunResult:
    return replace(result(), info=replace(INFO, device="", device_name="", seconds=0.25))


def old_defect() -> RunResult:
    made = crash()
    return replace(made, info=INFO, policy=Policy(fail_on=("new",)))


def flaky() -> RunResult:
    finding = replace(WRONG, confirmed=0, diagnosis=Diagnosis(), origin="")
    op = replace(SOFTMAX_OP, verdict=Verdict.FLAKY, findings=(finding,))
    return result(kernel(SOFTMAX, Verdict.FLAKY, "softmax"), ops=(op,))


EXAMPLES = {
    "green": green,
    "illusion": illusion,
    "crash": crash,
    "unmatched": unmatched,
    "relaxed": relaxed,
    "undecided": undecided,
    "interrupted": interrupted,
    "nothing": nothing,
    "old_defect": old_defect,
    "flaky": flaky,
}
