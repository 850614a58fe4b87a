"""Receipts of compiled launches, with a stand-in for what needs a GPU."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.triton

SCRIPT = """
import json, os, sys
os.environ.pop("TRITON_INTERPRET", None)
import triton
import triton.language as tl
from triton.runtime.jit import JITFunction

ran = []
def stock(jit, *args, grid, warmup, **kwargs):
    ran.append([list(grid), kwargs])
    if args and args[0] == "compile":
        raise triton.compiler.errors.CompilationError("src", None, "bad")
    if args and args[0] == "device":
        raise RuntimeError("Triton Error [CUDA]: an illegal memory access was encountered")
    if args and args[0] == "launch":
        raise RuntimeError("Triton Error [CUDA]: invalid argument")
JITFunction.run = stock

from gate.run.launches import Receipts, kernels_of, watch_compiled
from gate.run.protocol import LaunchFact

receipts = Receipts(os.getcwd())
watch_compiled(receipts)

@triton.jit
def plain(x, n, step, BLOCK: tl.constexpr, FLAG: tl.constexpr = True):
    pass

@triton.autotune(configs=[triton.Config({"BLOCK": b}, num_warps=b) for b in (2, 4, 8)], key=["n"])
@triton.heuristics({"FLAG": lambda args: args["n"] > 3})
@triton.jit
def tuned(x, n, BLOCK: tl.constexpr, FLAG: tl.constexpr):
    pass

def fact(f):
    name = f.kernel.rpartition("::")[2]
    return [name, list(f.grid), dict(f.constexprs), dict(f.specials), dict(f.options)]

def call(run, config=None):
    receipts.begin(config)
    stage = ""
    try:
        run()
    except BaseException as error:
        stage = receipts.stage(error)
    return {"facts": [fact(f) for f in receipts.facts], "count": receipts.count, "stage": stage,
            "faults": [f.message for f in receipts.faults], "configs": len(receipts.offers.configs)}

def before():
    raise ValueError("no")

def after():
    plain[(1,)]("x", 1, 1, BLOCK=2)
    raise ValueError("no")

def warm():
    plain.warmup("x", 5, 1, BLOCK=2, grid=(1,))

def wrapped():
    try:
        plain[(1,)]("device", 1, 1, BLOCK=2)
    except RuntimeError as error:
        raise ValueError("in other words")

out = {
    "plain": call(lambda: plain[lambda meta: (meta["n"], 2)]("x", 5, 32, BLOCK=16, num_warps=8)),
    "one": call(lambda: plain[3]("x", 1, True, 4, False)),
    "wide": call(lambda: plain[(1, 70000, 1)]("x", 1, 1, BLOCK=2)),
    "many": call(lambda: [plain[(1,)]("x", 1, 1, BLOCK=2) for _ in range(300)]),
    "tuned": call(lambda: tuned[lambda meta: (meta["BLOCK"],)]("x", 5)),
    "again": call(lambda: tuned[lambda meta: (meta["BLOCK"],)]("x", 5)),
    "forced": call(lambda: tuned[lambda meta: (meta["BLOCK"],)]("x", 5), 2),
    "before": call(before), "after": call(after), "warm": call(warm), "wrapped": call(wrapped),
    "compile": call(lambda: plain[(1,)]("compile", 1, 1, BLOCK=2)),
    "device": call(lambda: plain[(1,)]("device", 1, 1, BLOCK=2)),
    "launch": call(lambda: plain[(1,)]("launch", 1, 1, BLOCK=2)),
    "missing": call(lambda: plain[(1,)](1, 2, 3, 4, 5, 6)),
}
out["kernels"] = [k.rpartition("::")[2] for k in kernels_of(sys.modules["__main__"], os.getcwd())]
print(json.dumps(out))
"""


@pytest.fixture(scope="module")
def seen(tmp_path_factory):
    folder = tmp_path_factory.mktemp("launches")
    (folder / "script.py").write_text(SCRIPT)
    env = {"PATH": "/usr/bin:/bin", "HOME": str(folder)}
    env["PYTHONPATH"] = str(Path(__file__).parent.parent.parent)
    done = subprocess.run(
        [sys.executable, "script.py"], cwd=folder, env=env, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_launch_is_recorded_with_its_grid_constants_specials_and_options(seen):
    assert seen["plain"]["facts"] == [
        ["plain", [5, 2, 1], {"BLOCK": 16, "FLAG": True}, {"n": "", "step": "16"}, {"num_warps": 8}]
    ]
    assert seen["one"]["facts"][0][1:4] == [[3, 1, 1], {"BLOCK": 4, "FLAG": False}, {"n": "1"}]
    assert seen["warm"]["count"] == 0


def test_many_launches_are_counted_and_some_are_kept(seen):
    assert seen["many"]["count"] == 300 and len(seen["many"]["facts"]) == 256


def test_a_grid_over_the_limits_is_a_fault(seen):
    assert seen["wide"]["faults"] == ["axis 1 of the grid has 70000 programs; the limit is 65535"]
    assert seen["plain"]["faults"] == []


def test_a_tuner_runs_each_config_once_and_then_its_choice(seen):
    blocks = [fact[2]["BLOCK"] for fact in seen["tuned"]["facts"]]
    assert sorted(blocks[:3]) == [2, 4, 8] and len(blocks) == 4
    assert seen["tuned"]["configs"] == 3
    assert all(fact[2]["FLAG"] is True for fact in seen["tuned"]["facts"])
    assert [fact[2]["BLOCK"] for fact in seen["again"]["facts"]] == blocks[3:]


def test_a_forced_config_runs_alone(seen):
    (fact,) = seen["forced"]["facts"]
    assert fact[1] == [8, 1, 1] and fact[2]["BLOCK"] == 8 and fact[4]["num_warps"] == 8
    assert seen["forced"]["configs"] == 3


def test_the_stage_of_an_exception_is_where_it_arose(seen):
    stages = {name: seen[name]["stage"] for name in seen if name != "kernels"}
    assert stages["before"] == "launcher" and stages["after"] == "after"
    assert stages["compile"] == "compile" and stages["launch"] == "launch"
    assert stages["device"] == "device" and stages["missing"] == "launch"
    assert stages["wrapped"] == "device"


def test_the_kernels_of_a_module_are_named_through_their_decorators(seen):
    assert seen["kernels"] == ["plain", "tuned"]
