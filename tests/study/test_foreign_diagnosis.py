"""What is said of bugs in kernels that no rule was made for: it is the truth, less than that and
says so, or nothing.

Each kernel of `data/foreign` has one mistake, and beside it stand the exact condition under which
it is wrong and the words that a true cause has. The gate runs it as it runs any other.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from gate.change.kernels import scan
from gate.change.stores import store_lines
from gate.change.tiles import static_tiles
from gate.change.tree import DirTree
from gate.engine.lanes import Crew
from gate.engine.oprun import OpRun
from gate.engine.settings import RunSettings
from gate.engine.task import OpTask
from gate.judge.reading import read_condition, stated
from gate.result import Finding, Place
from gate.run.settings import WorkerSettings
from gate.schema.load import load_text
from gate.study.diagnosis import Drawn, judge_words
from gate.study.samplers import sample

pytestmark = [pytest.mark.triton, pytest.mark.slow]
FOLDER = Path(__file__).parent / "data/foreign"
TYPES = "dtypes: {T: [float32, float16, bfloat16]}"
AMONG = "in the "
"""How a sentence begins that speaks of the cases that were run alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Foreign:
    """One bug."""

    bug: str
    """What is wrong."""
    truth: str
    """When it shows, in the words of a diagnosis; empty where these have no words for it."""
    causes: tuple[str, ...]
    """Parts of true causes; any other cause is false."""
    entry: str
    schema: str


BUGS = {
    "rms3": Foreign(
        bug="the load of the sum of squares pads with 1",
        truth="H % 128 != 0",
        causes=("whole tiles of 128 of H are counted",),
        entry="rms3",
        schema="""
reference: x * torch.rsqrt((x * x).mean(-1, keepdim=True) + eps) * w
dims: {B: 1..4, S: 1..12, H: 1..600}
args:
  x: {tensor: [B, S, H], dtype: T}
  w: {tensor: [H], dtype: T}
  eps: {scalar: float, values: [1e-6, 1e-5]}
returns:
  y: {tensor: [B, S, H], dtype: T}
""",
    ),
    "rope4": Foreign(
        bug="the position is taken from the program id divided by the number of heads",
        truth="H > 1 and S > 1",
        causes=(),
        entry="rope4",
        schema="""
reference: "torch.cat([x[..., :R] * cos[:, None] - x[..., R:] * (sin * (1 - 2 * inverse))[:, None], x[..., R:] * cos[:, None] + x[..., :R] * (sin * (1 - 2 * inverse))[:, None]], -1)"
dims: {B: 1..3, S: 1..8, H: 1..3, R: 1..20, D: 2 * R}
args:
  x: {tensor: [B, S, H, D], dtype: T}
  cos: {tensor: [S, R], dtype: float32, values: -1..1}
  sin: {tensor: [S, R], dtype: float32, values: -1..1}
  inverse: {scalar: bool}
returns:
  y: {tensor: [B, S, H, D], dtype: T}
""",  # noqa: E501 - one expression
    ),
    "xent": Foreign(
        bug="the ignored label is compared with -1",
        truth="labels holds -100 and V > 1",
        causes=("a sentinel or negative value of `labels`",),
        entry="xent",
        schema="""
reference: "F.cross_entropy(logits, labels, reduction='none', label_smoothing=smooth)"
dims: {M: 1..48, V: 1..2048}
args:
  logits: {tensor: [M, V], dtype: T}
  labels: {tensor: [M], dtype: int64, values: {range: 0..V-1, also: [-100]}}
  smooth: {scalar: float, values: [0.0, 0.1]}
returns:
  loss: {tensor: [M], dtype: float32}
nonfinite: off
""",
    ),
    "softmax2": Foreign(
        bug="the grid has a program for each whole tile of 4 rows",
        truth="M % 4 != 0 and M > 4",
        causes=("some elements of `y` are never stored: too few programs",),
        entry="softmax2",
        schema="""
reference: torch.softmax(x * scale, dim=-1)
dims: {M: 1..64, N: 1..1024}
args:
  x: {tensor: [M, N], dtype: T}
  scale: {scalar: float, values: [1.0, 0.5]}
returns:
  y: {tensor: [M, N], dtype: T}
nonfinite: off
""",
    ),
    "segsum": Foreign(
        bug="the loop stops before a tile that holds one row",
        truth="",
        causes=(),
        entry="segsum",
        schema="""
reference: refs.py::segsum
dims: {NS: 1..8, TQ: 0..256, D: 1..256}
args:
  x: {tensor: [TQ, D], dtype: T}
  cu: {tensor: [NS + 1], dtype: int32, values: {offsets: TQ}}
returns:
  y: {tensor: [NS, D], dtype: T}
""",
    ),
    "lnres": Foreign(
        bug="the residual is read with the row stride of x",
        truth="x and r have other row pitches",
        causes=("one row stride is used for both `x` and `r`",),
        entry="lnres",
        schema="""
reference: "F.layer_norm(x + r, [N], w, b, eps)"
dims: {M: 1..32, N: 1..1100}
args:
  x: {tensor: [M, N], dtype: T}
  r: {tensor: [M, N], dtype: T}
  w: {tensor: [N], dtype: T}
  b: {tensor: [N], dtype: T}
  eps: {scalar: float, values: [1e-6, 1e-5]}
returns:
  y: {tensor: [M, N], dtype: T}
""",
    ),
    "scatadd": Foreign(
        bug="what belongs to index -1 is added to row 0",
        truth="index holds -1",
        causes=("a sentinel or negative value of `index`",),
        entry="scatadd(x, index, w, E)",
        schema="""
reference: refs.py::scatadd(x, index, w, E)
dims: {TQ: 0..128, E: 1..32, D: 1..96}
args:
  x: {tensor: [TQ, D], dtype: T}
  index: {tensor: [TQ], dtype: int32, values: {range: 0..E-1, also: [-1]}}
  w: {tensor: [TQ], dtype: float32, values: -1..1}
returns:
  out: {tensor: [E, D], dtype: float32}
nondeterministic: [out]
nonfinite: off
""",
    ),
}


