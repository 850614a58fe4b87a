"""The 16 controls and more than 20 further correct kernels trip no check, on either device.

python -m pytest tests/engine/test_controls_on_devices.py            both devices
python -m pytest tests/engine/test_controls_on_devices.py -k cuda    the GPU alone
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from gate.engine.device import choose_device
from gate.engine.lanes import Crew
from gate.engine.oprun import OpRun
from gate.engine.settings import RunSettings
from gate.engine.task import OpTask
from gate.result import OpReport
from gate.run.capacity import lanes_for
from gate.run.settings import WorkerSettings
from gate.study.corpus import Role, load_corpus

NO_GPU = choose_device("auto") != "cuda"
DEVICES = [
    pytest.param("interpreter", marks=pytest.mark.slow),
    pytest.param("cuda", marks=[pytest.mark.gpu, pytest.mark.skipif(NO_GPU, reason="no GPU here")]),
]
CASES = {"interpreter": 4, "cuda": 8}
"""Cases an op; the first of a plan are the likeliest to fail."""
SIDE_BY_SIDE = 6
"""Ops that run at once, so that what one compiles is hidden by what another runs."""

pytestmark = [pytest.mark.triton, pytest.mark.timeout(900)]

CORPUS = load_corpus()
CORRECT = [kernel.op for kernel in CORPUS.kernels if kernel.role is Role.CONTROL]
TASKS = {task.schema.op: task for task in CORPUS.tasks}


@pytest.fixture(scope="module", params=DEVICES)
def reports(request: pytest.FixtureRequest) -> Iterator[dict[str, OpReport]]:
    """Return what every correct kernel came to on one device."""
    device = request.param
    settings = RunSettings(
        device=device, cases=CASES[device], seed=7, shrink_runs=8, diagnose_runs=0, oracles=False
    )
    with (
        Crew(WorkerSettings(device=device), min(12, lanes_for(device))) as crew,
        ThreadPoolExecutor(SIDE_BY_SIDE) as pool,
    ):

        def run(task: OpTask) -> OpReport:
            return OpRun(task=task, crew=crew, settings=settings).run()

        yield dict(zip(CORRECT, pool.map(run, [TASKS[op] for op in CORRECT]), strict=True))


def test_there_are_sixteen_controls_and_twenty_further_correct_kernels() -> None:
    paper = load_corpus(part="paper").kernels
    controls = [kernel.op for kernel in paper if kernel.role is Role.CONTROL]
    assert len(controls) == 16
    assert len(set(CORRECT) - set(controls)) >= 20


@pytest.mark.parametrize("op", CORRECT)
def test_a_correct_kernel_trips_no_check(op: str, reports: dict[str, OpReport]) -> None:
    report = reports[op]
    told = [
        f"{finding.kind.value}: {finding.message}\n  {finding.case}\n  {finding.trace}"
        for finding in report.findings
    ]
    assert not told, "\n".join([*told, *report.notes])
    assert report.counts.passed > 0, (report.counts, report.notes)
    if TASKS[op].kernels:  # three controls are NumPy's
        assert any(launches for _, launches in report.kernels_seen), report.kernels_seen
