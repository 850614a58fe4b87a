"""Kernels in the manner of the field's libraries: right, and no check trips, on both devices."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import field
import pytest
import torch

HERE = Path(__file__).resolve().parent

pytestmark = pytest.mark.triton


@pytest.mark.parametrize("one", field.LAUNCHES, ids=lambda one: one.name)
def test_a_correct_kernel_trips_no_check_in_the_interpreter(
    one: field.Field, seen: dict[str, Any]
) -> None:
    if one not in field.FIELDS:
        pytest.skip(f"Triton compiles it from {one.since} on")
    report = seen[f"field_{one.name}"]
    assert report["error"] == ""
    assert report["faults"] == []
    assert report["off"] <= one.near


def test_every_launch_has_a_name_of_its_own() -> None:
    assert len({one.name for one in field.LAUNCHES}) == len(field.LAUNCHES) >= 35


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_the_kernels_compute_the_same_on_a_gpu() -> None:
    command = [sys.executable, str(HERE / "field_on_gpu.py")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