@pytest.fixture(scope="module")
def crew() -> Iterator[Crew]:
    with Crew(WorkerSettings(device="interpreter"), 1) as made:
        yield made


def task_of(name: str, folder: Path) -> OpTask:
    for source in (f"{name}.py", "refs.py"):
        shutil.copy(FOLDER / source, folder / source)
    foreign = BUGS[name]
    text = f"format: 1\nop: {name}\nentry: {name}.py::{foreign.entry}\n{TYPES}{foreign.schema}"
    (schema,) = load_text(text.encode(), f"{name}.op.yaml")
    index = scan(DirTree(folder))
    kernels = tuple(index.kernels)
    return OpTask(
        schema=schema, root=str(folder), trusted_root=str(folder), kernels=kernels,
        tiles=tuple(sorted({t for kernel in kernels for t in static_tiles(index, kernel)})),
        files={k: (index.kernels[k].file, index.kernels[k].line) for k in kernels},
        stores={k: store_lines(index, k) for k in kernels},
    )  # fmt: skip


def drawn(task: OpTask) -> Drawn:
    cases = [
        case
        for strategy in ("ours", "uniform")
        for case in sample(strategy, task, seed=20_260, cases=40, device="interpreter")
    ]
    return Drawn(schema=task.schema, cases=tuple(cases))


def is_honest(truth: str, findings: tuple[Finding, ...], task: OpTask) -> bool:
    """Whether what is said is the truth, or weaker and says so."""
    said = [finding.diagnosis.condition for finding in findings]
    cases = drawn(task)
    if truth and judge_words(truth, said, cases)[0]:
        return True
    wide = [text for text in said if stated(text) and not text.startswith(AMONG)]
    if not truth:
        return not wide
    holds = read_condition(truth)
    facts = cases.factors(values=True)
    return all(
        text.startswith("fails only when")
        and all(read_condition(stated(text))(f) for f in facts if holds(f))
        for text in wide
    )


@pytest.mark.parametrize("name", BUGS)
def test_no_condition_and_no_cause_is_false(name: str, crew: Crew, tmp_path: Path) -> None:
    task = task_of(name, tmp_path)
    settings = RunSettings(
        device="interpreter", cases=40, checks=("bounds", "wrap", "race"), oracles=False,
        max_findings=2, shrink_seconds=120.0,
    )  # fmt: skip
    findings = OpRun(task=task, crew=crew, settings=settings).run().findings
    assert findings
    told = [(f.diagnosis.condition, f.diagnosis.cause) for f in findings]
    assert is_honest(BUGS[name].truth, findings, task), told
    for finding in findings:
        cause = finding.diagnosis.cause
        assert not cause or any(part in cause for part in BUGS[name].causes), told
        assert finding.place is not Place.FAULT or finding.comparison is None
