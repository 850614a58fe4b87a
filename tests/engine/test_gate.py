"""The gate on real repositories: what blocks, what passes, and what is said of the rest."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

import gate.engine.session
from engine import gate_repos as repos
from engine.conftest import TALKATIVE, Run, run_gate
from gate.cli.main import main
from gate.errors import ExitCode
from gate.judge.model import Verdict
from gate.report.jsonfile import loads
from gate.result import combined_digest

pytestmark = pytest.mark.triton
OTHER = "other[B=1; -; -; seed=000000]"
EMPTY = "row_softmax[B=1 H=0; T=float32; x=contiguous/normal; seed=000000]"


def test_a_wrong_kernel_blocks_and_every_report_is_written(blocked: Run):
    assert blocked.code == ExitCode.BLOCKED
    names = {path.name for path in blocked.reports.iterdir()}
    assert {"result.json", "junit.xml", "comment.md", "report.md"} <= names
    (kernel,) = blocked.result.kernels
    assert kernel.kernel == "ops/softmax.py::softmax_kernel"
    assert kernel.verdict is Verdict.ILLUSION
    assert ET.parse(blocked.reports / "junit.xml").getroot().tag == "testsuites"


def test_the_finding_is_small_confirmed_placed_and_explained(blocked: Run):
    (op,) = blocked.result.ops
    finding = op.findings[0]
    assert finding.origin == "introduced"
    assert finding.confirmed == finding.reruns == 2
    assert "B=1 H=3;" in finding.case
    assert finding.inputs
    assert finding.outputs
    assert [b.passed for b in op.benchmarks] == [True, True, True]


def test_the_result_accounts_for_the_time_of_its_lanes(blocked: Run):
    timings = blocked.result.info.timings
    spent = dict(timings.phases)
    assert timings.lanes > 0
    assert timings.kernel_runs >= blocked.result.ops[0].counts.ran
    assert all(spent[name] > 0 for name in ("kernel", "reference", "worker", "inputs", "judge"))
    assert spent["compile"] == 0
    lanes = sum(seconds for name, seconds in spent.items() if name not in ("plan", "explain"))
    assert lanes <= timings.lanes * timings.run_seconds + 0.05


def test_the_reverse_change_passes(blocked: Run, tmp_path: Path):
    run = run_gate(blocked.repo, blocked.head, blocked.base, tmp_path / "r")
    assert run.code == ExitCode.OK
    assert run.result.ops[0].counts.passed >= 10


@pytest.fixture
def no_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a worker was started")

    monkeypatch.setattr(gate.engine.session, "Crew", refuse)


def test_a_comment_only_change_passes_without_a_worker(tmp_path: Path, no_workers, capsys):
    base = repos.make_repo(tmp_path / "repo")
    commented = repos.KERNEL.replace("    mask =", "    # the tail\n    mask  =")
    head = repos.commit(tmp_path / "repo", {"ops/softmax.py": commented})
    run = run_gate(tmp_path / "repo", base, head, tmp_path / "r")
    assert run.code == ExitCode.OK
    assert "no Triton kernel changed" in capsys.readouterr().out


def test_an_empty_diff_passes_with_one_sentence(tmp_path: Path, no_workers, capsys):
    base = repos.make_repo(tmp_path / "repo")
    run = run_gate(tmp_path / "repo", base, base, tmp_path / "r")
    assert run.code == ExitCode.OK
    assert "Nothing to gate" in capsys.readouterr().out


@pytest.mark.parametrize(("policy", "code"), [("warn", 0), ("ignore", 0), ("fail", 1)])
def test_a_kernel_without_a_schema_blocks_only_when_asked(tmp_path, no_workers, policy, code):
    base = repos.make_repo(tmp_path / "repo", schema=None)
    head = repos.commit(tmp_path / "repo", {"ops/softmax.py": repos.BUGGY})
    run = run_gate(tmp_path / "repo", base, head, tmp_path / "r", "--unmatched", policy)
    assert run.code == code
    assert run.result.kernels[0].verdict is Verdict.UNMATCHED


def test_the_base_decides_when_the_change_widens_the_tolerance(tmp_path: Path):
    base = repos.make_repo(tmp_path / "repo")
    loose = repos.SCHEMA + "tolerance: {rtol: 1, atol: 1000000000}\n"
    head = repos.commit(
        tmp_path / "repo", {"ops/softmax.py": repos.BUGGY, "ops/softmax.op.yaml": loose}
    )
    run = run_gate(tmp_path / "repo", base, head, tmp_path / "r")
    assert run.code == ExitCode.BLOCKED
    assert any("atol 1e+09" in text for text in run.result.relaxed)
    comment = (run.reports / "comment.md").read_text()
    assert 0 < comment.index("1e+09") < comment.index("| kernel |")


def test_a_schema_that_is_new_in_the_change_is_used_and_marked(tmp_path: Path):
    base = repos.make_repo(tmp_path / "repo", schema=None)
    head = repos.commit(
        tmp_path / "repo", {"ops/softmax.py": repos.BUGGY, "ops/softmax.op.yaml": repos.SCHEMA}
    )
    run = run_gate(tmp_path / "repo", base, head, tmp_path / "r")
    assert run.code == ExitCode.BLOCKED
    assert not run.result.ops[0].trusted


def test_an_entry_that_cannot_be_imported_is_undecided_with_its_traceback(tmp_path: Path):
    base = repos.make_repo(tmp_path / "repo")
    broken = repos.BUGGY.replace(
        "def softmax(x):", "raise OSError('no such table')\n\n\ndef softmax(x):"
    )
    head = repos.commit(tmp_path / "repo", {"ops/softmax.py": broken})
    run = run_gate(tmp_path / "repo", base, head, tmp_path / "r")
    assert run.code == ExitCode.UNDECIDED
    assert any("no such table" in note for note in run.result.ops[0].notes)


def test_a_reference_of_another_shape_is_undecided(tmp_path: Path):
    schema = repos.SCHEMA.replace("torch.softmax(x, dim=-1)", "x.sum(-1)")
    base = repos.make_repo(tmp_path / "repo", schema=schema)
    head = repos.commit(tmp_path / "repo", {"ops/softmax.py": repos.BUGGY})
    run = run_gate(tmp_path / "repo", base, head, tmp_path / "r")
    assert run.code == ExitCode.UNDECIDED
    assert run.result.ops[0].verdict is Verdict.UNDECIDED


def test_a_launcher_that_falls_back_to_torch_is_not_a_pass(tmp_path: Path):
    base = repos.make_repo(tmp_path / "repo")
    lazy = repos.KERNEL.replace("    x = x.contiguous()\n", "    return torch.softmax(x, -1)\n")
    head = repos.commit(tmp_path / "repo", {"ops/softmax.py": lazy})
    run = run_gate(tmp_path / "repo", base, head, tmp_path / "r")
    assert run.code == ExitCode.UNDECIDED
    assert run.result.kernels[0].verdict is Verdict.NOT_EXERCISED


# --- errors -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["run", "--repo", "{repo}", "--base", "nosuch", "--head", "HEAD"], 2, "nosuch"),
        (["run", "--repo", "{empty}", "--base", "a"], 2, "is not in a git repository"),
        (["run", "--repo", "{repo}", "--base", "HEAD", "--device", "tpu"], 2, "no device 'tpu'"),
        (["run", "--repo", "{repo}", "--all", "--head", "HEAD", "--device", "cuda"], 3, "no GPU"),
        (["run", "--repo", "{repo}", "--all", "--device", "cudda"], 2, "did you mean cuda"),
        (["run", "--repo", "{repo}", "--seed", "-1"], 2, ""),
        (["replay", "--repo", "{repo}", "nonsense"], 2, ""),
        (["replay", "--repo", "{repo}", OTHER], 2, "no op schema"),
        (["replay", "--repo", "{repo}", EMPTY],
         2, "H"),
        (["report", "{repo}/ops/softmax.py"], 2, "not JSON"),
        (["report", "{repo}/missing.json"], 2, "cannot be read"),
        (["frobnicate"], 2, ""),
    ],
)  # fmt: skip
def test_what_is_wrong_with_the_call_gets_its_own_code(tmp_path, capsys, arguments, code, words):
    if code == 3 and Path("/dev/nvidiactl").exists():
        pytest.skip("there is a GPU here")
    repos.make_repo(tmp_path / "repo")
    (tmp_path / "empty").mkdir()
    filled = [a.format(repo=tmp_path / "repo", empty=tmp_path / "empty") for a in arguments]
    if arguments[0] == "run":
        filled += ["--report-dir", str(tmp_path / "r")]
    assert main(filled) == code
    assert words in capsys.readouterr().err


def test_a_report_folder_that_cannot_be_made_is_said_before_anything_runs(tmp_path, capsys):
    (tmp_path / "file").write_text("")
    repos.make_repo(tmp_path / "repo")
    code = main(
        ["run", "--repo", str(tmp_path / "repo"), "--all", "--report-dir",
         str(tmp_path / "file" / "r")]
    )  # fmt: skip
    assert code == ExitCode.USAGE
    assert "--report-dir" in capsys.readouterr().err


# --- replay -------------------------------------------------------------------------------------


def replay(run: Run, case: str, *more: str) -> int:
    return main(
        ["replay", "--repo", str(run.repo), "--head", run.head, "--device", "interpreter",
         "--result", str(run.reports / "result.json"), case, *more]
    )  # fmt: skip


def test_a_finding_replays_with_the_same_bytes_and_fails_again(blocked: Run, capsys):
    finding = blocked.result.ops[0].findings[0]
    pin = combined_digest(finding.inputs)
    assert replay(blocked, finding.case, "--inputs", pin) == 1
    said = capsys.readouterr().out
    assert "as recorded" in said
    assert "outputs: the same bytes as recorded" in said


def test_a_passing_case_replays_with_exit_0(blocked: Run):
    case = "row_softmax[B=1 H=128; T=float32; x=contiguous/normal; seed=000001]"
    assert replay(blocked, case) == 0


def test_other_inputs_than_the_recorded_ones_are_refused(blocked: Run, capsys):
    finding = blocked.result.ops[0].findings[0]
    assert replay(blocked, finding.case, "--inputs", "0" * 16) == 2
    assert "differ from the recorded ones" in capsys.readouterr().err


def test_a_replay_saves_tensors_and_writes_a_test_that_fails_by_itself(blocked: Run, tmp_path):
    finding = blocked.result.ops[0].findings[0]
    test = blocked.repo / "test_case.py"
    assert (
        replay(blocked, finding.case, "--dump", str(tmp_path / "d"), "--emit-test", str(test)) == 1
    )
    saved = {path.name for path in (tmp_path / "d").iterdir()}
    assert saved == {"in_x.npy", "out_y.npy", "ref_y.npy"}
    assert _pytest(blocked.repo) == 1
    (blocked.repo / "ops" / "softmax.py").write_text(repos.KERNEL)
    assert _pytest(blocked.repo) == 0
    repos.git(blocked.repo, "checkout", "-q", "--", "ops/softmax.py")
    test.unlink()


def _pytest(folder: Path) -> int:
    env = {"PATH": os.environ["PATH"], "HOME": str(folder), "TRITON_INTERPRET": "1"}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_case.py"]
    return subprocess.run(command, cwd=folder, env=env, capture_output=True).returncode


# --- process ------------------------------------------------------------------------------------


def test_listing_imports_neither_torch_nor_triton(blocked: Run):
    code = (
        "import sys\nfrom gate.cli.main import main\n"
        f"assert main(['list', '--repo', {str(blocked.repo)!r}, '--base', {blocked.base!r}, "
        f"'--head', {blocked.head!r}]) == 0\n"
        "assert not {'torch', 'triton'} & set(sys.modules), 'imported'\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "covered by: row_softmax" in done.stdout


def test_ctrl_c_leaves_a_partial_report_and_no_process(blocked: Run, tmp_path: Path):
    command = [
        sys.executable, "-c", TALKATIVE, "run", "--repo", str(blocked.repo), "--base", blocked.base,
        "--head", blocked.head, "--report-dir", str(tmp_path / "r"), "--device", "interpreter",
        "--cases", "1000", "--jobs", "1",
    ]  # fmt: skip
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    for line in process.stderr:
        if " of 1000 cases" in line:
            break
    workers = _descendants(process.pid)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode == ExitCode.UNDECIDED
    assert loads((tmp_path / "r" / "result.json").read_bytes()).interrupted
    deadline = time.monotonic() + 10
    while any(Path(f"/proc/{pid}").exists() for pid in workers) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not [pid for pid in workers if Path(f"/proc/{pid}").exists()]


def _descendants(pid: int) -> list[int]:
    found, waiting = [], [pid]
    while waiting:
        for path in Path(f"/proc/{waiting.pop()}/task").glob("*/children"):
            children = [int(word) for word in path.read_text().split()]
            found += children
            waiting += children
    return found


def test_a_schema_that_names_no_kernel_is_refused_with_the_nearest_one(tmp_path: Path, capsys):
    schema = repos.SCHEMA + 'kernels: ["ops/softmax.py::softmx_kernel"]\n'
    repos.make_repo(tmp_path / "repo", schema=schema)
    code = main(
        ["run", "--repo", str(tmp_path / "repo"), "--all", "--report-dir", str(tmp_path / "r")]
    )
    assert code == ExitCode.USAGE
    assert "did you mean ops/softmax.py::softmax_kernel" in capsys.readouterr().err


def test_a_configuration_that_a_change_relaxes_is_listed(tmp_path: Path, no_workers):
    base = repos.make_repo(tmp_path / "repo")
    config = 'ignore:\n  "ops/*.py::*": "too slow"\n'
    head = repos.commit(tmp_path / "repo", {".kernel-gate.yml": config})
    run = run_gate(tmp_path / "repo", base, head, tmp_path / "r")
    assert any("ops/*.py::*" in text for text in run.result.relaxed)
    assert run.result.protected == (".kernel-gate.yml",)


def test_a_kernel_that_is_named_and_not_there_is_no_pass(tmp_path: Path, capsys):
    repos.make_repo(tmp_path / "repo")
    code = main(
        ["run", "--repo", str(tmp_path / "repo"), "--kernel", "ops/softmax.py::sofmax_kernel",
         "--report-dir", str(tmp_path / "r")]
    )  # fmt: skip
    assert code == ExitCode.USAGE
    assert "did you mean ops/softmax.py::softmax_kernel" in capsys.readouterr().err


def test_a_run_on_the_workers_of_a_server_finds_what_one_on_its_own_workers_finds(
    blocked: Run, tmp_path: Path
):
    path = tmp_path / "worker.sock"
    server = subprocess.Popen(
        [sys.executable, "-m", "gate.run.worker", "--socket", str(path)],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parent.parent.parent)},
    )
    try:
        end = time.monotonic() + 20
        while not path.exists() and time.monotonic() < end:
            time.sleep(0.02)
        run = run_gate(
            blocked.repo, blocked.base, blocked.head, tmp_path / "r", "--worker-socket", str(path)
        )
    finally:
        server.terminate()
        server.wait(20)
    assert run.code == ExitCode.BLOCKED
    found, wanted = (each.result.ops[0].findings for each in (run, blocked))
    assert [(f.case, f.outputs) for f in found] == [(f.case, f.outputs) for f in wanted]
