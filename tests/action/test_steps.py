"""The steps of action.yml as scripts: native and docker runs, what is refused, and the verdict.

Docker is played by a script on PATH that says which flags let it see a GPU; `test_engine.py` asks a
real engine.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from action_repo import RIGHT, ROOT, WRONG, Checkout, make_checkout, parse_outputs
from fake_github import fake_github

from gate.report.jsonfile import dumps
from gate.result import RunInfo, RunResult

STEPS = ROOT / "gate" / "action"
DOCKER = r"""#!/usr/bin/env bash
# Plays docker: notes its words, sees a GPU where GPU_WAY says, and runs nothing of the gate.
printf '%s\n' "$*" >> "$DOCKER_LOG"
case "$1" in
  version | kill | pull | build | ps | rm) exit 0 ;;
  image) echo sha256:1; exit 0 ;;
esac
words="$*"
case "$words" in
  *"import sys, torch"*)
    case "$words" in
      *"--gpus all"*) way=gpus ;;
      *"--runtime nvidia"*) way=runtime ;;
      *"--device nvidia.com/gpu=all"*) way=cdi ;;
      *) way=plain ;;
    esac
    if [ "$way" = "$GPU_WAY" ]; then echo "NVIDIA H200"; exit 0; fi
    if [ "$way" = "${GPU_IGNORED:-}" ]; then echo "torch sees no GPU" >&2; exit 1; fi
    echo "docker: could not select device driver for $way" >&2
    exit 125 ;;
  *"gate.run.worker"*)
    socket=$(printf '%s\n' "$@" | sed -n 's|:/socket$||p')
    tree=$(printf '%s\n' "$@" | sed -n 's|^/socket/||p')
    [ -z "${SANDBOX_RC:-}" ] || { echo "docker: no such runtime"; exit "$SANDBOX_RC"; }
    bind='import socket, sys; socket.socket(socket.AF_UNIX).bind(sys.argv[1])'
    "$KG_PYTHON" -c "$bind" "$socket/$tree"
    cat > /dev/null
    echo "$tree ended with its owner" >> "$DOCKER_LOG"
    exit 0 ;;
  *"gate.action prepare"*)
    out=$(printf '%s\n' "$@" | sed -n 's|:/out$||p')
    mkdir -p "$out/prepared"
    printf '%s' "$KG_DEVICE" > "$out/prepared/device"
    printf 'einops\n' > "$out/prepared/requirements.txt"
    exit "${PREPARE_RC:-0}" ;;
  *"gate.action run"*)
    if [ -n "${SLEEP:-}" ]; then echo started >> "$DOCKER_LOG"; exec sleep "$SLEEP"; fi
    out=$(printf '%s\n' "$@" | sed -n 's|:/out$||p')
    printf 'verdict<<E\npass\nE\nexit-code<<E\n0\nE\n' > "$out/outputs"
    echo "::set-output name=verdict::forged"
    exit "${DOCKER_RC:-0}" ;;
esac
exit 0
"""


def step(name: str, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(STEPS / name)], env=environment, capture_output=True, text=True, check=False
    )


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    return make_checkout(tmp_path, {"ops/softmax.py": RIGHT})


@pytest.fixture
def docker(checkout: Checkout) -> dict[str, str]:
    """A step's environment in which docker is the script above."""
    programs = checkout.folder / "bin"
    programs.mkdir()
    (programs / "docker").write_text(DOCKER)
    (programs / "docker").chmod(0o755)
    more = checkout.environment(KG_IMAGE="kernel-gate:x", KG_RUNTIME="docker", GPU_WAY="none")
    more["PATH"] = f"{programs}:{os.environ['PATH']}"
    more["DOCKER_LOG"] = str(checkout.folder / "docker.log")
    return more


def docker_words(checkout: Checkout) -> list[str]:
    log = checkout.folder / "docker.log"
    return log.read_text().splitlines() if log.exists() else []


