"""One op from source text to its report, on one lane, of the interpreter unless told otherwise."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from gate.change.kernels import scan
from gate.change.tree import DirTree
from gate.engine.lanes import Crew
from gate.engine.oprun import OpRun
from gate.engine.settings import RunSettings
from gate.engine.task import OpTask
from gate.result import OpReport
from gate.run.settings import WorkerSettings
from gate.schema.load import load_text
from gate.schema.match import covered
from gate.schema.model import OpSchema

HEAD = """\
import torch
import triton
import triton.language as tl

"""


@contextmanager
def crew(device: str = "interpreter") -> Iterator[Crew]:
    with Crew(WorkerSettings(device=device), 1) as made:
        yield made


def task(folder: Path, kernel: str, schema: str, **files: str) -> OpTask:
    """Write `op.py`, `op.op.yaml` and further files (`ref` becomes `ref.py`)."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "op.py").write_text(HEAD + kernel)
    for name, text in files.items():
        (folder / f"{name}.py").write_text("import torch\n" + text)
    loaded, index = read(schema), scan(DirTree(folder))
    return OpTask(
        schema=loaded, root=str(folder), trusted_root=str(folder), kernels=covered(loaded, index),
        files={kernel.id: (kernel.file, kernel.line) for kernel in index.kernels.values()},
    )  # fmt: skip


def read(schema: str) -> OpSchema:
    (loaded,) = load_text(schema.encode(), "op.op.yaml")
    return loaded


def run(made: OpTask, lanes: Crew, *, cases: int = 16, seed: int = 0) -> OpReport:
    settings = RunSettings(
        device=lanes.info.device, cases=cases, seed=seed, shrink_runs=8, diagnose_runs=0
    )
    return OpRun(task=made, crew=lanes, settings=settings).run()
