"""How long the gate takes for the paper's corpus: 26 kernels, 30 cases each.

    python benchmarks/bench_corpus.py [--device D] [--cases N] [--jobs N] [--out FILE]

Each run is a process of its own, timed from its start to its end: first with an empty Triton cache,
then with the one that the first run left. A process that only imports torch runs before them, so
that no run pays for reading torch from the disk. Meanwhile the resident memory of every worker is
read from /proc. The record says:

wall_s              from process start to its end
warm_up_s           of it, until every worker was up (imports and reading the corpus included)
cases_per_s         cases of the plans a second, once the workers were up
kernel_runs_per_s   the same for all kernel runs: shrinking, diagnosis and the
                    published benchmarks' checks are kernel runs too
phases_s            lane seconds by phase (`gate.result.Timings`)
share_outside       of the wall time with workers up, when no lane was at a kernel, a compilation
                    or a reference
lanes_outside       of the lanes' time, what was not kernel, compile or reference: gate and waiting
lanes_waiting       of the lanes' time, what no phase accounts for
worker_mib          most resident memory of a worker, and what is beyond a process that has only
                    imported torch and triton (and opened the GPU)
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from record import surroundings, write  # noqa: E402 - found beside this file

from gate.engine.clock import BESIDE, WORK  # noqa: E402
from gate.engine.device import choose_device  # noqa: E402
from gate.engine.settings import RunSettings  # noqa: E402
from gate.study.verdicts import STUDY_CASES, VerdictStudy, run_verdicts  # noqa: E402

POLL_SECONDS = 0.2
"""Between two looks at the memory of the workers."""


def measured_run(options: argparse.Namespace) -> dict[str, Any]:
    """Run the study in this process and return its figures."""
    settings = RunSettings(
        device=options.device, seed=options.seed, cases=options.cases, jobs=options.jobs,
        triton_cache=options.triton_cache, explain=False,
    )  # fmt: skip
    (study,) = run_verdicts(None, settings, tuple(options.only), part=options.part)
    return figures(study)


def figures(study: VerdictStudy) -> dict[str, Any]:
    """Return what a study says of its own time."""
    timings = study.timings
    phases = dict(timings.phases)
    lane_seconds = timings.lanes * timings.run_seconds
    work = sum(phases[name] for name in WORK)
    spent = sum(seconds for name, seconds in phases.items() if name not in BESIDE)
    cases = sum(row.cases for row in study.rows)
    return {
        "device": study.device,
        "device_name": study.device_name,
        "torch": dict(study.versions).get("torch", ""),
        "triton": dict(study.versions).get("triton", ""),
        "ops": len(study.rows),
        "as_expected": study.as_expected,
        "cases": cases,
        "kernel_runs": timings.kernel_runs,
        "lanes": timings.lanes,
        "start_workers_s": timings.start_seconds,
        "run_s": timings.run_seconds,
        "cases_per_s": round(cases / timings.run_seconds, 1),
        "kernel_runs_per_s": round(timings.kernel_runs / timings.run_seconds, 1),
        "phases_s": {name: round(seconds, 2) for name, seconds in phases.items()},
        "share_outside": round(timings.idle_seconds / timings.run_seconds, 3),
        "lanes_outside": round(1 - work / lane_seconds, 3),
        "lanes_waiting": round(1 - spent / lane_seconds, 3),
        "slowest_ops_s": {
            row.kernel: row.seconds for row in sorted(study.rows, key=lambda r: -r.seconds)[:5]
        },
    }


class Memory:
    """Watches the most resident memory of each kind of worker below a process."""

    def __init__(self, pid: int) -> None:
        self.most: dict[str, int] = {}
        self._pid = pid
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def stop(self) -> dict[str, int]:
        """Stop, and return role -> MiB."""
        self._done.set()
        self._thread.join()
        return self.most

    def _watch(self) -> None:
        while not self._done.wait(POLL_SECONDS):
            for pid in descendants(self._pid):
                role, mib = role_and_peak(pid)
                if role:
                    self.most[role] = max(self.most.get(role, 0), mib)


def descendants(pid: int) -> list[int]:
    """Return the processes below one, as far as /proc shows them now."""
    found, waiting = [], [pid]
    while waiting:
        one = waiting.pop()
        for path in Path(f"/proc/{one}/task").glob("*/children"):
            try:
                children = [int(word) for word in path.read_text().split()]
            except OSError:
                continue
            found += children
            waiting += children
    return found


def role_and_peak(pid: int) -> tuple[str, int]:
    """Return a worker's role and the most MiB that it has held; an empty role for the rest."""
    try:
        name = Path(f"/proc/{pid}/comm").read_text(errors="replace").strip()
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return "", 0
    peak = re.search(r"VmHWM:\s+(\d+) kB", status)
    if peak is None or name not in ("gate-kernel", "gate-reference"):
        return "", 0
    return name.removeprefix("gate-"), int(peak[1]) // 1024


