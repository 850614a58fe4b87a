"""How long an unchanged repository takes with `--cache`: runs of the command, from start to end.

    python benchmarks/bench_cache.py [--ops N] [--device D] [--repeat N] [--out FILE]

Makes a git repository with a few kernels of the corpus, gates all of it twice, and prints JSON:
seconds of the first run, which runs everything, and the least seconds of later ones, which find
every verdict kept. It fails when a later run starts a worker or says another thing.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from bench_list import git
from record import surroundings, write

ROOT = Path(__file__).resolve().parent.parent
SKIPPED = ("results", "field")
"""Folders of the corpus that hold no op of the paper's part."""


def make_repository(folder: Path, ops: int) -> None:
    """Commit the first ops of the corpus to a repository of their own."""
    names = sorted(p.name for p in (ROOT / "corpus").iterdir() if p.is_dir())
    for name in [name for name in names if name not in SKIPPED][:ops]:
        for file in (ROOT / "corpus" / name).iterdir():
            if file.suffix in (".py", ".yaml"):
                place = folder / "corpus" / name / file.name
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_text(file.read_text())
    git(folder, "init", "-q", "-b", "main")
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "corpus")


def gate(repository: Path, place: Path, device: str, cases: int) -> tuple[float, dict[str, Any]]:
    """Run the gate on all of the repository; return its seconds and its result."""
    command = [
        sys.executable, "-m", "gate", "run", "--repo", str(repository), "--all", "--head", "HEAD",
        "--device", device, "--cases", str(cases), "--cache", str(place / "cache"),
        "--report-dir", str(place / "reports"),
    ]  # fmt: skip
    start = time.perf_counter()
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    seconds = time.perf_counter() - start
    if done.returncode not in (0, 1):
        raise SystemExit(f"the gate ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return seconds, json.loads((place / "reports" / "result.json").read_text())


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Gate once with an empty cache and then with what it kept; return the figures."""
    with tempfile.TemporaryDirectory(prefix="kernel-gate-bench-") as name:
        repository, place = Path(name, "repository"), Path(name, "run")
        make_repository(repository, options.ops)
        first, result = gate(repository, place, options.device, options.cases)
        later = []
        for _ in range(options.repeat):
            seconds, again = gate(repository, place, options.device, options.cases)
            later.append(seconds)
            if again["info"]["timings"]["lanes"] or not all(op["cached"] for op in again["ops"]):
                raise SystemExit("a verdict was not kept")
            if again["kernels"] != result["kernels"]:
                raise SystemExit("the kept verdicts are not those of the first run")
        return {
            "device": result["info"]["device"],
            "ops": len(result["ops"]),
            "cases_an_op": options.cases,
            "first_run_s": round(first, 2),
            "unchanged_s": round(min(later), 3),
            "cache_bytes": sum(f.stat().st_size for f in (place / "cache").iterdir()),
        }


def main() -> None:
    """Measure, print, and keep the record."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--ops", type=int, default=8, help="ops of the corpus (default: 8)")
    parser.add_argument("--cases", type=int, default=12, help="cases an op (default: 12)")
    parser.add_argument("--device", default="interpreter", help="default: interpreter")
    parser.add_argument("--repeat", type=int, default=3, help="runs on the kept verdicts")
    parser.add_argument("--out", type=Path, help="write the record here as JSON")
    options = parser.parse_args()
    write({"benchmark": "cache", **surroundings(), **measure(options)}, options.out)


if __name__ == "__main__":
    main()