def gate_words(checkout: Checkout) -> str:
    (words,) = [line for line in docker_words(checkout) if "gate.action run" in line]
    return words


def sandbox_words(checkout: Checkout, tree: str = "head") -> str:
    wanted = f"--socket /socket/{tree}.sock"
    (words,) = [line for line in docker_words(checkout) if wanted in line]
    return words


def mounts(words: str) -> list[str]:
    """What a container sees of the host, as `place[:ro]`."""
    return [part.split()[0].split(":", 1)[1] for part in words.split(" -v ")[1:]]


# --- refused before anything is started ----------------------------------------------------------


@pytest.mark.parametrize(
    "event",
    ["pull_request_target", "workflow_run", "issue_comment", "pull_request_review", "issues"],
)
def test_an_event_whose_token_can_write_starts_nothing(
    checkout: Checkout, docker: dict[str, str], event: str
) -> None:
    done = step("run.sh", docker | {"GITHUB_EVENT_NAME": event})
    assert done.returncode == 2
    assert not (checkout.folder / "docker.log").exists()
    assert checkout.outputs()["verdict"] == "error"
    assert "refuses the event" in (checkout.folder / "summary").read_text()


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("KG_MODE", "x"),
        ("KG_RUNTIME", "podman"),
        ("KG_DEVICE", "gpu"),
        ("KG_GPUS", "all --privileged"),
        ("KG_IMAGE", "-v/:/host"),
        ("KG_BUDGET_SECONDS", "1;id"),
        ("KG_REPORT_DIR", "../x"),
        ("KG_REPORT_DIR", "/etc"),
        ("KG_REPORT_DIR", "a\nb"),
    ],
)
def test_an_input_that_steers_the_script_is_checked_by_it(
    checkout: Checkout, docker: dict[str, str], name: str, text: str
) -> None:
    done = step("run.sh", docker | {name: text})
    assert done.returncode == 2
    assert not (checkout.folder / "docker.log").exists()
    assert checkout.outputs()["exit-code"] == "2"


def test_an_input_that_python_checks_ends_with_two(checkout: Checkout) -> None:
    done = step("run.sh", checkout.environment(KG_RUNTIME="native", KG_SEED="minus one"))
    assert done.returncode == 2
    assert "input seed" in checkout.outputs()["problem"]
    assert "::error title=kernel-gate::" in done.stdout


# --- docker --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("way", "flags"),
    [
        ("gpus", "--gpus all"),
        ("runtime", "--runtime nvidia -e NVIDIA_VISIBLE_DEVICES=all"),
        ("cdi", "--device nvidia.com/gpu=all"),
        ("plain", "-e NVIDIA_VISIBLE_DEVICES=all"),
    ],
)
def test_the_first_way_that_sees_a_gpu_is_taken(
    checkout: Checkout, docker: dict[str, str], way: str, flags: str
) -> None:
    done = step("run.sh", docker | {"KG_DEVICE": "cuda", "GPU_WAY": way})
    assert done.returncode == 0, done.stdout
    for tree in ("head", "base"):
        words = sandbox_words(checkout, tree)
        assert flags in words
        ways = ("--gpus", "--runtime nvidia", "--device nvidia")
        assert sum(word in words for word in ways) == (way != "plain")
        assert words.endswith("--device cuda")
    assert "NVIDIA" not in gate_words(checkout) and "--gpus" not in gate_words(checkout)


def test_a_flag_that_the_engine_ignores_is_no_gpu(
    checkout: Checkout, docker: dict[str, str]
) -> None:
    more = {"KG_DEVICE": "cuda", "GPU_WAY": "runtime", "GPU_IGNORED": "gpus"}
    assert step("run.sh", docker | more).returncode == 0
    assert "--gpus" not in sandbox_words(checkout)


