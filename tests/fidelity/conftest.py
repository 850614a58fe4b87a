"""Runs the scenarios once, in a process of their own: the interpreter takes over triton."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).resolve().parent


@pytest.fixture(scope="session")
def seen(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Return what each scenario reported."""
    out = tmp_path_factory.mktemp("checks") / "scenarios.json"
    env = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(HERE.parents[1])}
    env["TRITON_CACHE_DIR"] = str(out.parent / "cache")
    command = [sys.executable, str(HERE / "scenarios.py"), str(out)]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(out.read_text(encoding="utf-8"))
