"""Save the tensors of a replay for a person to look at."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from gate.case.model import Case
from gate.engine.cases import prepare
from gate.engine.context import CaseRecord
from gate.engine.lanes import Crew, Lane
from gate.engine.task import OpTask
from gate.errors import UsageError
from gate.judge.oracle import ReferenceFault
from gate.run.protocol import Mode

_NATIVE = frozenset("?bBhHiIlLqQefd")
"""dtype characters that every NumPy reads back from a .npy file."""


def dump_tensors(
    task: OpTask, case: Case, crew: Crew, record: CaseRecord, folder: Path
) -> list[Path]:
    """Write `in_*.npy`, `out_*.npy` and `ref_*.npy`; bfloat16 and float8 become float32.

    Returns the files written, in order of name.

    Raises
        UsageError  the folder cannot be written
    """
    arrays = crew.call(lambda lane: _collect(task, case, lane, record))
    try:
        folder.mkdir(parents=True, exist_ok=True)
        return [_save(folder / f"{name}.npy", array) for name, array in sorted(arrays.items())]
    except OSError as problem:
        raise UsageError(
            f"--dump {folder}: cannot be written ({problem.strerror}); name a folder of your own"
        ) from problem


def _collect(task: OpTask, case: Case, lane: Lane, record: CaseRecord) -> Mapping[str, Any]:
    ready = prepare(task, case, lane)
    arrays: dict[str, Any] = {}
    for name, value in ready.inputs.values.items():
        if isinstance(value, np.ndarray):
            arrays[f"in_{name}"] = value
        elif isinstance(value, list):
            arrays |= {f"in_{name}_{i}": item for i, item in enumerate(value)}
    outputs = record.observation.outputs
    arrays |= {f"out_{fact.name}": fact.data for fact in outputs if fact.data is not None}
    try:
        truth = ready.oracle.values(Mode.FLOAT64)
    except ReferenceFault:
        return arrays
    for fact, value in zip(outputs, truth, strict=False):
        if isinstance(value, np.ndarray):
            arrays[f"ref_{fact.name}"] = value
    return arrays


def _save(path: Path, array: Any) -> Path:
    held = np.asarray(array)
    plain = held if held.dtype.char in _NATIVE else held.astype(np.float32)
    np.save(path, plain, allow_pickle=False)
    return path
