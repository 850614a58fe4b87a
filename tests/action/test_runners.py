"""The three kinds of GPU runners, played by real engines whose NVIDIA parts are fakes.

    default    the engine's default runtime is nvidia
    toolkit    the toolkit is there and the default runtime is runc
    none       neither, and no CDI

Needs root, dockerd and KG_TEST_IMAGE, as `make test-action` has them. The engine is a second one
with a folder of its own; its image is Python and a `torch` that sees a GPU where the fakes put one.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from action_repo import ROOT

IMAGE = os.environ.get("KG_TEST_IMAGE", "")
STANDS = IMAGE and shutil.which("dockerd") and os.getuid() == 0
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not STANDS, reason="needs KG_TEST_IMAGE, root and dockerd"),
]

TORCH = """\
import os


class cuda:
    @staticmethod
    def is_available():
        return "FAKE_GPU" in os.environ or os.path.exists("/FAKE_GPU")

    @staticmethod
    def get_device_name(index):
        return "Fake H200"


class ones:
    def __init__(self, count, device):
        self.count = count

    def sum(self):
        return self

    def item(self):
        return self.count
"""

RUNTIME = f"""#!{sys.executable}
# Plays NVIDIA's runtime: a container that asks for a GPU by variable sees one.
import json, os, pathlib, sys

words = sys.argv[1:]
if "create" in words:
    place = [i for i, word in enumerate(words) if word in ("--bundle", "-b")][0]
    bundle = pathlib.Path(words[place + 1])
    config = json.loads((bundle / "config.json").read_text())
    env = dict(text.split("=", 1) for text in config["process"]["env"])
    if env.get("NVIDIA_VISIBLE_DEVICES", "void") not in ("", "void", "none"):
        config["process"]["env"].append("FAKE_GPU=1")
        (bundle / "config.json").write_text(json.dumps(config))
os.execvp("runc", ["runc", *words])
"""

HOOK = f"""#!{sys.executable}
# Plays the toolkit's hook, which the engine runs for `--gpus`.
import json, pathlib, sys

state = json.load(sys.stdin)
bundle = pathlib.Path(state["bundle"])
root = json.loads((bundle / "config.json").read_text())["root"]["path"]
(bundle / root / "FAKE_GPU").touch()
"""

PROBE = """
set -euo pipefail
action=$1 work=$2
. "$action/gate/action/lib.sh"
. "$action/gate/action/docker.sh"
UNDECIDED=3 GITHUB_OUTPUT=$work/output KG_FALLBACK="" name=probe image="" KG_GPUS=all
: > "$GITHUB_OUTPUT"
kg_fences
make_image
find_gpu
printf 'device=%s\\nflags=%s\\nfallback=%s\\n' "$KG_DEVICE" "${gpu_flags[*]}" "$KG_FALLBACK"
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Programs, the engine's data, and the image's files."""
    made = tmp_path_factory.mktemp("runners")
    for place, text in (
        ("runtime/nvidia", RUNTIME), ("hook/nvidia-container-runtime-hook", HOOK),
        ("smi/nvidia-smi", "#!/bin/sh\n"), ("image/torch.py", TORCH),
    ):  # fmt: skip
        path = made / place
        path.parent.mkdir()
        path.write_text(text)
        path.chmod(0o755)
    (made / "image" / "Dockerfile").write_text(
        f"FROM {IMAGE}\nUSER 0\nCOPY torch.py /tmp/torch.py\n"
        "RUN cp /tmp/torch.py \"$(python3 -c 'import os; print(os.path.dirname(os.__file__))')\"\n"
    )
    environment = {**os.environ, "DOCKER_BUILDKIT": "0"}
    subprocess.run(
        ["docker", "build", "--quiet", "--network", "host", "-t", "kg-runner", made / "image"],
        env=environment, check=True, capture_output=True,
    )  # fmt: skip
    held = subprocess.run(
        ["docker", "create", "kg-runner", "true"], check=True, capture_output=True, text=True
    ).stdout.strip()
    with (made / "root.tar").open("wb") as file:
        exported = subprocess.Popen(["docker", "export", held], stdout=subprocess.PIPE)
        subprocess.run(
            [sys.executable, "-c", SHRINK], stdin=exported.stdout, stdout=file, check=True
        )
        assert exported.stdout is not None
        exported.stdout.close()
        assert exported.wait() == 0
    subprocess.run(["docker", "rm", held], check=True, capture_output=True)
    yield made
    shutil.rmtree(made, ignore_errors=True)


SHRINK = """
import sys, tarfile

