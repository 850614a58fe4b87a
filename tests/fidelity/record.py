"""Record the golden outputs on a GPU: `python tests/fidelity/record.py OUT.json`.

Needs torch and triton, nothing else. A probe that fails is recorded with its error and the rest
goes on; the first and the second launch of each probe must agree, or the probe is marked unstable.
"""

from __future__ import annotations

import base64
import json
import platform
import sys
import time
import zlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

import torch
import triton
from probes import Probe
from probes_blocks import PROBES
from running import run


def packed(outputs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return outputs with their bytes compressed and in base64."""
    return [
        {
            "dtype": one["dtype"],
            "shape": one["shape"],
            "data": base64.b64encode(zlib.compress(one["raw"], 9)).decode("ascii"),
        }
        for one in outputs
    ]


def record(probe: Probe) -> dict[str, Any]:
    """Run one probe twice and return its entry."""
    try:
        digest, first = run(probe, "cuda")
        _, second = run(probe, "cuda")
    except Exception as error:  # noqa: BLE001 - one broken probe must not stop the rest
        text = f"{type(error).__name__}: {error}"
        return {"error": text[-400:]}
    entry: dict[str, Any] = {"inputs": digest, "outputs": packed(first)}
    if [one["raw"] for one in first] != [one["raw"] for one in second]:
        entry["unstable"] = True
    return entry


def warm(probe: Probe) -> None:
    """Compile a probe ahead of time in another thread; errors come back in `record`."""
    try:
        run(probe, "cuda")
    except Exception as error:  # noqa: BLE001 - one broken probe must not stop the rest
        print(f"warm-up of {probe.name}: {type(error).__name__}", flush=True)


def allocate(size: int, alignment: int, stream: int | None) -> torch.Tensor:
    """Give tensor descriptors their scratch memory."""
    return torch.empty(size, dtype=torch.int8, device="cuda")


def main(path: str, each: Callable[[Probe], dict[str, Any]] = record) -> int:
    """Record every probe into `path`."""
    triton.set_allocator(allocate)
    torch.zeros(1, device="cuda")
    start = time.time()
    with ThreadPoolExecutor(max_workers=8) as pool:
        list(pool.map(warm, PROBES))
    triton.set_allocator(allocate)
    entries = {probe.name: each(probe) for probe in PROBES}
    failed = [name for name, entry in entries.items() if "error" in entry]
    whole = {
        "format": 1,
        "device": torch.cuda.get_device_name(),
        "capability": list(torch.cuda.get_device_capability()),
        "versions": {
            "python": platform.python_version(),
            "torch": torch.__version__,
            "triton": triton.__version__,
            "cuda": torch.version.cuda,
        },
        "probes": entries,
    }
    Path(path).write_text(json.dumps(whole, indent=0, sort_keys=True) + "\n", encoding="utf-8")
    print(f"{len(entries)} probes, {len(failed)} failed, {time.time() - start:.1f} s")
    for name in failed:
        print(f"  {name}: {entries[name]['error']}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