def torch_alone_mib(device: str) -> int:
    """Return the most resident memory of a process that only imports torch and triton, in MiB."""
    code = "import torch, triton, triton.language\n"
    if device == "cuda":
        code += "torch.empty(1, device='cuda')\n"
    code += "import re\nprint(re.search(r'VmHWM:\\s+(\\d+)', open('/proc/self/status').read())[1])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return int(done.stdout) // 1024


def timed_process(options: argparse.Namespace, cache: Path, name: str) -> dict[str, Any]:
    """Run the study in a fresh process and return its figures with wall time and memory."""
    with tempfile.TemporaryDirectory(prefix="kernel-gate-bench-") as folder:
        out = Path(folder, "figures.json")
        command = [
            sys.executable, __file__, "--inside", str(out), "--triton-cache", str(cache),
            "--device", options.device, "--cases", str(options.cases), "--seed", str(options.seed),
            "--jobs", str(options.jobs), "--part", options.part,
            *(word for glob in options.only for word in ("--only", glob)),
        ]  # fmt: skip
        started = time.monotonic()
        process = subprocess.Popen(command)
        memory = Memory(process.pid)
        code = process.wait()
        wall = time.monotonic() - started
        peaks = memory.stop()
        if code:
            raise SystemExit(f"the run ended with {code}")
        found: dict[str, Any] = json.loads(out.read_text())
    alone = torch_alone_mib(found["device"])
    ended = found.pop("ended_s")
    return {
        "triton_cache": name,
        "wall_s": round(wall, 2),
        "warm_up_s": round(ended - found["run_s"], 2),
        **found,
        "worker_mib": {
            role: {"peak": mib, "beyond_torch": mib - alone} for role, mib in sorted(peaks.items())
        },
    }


def process_age() -> float:
    """Return the seconds since this process started, from the kernel's own clock."""
    fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
    ticks = int(fields[19])
    uptime = float(Path("/proc/uptime").read_text().split()[0])
    hertz = 100  # USER_HZ of every Linux that this runs on
    return uptime - ticks / hertz


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", default="interpreter", help="default: interpreter")
    parser.add_argument("--cases", type=int, default=STUDY_CASES, help="cases an op")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=0, help="lanes (default: by cores)")
    parser.add_argument("--part", default="paper", help="part of the corpus (default: paper)")
    parser.add_argument("--only", action="append", default=[], help="globs over op names")
    parser.add_argument(
        "--once", action="store_true", help="leave out the run with a warm Triton cache"
    )
    parser.add_argument("--out", type=Path, help="write the record here as JSON")
    parser.add_argument("--inside", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--triton-cache", default="", help=argparse.SUPPRESS)
    return parser.parse_args()


def main() -> None:
    """Measure, print, and keep the record."""
    options = arguments()
    if options.inside:
        found = measured_run(options)
        options.inside.write_text(json.dumps({**found, "ended_s": process_age()}))
        return
    torch_alone_mib(choose_device(options.device))  # brings torch's files into the page cache
    with tempfile.TemporaryDirectory(prefix="kernel-gate-triton-") as folder:
        names = ("empty",) if options.once else ("empty", "warm")
        runs = [timed_process(options, Path(folder), name) for name in names]
    write({"benchmark": "corpus", **surroundings(), "runs": runs}, options.out)


if __name__ == "__main__":
    main()