with (
    tarfile.open(fileobj=sys.stdin.buffer, mode="r|") as whole,
    tarfile.open(fileobj=sys.stdout.buffer, mode="w|") as part,
):
    for entry in whole:
        if "/site-packages/" not in entry.name and not entry.name.startswith("usr/lib/gcc"):
            part.addfile(entry, whole.extractfile(entry) if entry.isreg() else None)
"""


def docker(environment: dict[str, str], *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["docker", *words], env=environment, capture_output=True, text=True, check=False
    )


@contextmanager
def engine(folder: Path, *flags: str, path: str = "") -> Iterator[dict[str, str]]:
    """A second engine with these flags, and the variables that lead to it."""
    with tempfile.TemporaryDirectory(prefix="kg-engine-", ignore_cleanup_errors=True) as short:
        host = f"unix://{short}/docker.sock"
        words = [
            "dockerd", "--data-root", f"{folder}/data", "--exec-root", f"{short}/exec", "-H", host,
            "--pidfile", f"{short}/pid", "--bridge=none", "--iptables=false", "--ip-forward=false",
            "--ip-masq=false", "--group", "root", *flags,
        ]  # fmt: skip
        environment = {**os.environ, "PATH": f"{path}:{os.environ['PATH']}", "DOCKER_HOST": host}
        with (folder / "dockerd.log").open("w") as log:
            process = subprocess.Popen(
                words, env=environment, stdout=log, stderr=log, start_new_session=True
            )
        try:
            end = time.monotonic() + 120
            while docker(environment, "version").returncode:
                assert time.monotonic() < end, (folder / "dockerd.log").read_text()
                time.sleep(0.2)
            if not docker(environment, "images", "-q", "kg-runner").stdout:
                change = "ENV NVIDIA_VISIBLE_DEVICES=all PATH=/usr/local/bin:/usr/bin:/bin"
                tar = str(folder / "root.tar")
                done = docker(environment, "import", "-c", change, tar, "kg-runner")
                assert done.returncode == 0, done.stderr
            yield environment
        finally:
            process.terminate()
            process.wait()
            space = f"{short}/exec/netns/default"
            subprocess.run(["umount", space], capture_output=True, check=False)


def probe(
    folder: Path, environment: dict[str, str], device: str
) -> tuple[int, dict[str, str], str]:
    path = environment["PATH"]
    more = {"KG_IMAGE": "kg-runner", "KG_DEVICE": device, "PATH": f"{folder}/smi:{path}"}
    done = subprocess.run(
        ["bash", "-c", PROBE, "probe", str(ROOT), str(folder)], env=environment | more,
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    said = dict(line.split("=", 1) for line in done.stdout.splitlines() if "=" in line)
    return done.returncode, said, done.stdout + done.stderr


def test_threat_21_the_way_that_shows_a_gpu_wins(folder: Path) -> None:
    nvidia = f"--add-runtime=nvidia={folder}/runtime/nvidia"
    with engine(folder, nvidia, "--default-runtime=nvidia") as environment:
        code, said, text = probe(folder, environment, "auto")
        assert (code, said["device"]) == (0, "cuda"), text
        assert said["flags"] == "--runtime nvidia -e NVIDIA_VISIBLE_DEVICES=all"
    with engine(folder, nvidia, path=f"{folder}/hook") as environment:
        code, said, text = probe(folder, environment, "cuda")
        assert (code, said["device"], said["flags"]) == (0, "cuda", "--gpus all"), text
        assert "GPU: Fake H200" in text


def test_threat_21_without_a_gpu_cuda_is_not_decided_and_auto_says_why(folder: Path) -> None:
    with engine(folder) as environment:
        code, _, text = probe(folder, environment, "cuda")
        assert code == 3
        problem = (folder / "output").read_text()
        for words in ("could not select device driver", "nvidia", "cdi", "torch sees no GPU"):
            assert words in problem, text
        code, said, text = probe(folder, environment, "auto")
        assert (code, said["device"], said["flags"]) == (0, "interpreter", ""), text
        assert said["fallback"].startswith("a GPU was looked for and no container sees one")
