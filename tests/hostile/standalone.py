"""Started by a test with a token in its environment: a supervisor that runs spies, then waits."""

from __future__ import annotations

import os
import sys
import time

import numpy as np

from gate.run.argwire import TensorWire
from gate.run.pool import WorkerSettings, start_references, start_workers
from gate.run.process import family
from gate.run.protocol import LoadRequest, Outcome, RunRequest

X = np.ones((3, 5), dtype=np.float32)


def main(root: str, namespace: bool) -> None:
    settings = WorkerSettings(namespace=namespace)
    worker = start_workers(settings, 1)[0]
    reference = start_references(settings, 1)[0]
    for entry in (
        "spies.py::the_environment",
        "spies.py::other_processes",
        "ends.py::leave_a_daemon",
    ):
        if entry.startswith("spies") or not namespace:
            print(entry, _run(worker, root, entry), flush=True)
    print("family", *family(os.getpid()), flush=True)
    time.sleep(60)
    reference.close()


def _run(worker, root: str, entry: str) -> str:
    wire = TensorWire(
        name="x", dtype="float32", shape=(3, 5), strides=(5, 1), offset=0, storage=15, data=X
    )
    load = LoadRequest(root=root, pythonpath=(), entry=f"kernels/{entry}")
    seen = worker.run(RunRequest(load=load, args=(wire,), variables={}, returns=("y",)))
    return seen.outcome.value if seen.outcome is Outcome.RETURNED else str(seen.error)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2] == "1")
