"""The interpreter's outputs against those recorded on a GPU, probe by probe."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
import zlib
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

HERE = Path(__file__).resolve().parent
GOLDEN = json.loads((HERE / "golden_h200.json").read_text(encoding="utf-8"))
NAMED = {
    "bfloat16": ml_dtypes.bfloat16,
    "float8_e4m3fn": ml_dtypes.float8_e4m3fn,
    "float8_e5m2": ml_dtypes.float8_e5m2,
}
SIGNED = {1: np.int8, 2: np.int16, 4: np.int32, 8: np.int64}

pytestmark = pytest.mark.triton


@pytest.fixture(scope="module")
def interpreted(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Return what the interpreter makes of each probe, and the probe's allowance."""
    out = tmp_path_factory.mktemp("fidelity") / "interpreted.json"
    env = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(HERE.parents[1])}
    command = [sys.executable, str(HERE / "interpret.py"), str(out)]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(out.read_text(encoding="utf-8"))


def array(raw: bytes, dtype: str) -> np.ndarray:
    return np.frombuffer(raw, dtype=NAMED.get(dtype, dtype))


def place(values: np.ndarray) -> np.ndarray:
    """Return each float's position among all floats of its dtype (both zeros are 0)."""
    bits = values.view(SIGNED[values.dtype.itemsize]).astype(object)
    top = 1 << (8 * values.dtype.itemsize - 1)
    return np.array([-(b & (top - 1)) if b < 0 else b for b in bits.tolist()], dtype=object)


def distance(got: np.ndarray, want: np.ndarray) -> int:
    """Return the largest distance in units of the last place; any NaN equals any NaN."""
    if got.dtype.kind in "iub":
        return 0 if np.array_equal(got, want) else 2**63
    nan = np.isnan(got.astype(np.float64)) & np.isnan(want.astype(np.float64))
    apart = np.where(nan, 0, np.abs(place(got) - place(want)))
    return int(apart.max(initial=0))


@pytest.mark.parametrize("name", sorted(GOLDEN["probes"]))
def test_a_probe_gives_what_the_gpu_gave(name: str, interpreted: dict[str, Any]) -> None:
    if name not in interpreted:
        assert name.startswith("block_pointer"), "a recorded probe is gone from the table"
        pytest.skip("this Triton has no block pointers")
    want, got = GOLDEN["probes"][name], interpreted[name]
    assert "error" not in want, "the probe failed on the GPU: mend it and record again"
    assert "error" not in got, got.get("error")
    assert got["inputs"] == want["inputs"], "the inputs changed since the recording"
    assert not want.get("unstable"), "the probe has no fixed result on the GPU"
    for mine, theirs in zip(got["outputs"], want["outputs"], strict=True):
        raw = zlib.decompress(base64.b64decode(theirs["data"]))
        apart = distance(
            array(bytes.fromhex(mine["raw"]), mine["dtype"]), array(raw, theirs["dtype"])
        )
        assert apart <= got["ulp"], f"{apart} ulp apart, {got['ulp']} allowed {got['reason']}"


def test_every_probe_is_recorded_and_an_allowance_has_a_reason(
    interpreted: dict[str, Any],
) -> None:
    assert set(interpreted) <= set(GOLDEN["probes"])
    assert len(interpreted) >= 400
    for name, entry in interpreted.items():
        assert entry["ulp"] in (0, 1), name
        assert bool(entry["reason"]) == (entry["ulp"] > 0), name


def test_the_record_names_its_device_and_versions() -> None:
    assert GOLDEN["device"]
    assert {"python", "torch", "triton", "cuda"} <= set(GOLDEN["versions"])


def test_a_distance_counts_steps_between_floats_across_zero() -> None:
    tiny = np.array([2.0**-149], dtype=np.float32)
    assert distance(tiny, -tiny) == 2
    assert distance(np.float32([np.nan]), np.float32([np.nan])) == 0
    assert distance(np.float32([0.0]), np.float32([-0.0])) == 0
    assert distance(np.int32([1]), np.int32([2])) > 2