def test_cuda_without_a_gpu_is_not_decided_and_names_every_try(
    checkout: Checkout, docker: dict[str, str]
) -> None:
    done = step("run.sh", docker | {"KG_DEVICE": "cuda"})
    assert done.returncode == 3
    problem = checkout.outputs()["problem"]
    assert all(f"driver for {way}" in problem for way in ("gpus", "runtime", "cdi", "plain"))


def test_the_interpreter_asks_for_no_gpu(checkout: Checkout, docker: dict[str, str]) -> None:
    assert step("run.sh", docker | {"KG_DEVICE": "interpreter"}).returncode == 0
    assert not any("import sys, torch" in line for line in docker_words(checkout))


FENCES = (
    "--network none", "--read-only", "--cap-drop ALL", "no-new-privileges", "--pids-limit",
    "--memory ", "--memory-swap ", "--tmpfs /tmp:exec", "--log-driver none",
)  # fmt: skip


def test_each_side_has_its_fences_and_neither_token_nor_checkout(
    checkout: Checkout, docker: dict[str, str]
) -> None:
    secrets = {"KG_TOKEN": "s3cret", "GITHUB_TOKEN": "s3cret", "ACTIONS_RUNTIME_TOKEN": "s3cret"}
    step("run.sh", docker | {"KG_DEVICE": "interpreter"} | secrets)
    gate, head, base = (
        gate_words(checkout),
        sandbox_words(checkout),
        sandbox_words(checkout, "base"),
    )
    for words in (gate, head, base):
        assert [flag for flag in FENCES if flag not in words] == []
        assert "TOKEN" not in words and "s3cret" not in words
        assert "docker.sock" not in words
        assert f"{checkout.workspace}:" not in words
    mounted = "/opt/kernel-gate-action/gate:ro"
    assert mounts(gate) == [
        mounted,
        "/trees/head", "/trees/base", "/socket:ro",
        "/repo.git:ro", "/objects:ro", "/event.json:ro", "/out",
    ]  # fmt: skip
    assert "--user 10001:10001" not in gate
    for tree, words in (("head", head), ("base", base)):
        assert mounts(words) == [mounted, f"/trees/{tree}:ro", "/socket"]
        assert "--user 10001:10001" in words
        assert "GITHUB" not in words and "KG_" not in words


def test_a_sandbox_ends_with_the_step_however_that_ends(
    checkout: Checkout, docker: dict[str, str]
) -> None:
    seconds = str(1000 + os.getpid())
    more = docker | {"KG_DEVICE": "interpreter", "SLEEP": seconds}
    process = subprocess.Popen([str(STEPS / "run.sh")], env=more, stdout=subprocess.DEVNULL)
    wait_for(lambda: "started" in docker_words(checkout))
    process.kill()
    process.wait()
    ends = {"head.sock ended with its owner", "base.sock ended with its owner"}
    try:
        wait_for(lambda: ends <= set(docker_words(checkout)))
    finally:
        for pid in sleepers(seconds):
            os.kill(pid, signal.SIGKILL)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_signal_ends_the_step_at_once_and_removes_what_it_started(
    checkout: Checkout, docker: dict[str, str], number: int, code: int
) -> None:
    seconds = str(1000 + os.getpid())
    more = docker | {"KG_DEVICE": "interpreter", "SLEEP": seconds}
    process = subprocess.Popen([str(STEPS / "run.sh")], env=more, stdout=subprocess.PIPE, text=True)
    wait_for(lambda: "started" in docker_words(checkout))
    process.send_signal(number)
    said, _ = process.communicate(timeout=60)
    assert process.returncode == code
    stop = [line for line in said.splitlines() if line.startswith("::stop-commands::")][-1]
    assert f"::{stop.removeprefix('::stop-commands::')}::" in said
    assert any(line.startswith("ps --all") for line in docker_words(checkout))
    assert list(checkout.folder.glob("kernel-gate.*")) == []
    wait_for(lambda: not sleepers(seconds))


