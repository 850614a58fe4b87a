"""One kernel worker and one reference worker for the whole room."""

from __future__ import annotations

import pytest

from gate.run.pool import WorkerSettings, start_references, start_workers


@pytest.fixture(scope="session")
def kernel_worker():
    worker = start_workers(WorkerSettings(), 1)[0]
    yield worker
    worker.close()


@pytest.fixture(scope="session")
def reference_worker():
    worker = start_references(WorkerSettings(), 1)[0]
    yield worker
    worker.close()