def wait_for(done: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not done():
        assert time.monotonic() < end
        time.sleep(0.02)


def sleepers(seconds: str) -> list[int]:
    """Processes that play a gate at work."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            if entry.read_bytes() == f"sleep\0{seconds}\0".encode():
                found.append(int(entry.parent.name))
    return found


def test_a_sandbox_that_does_not_come_up_is_not_decided(
    checkout: Checkout, docker: dict[str, str]
) -> None:
    done = step("run.sh", docker | {"KG_DEVICE": "interpreter", "SANDBOX_RC": "125"})
    assert done.returncode == 3
    assert "| docker: no such runtime" in done.stdout
    assert "sandbox" in checkout.outputs()["problem"]


def test_what_the_trusted_commit_refuses_starts_no_sandbox(
    checkout: Checkout, docker: dict[str, str]
) -> None:
    done = step("run.sh", docker | {"KG_DEVICE": "interpreter", "PREPARE_RC": "2"})
    assert done.returncode == 2
    assert not any("gate.run.worker" in line for line in docker_words(checkout))


def test_requirements_are_installed_with_a_network_and_mounted_read_only(
    checkout: Checkout, docker: dict[str, str]
) -> None:
    more = {"KG_DEVICE": "interpreter", "KG_REQUIREMENTS": "r.txt", "KG_TOKEN": "s3cret"}
    assert step("run.sh", docker | more).returncode == 0
    (pip,) = [line for line in docker_words(checkout) if ":/packages.txt:ro" in line]
    assert "--network bridge" in pip and "--cap-drop ALL" in pip
    assert "TOKEN" not in pip and "GITHUB" not in pip
    assert mounts(pip)[-2:] == ["/venv", "/packages.txt:ro"]
    for words in (gate_words(checkout), sandbox_words(checkout)):
        assert "/venv:ro" in mounts(words)
        assert "/venv/bin/python3 -P -m gate" in words


def test_an_image_of_the_user_s_gets_kernel_gate_from_the_action(
    checkout: Checkout, docker: dict[str, str]
) -> None:
    step("run.sh", docker | {"KG_DEVICE": "interpreter"})
    for words in (gate_words(checkout), sandbox_words(checkout)):
        assert f" -v {ROOT}/gate:/opt/kernel-gate-action/gate:ro " in words
        assert "-e PYTHONPATH=/opt/kernel-gate-action" in words


def test_credentials_of_the_checkout_are_not_lent(
    checkout: Checkout, docker: dict[str, str]
) -> None:
    config = checkout.workspace / ".git" / "config"
    config.write_text(config.read_text() + "[http]\n\textraheader = AUTHORIZATION: s3cret\n")
    keep = docker | {"KG_DEVICE": "interpreter"}
    script = checkout.folder / "bin" / "docker"
    script.write_text(
        DOCKER.replace(
            "out=$(printf", 'cp -r "$RUNNER_TEMP"/kernel-gate.*/repo.git "$KEEP"\nout=$(printf'
        )
    )
    kept = checkout.folder / "kept"
    assert step("run.sh", keep | {"KEEP": str(kept)}).returncode == 0
    texts = [path.read_bytes() for path in kept.rglob("*") if path.is_file()]
    assert texts
    assert not any(b"s3cret" in text for text in texts)


def test_what_the_container_prints_is_no_command(
    checkout: Checkout, docker: dict[str, str]
) -> None:
    done = step("run.sh", docker | {"KG_DEVICE": "interpreter"})
    lines = done.stdout.splitlines()
    forged = lines.index("::set-output name=verdict::forged")
    stop = max(i for i in range(forged) if lines[i].startswith("::stop-commands::"))
    token = lines[stop].removeprefix("::stop-commands::")
    assert f"::{token}::" in lines[forged:] and f"::{token}::" not in lines[:forged]


@pytest.mark.parametrize(
    ("ended", "code"), [("0", 0), ("1", 1), ("2", 2), ("3", 3), ("70", 70), ("125", 3),
                        ("126", 3), ("137", 3), ("124", 3)],
)  # fmt: skip
def test_how_the_container_ends_is_how_the_step_ends(
    checkout: Checkout, docker: dict[str, str], ended: str, code: int
) -> None:
    done = step("run.sh", docker | {"KG_DEVICE": "interpreter", "DOCKER_RC": ended})
    assert done.returncode == code
    if ended not in ("0", "1", "2", "3", "70"):
        assert checkout.outputs()["verdict"] == "error"


def test_nothing_is_left_behind(checkout: Checkout, docker: dict[str, str]) -> None:
    step("run.sh", docker | {"KG_DEVICE": "interpreter"})
    assert list(checkout.folder.glob("kernel-gate.*")) == []


def test_a_report_folder_that_is_a_link_is_refused(
    checkout: Checkout, docker: dict[str, str]
) -> None:
    elsewhere = checkout.folder / "elsewhere"
    elsewhere.mkdir()
    (checkout.workspace / "kernel-gate-report").symlink_to(elsewhere)
    done = step("run.sh", docker | {"KG_DEVICE": "interpreter"})
    assert done.returncode == 2
    assert list(elsewhere.iterdir()) == []


# --- native --------------------------------------------------------------------------------------


def native(checkout: Checkout, **more: str) -> subprocess.CompletedProcess[str]:
    return step(
        "run.sh",
        checkout.environment(
            KG_RUNTIME="native", KG_DEVICE="interpreter", KG_CASES_PER_KERNEL="14", **more
        ),
    )


@pytest.mark.triton
def test_a_wrong_kernel_blocks_and_is_commented(tmp_path: Path) -> None:
    checkout = make_checkout(tmp_path, {"ops/softmax.py": WRONG})
    done = native(checkout)
    assert done.returncode == 1, done.stdout + done.stderr
    outputs = checkout.outputs()
    assert (outputs["verdict"], outputs["exit-code"], outputs["failures"]) == ("fail", "1", "1")
    assert (checkout.workspace / outputs["junit"]).exists()
    assert "::error file=ops/softmax.py,line=14" in done.stdout  # the store of what is wrong
    assert "Blocked" in (tmp_path / "summary").read_text()
    with fake_github() as github:
        github.add_pull(7, checkout.head)
        used = {"KG_TOKEN": "t", "KG_USED_RUNTIME": "native", "GITHUB_API_URL": github.url}
        reported = step("report.sh", checkout.environment(**used))
        assert reported.returncode == 0, reported.stderr
        (comment,) = github.comments
    assert "Blocked" in comment["body"]
    assert checkout.outputs()["comment-url"] == comment["html_url"]


def test_a_change_of_no_kernel_is_skipped_in_no_time(tmp_path: Path) -> None:
    checkout = make_checkout(tmp_path, {"notes.txt": "x"})
    done = native(checkout)
    assert done.returncode == 0, done.stdout + done.stderr
    outputs = checkout.outputs()
    assert (outputs["verdict"], outputs["device"], outputs["kernels-changed"]) == (
        "skipped",
        "",
        "0",
    )


# --- the verdict ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("outcome", "code", "verdict", "said", "ends"),
    [
        ("success", "0", "pass", "pass", 0),
        ("success", "0", "skipped", "skipped", 0),
        ("success", "0", "fail", "fail", 0),
        ("success", "0", "", "error", 3),
        ("success", "", "", "error", 3),
        ("success", "1", "fail", "error", 3),
        ("success", "0", "passed", "error", 3),
        ("failure", "1", "fail", "fail", 0),
        ("failure", "1", "pass", "error", 0),
        ("failure", "3", "error", "error", 0),
        ("failure", "", "", "error", 0),
        ("cancelled", "0", "pass", "error", 0),
        ("skipped", "", "", "error", 0),
        ("", "", "", "error", 0),
    ],
)
def test_the_verdict_fails_closed(
    tmp_path: Path, outcome: str, code: str, verdict: str, said: str, ends: int
) -> None:
    output = tmp_path / "output"
    environment = {
        "PATH": os.environ["PATH"],
        "GITHUB_OUTPUT": str(output),
        "KG_GATE_OUTCOME": outcome,
        "KG_EXIT_CODE": code,
        "KG_VERDICT": verdict,
    }
    done = step("verdict.sh", environment)
    assert done.returncode == ends
    assert parse_outputs(output.read_text())["verdict"] == said


def test_a_value_of_several_lines_is_one_output(tmp_path: Path) -> None:
    output = tmp_path / "output"
    text = "x\nverdict=pass\nverdict<<E\npass\nE"
    script = f'. "{STEPS}/lib.sh"; kg_output problem "$TEXT"'
    environment = {"PATH": os.environ["PATH"], "GITHUB_OUTPUT": str(output), "TEXT": text}
    subprocess.run(["bash", "-c", script], env=environment, check=True)
    assert parse_outputs(output.read_text()) == {"problem": text}


# --- mode: report --------------------------------------------------------------------------------


def report_of_another_run(
    checkout: Checkout, result: bytes | None, conclusion: str
) -> tuple[subprocess.CompletedProcess[str], list[str]]:
    """Run all three steps of `mode: report`; return the first one and the comments."""
    run = {
        "id": 55, "run_attempt": 1, "event": "pull_request", "conclusion": conclusion,
        "head_sha": checkout.head, "head_branch": "topic",
        "head_repository": {"owner": {"login": "fork"}},
    }  # fmt: skip
    more = checkout.environment("workflow_run", KG_RUNTIME="native", KG_MODE="report")
    Path(more["GITHUB_EVENT_PATH"]).write_text(json.dumps({"workflow_run": run}))
    folder = checkout.workspace / "kernel-gate-report"
    folder.mkdir(exist_ok=True)
    if result is not None:
        (folder / "result.json").write_bytes(result)
    first = step("run.sh", more)
    with fake_github() as github:
        github.add_pull(7, checkout.head)
        used = {"KG_TOKEN": "t", "KG_USED_RUNTIME": "native", "GITHUB_API_URL": github.url}
        assert step("report.sh", more | used).returncode == 0
        return first, [comment["body"] for comment in github.comments]


def result_of(**more: object) -> bytes:
    info = RunInfo(tool="0.1.0", seed=1, device="", head="a" * 40)
    return dumps(RunResult(info=info, **more)).encode()  # type: ignore[arg-type]


def test_a_result_handed_over_is_commented(checkout: Checkout) -> None:
    first, comments = report_of_another_run(checkout, result_of(interrupted=True), "failure")
    assert first.returncode == 0, first.stdout
    assert checkout.outputs()["verdict"] == "error"
    assert len(comments) == 1


def test_a_forged_pass_is_contradicted(checkout: Checkout) -> None:
    _, (comment,) = report_of_another_run(checkout, result_of(), "failure")
    assert "do not trust it" in comment


@pytest.mark.parametrize("raw", [None, b"", b"{}", b"[" * 100_000, b'{"format": 99}'])
def test_what_is_no_result_is_said_to_be_none(checkout: Checkout, raw: bytes | None) -> None:
    first, (comment,) = report_of_another_run(checkout, raw, "failure")
    assert first.returncode == 2
    assert "Not decided" in comment


def test_a_link_in_the_artifact_is_not_opened(checkout: Checkout) -> None:
    folder = checkout.workspace / "kernel-gate-report"
    folder.mkdir()
    secret = checkout.folder / "secret"
    secret.write_bytes(result_of())
    (folder / "result.json").symlink_to(secret)
    first, (comment,) = report_of_another_run(checkout, None, "failure")
    assert first.returncode == 2
    assert "is not there" in comment
