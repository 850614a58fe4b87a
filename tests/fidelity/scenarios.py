"""Run the planted faults in the interpreter: `python scenarios.py OUT.json`, a process of its own.

Each scenario is a function that returns the arguments of one call; what is recorded are the
faults, the error, and the outputs as lists.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ["TRITON_INTERPRET"] = "1"
HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from gate.run.faithful.install import install  # noqa: E402 - sets out the environment first
from gate.run.faithful.model import FaithfulOptions, TensorRegion  # noqa: E402 - see above

STATE = install(FaithfulOptions(root=str(HERE), spin_limit=500))

import accepted as a  # noqa: E402 - after the interpreter is installed
import planted as p  # noqa: E402 - see above
import torch  # noqa: E402 - see above
import triton  # noqa: E402 - see above
import triton.language as tl  # noqa: E402 - see above
from triton.tools.tensor_descriptor import TensorDescriptor  # noqa: E402 - see above

ALL = frozenset({"bounds", "wrap", "race"})
SCENARIOS: dict[str, Callable[[], dict[str, Any]]] = {}


def scenario(fn: Callable[[], dict[str, Any]]) -> Callable[[], dict[str, Any]]:
    """Register a scenario by its name."""
    SCENARIOS[fn.__name__] = fn
    return fn


def slab(name: str, values: torch.Tensor, *, empty: bool = False, pad: int = 0) -> tuple[Any, Any]:
    """Return a tensor inside a guarded slab, and its region; `pad` elements after each row."""
    guard = 64
    rows = values.reshape(-1, values.shape[-1]) if values.dim() > 1 else values.reshape(1, -1)
    width = rows.shape[1] + pad
    memory = torch.full((guard + rows.shape[0] * width + guard,), -77, dtype=values.dtype)
    body = memory[guard : guard + rows.shape[0] * width].view(rows.shape[0], width)
    view = body[:, : rows.shape[1]]
    view.copy_(rows)
    tensor = view if values.dim() > 1 else view[0]
    region = TensorRegion(
        name=name,
        address=tensor.data_ptr(),
        itemsize=tensor.element_size(),
        shape=tuple(tensor.shape),
        strides=tuple(tensor.stride()),
        start=memory.data_ptr(),
        end=memory.data_ptr() + memory.numel() * memory.element_size(),
        initialised=not empty,
    )
    return tensor, region


def call(
    kernel: Any, grid: tuple[int, ...], tensors: list[tuple[Any, Any]], *args: Any,
    order: str = "forward", checks: frozenset[str] = ALL, out: int = 1, **meta: Any,
) -> dict[str, Any]:  # fmt: skip
    """Launch once under the checks and report."""
    STATE.begin([region for _, region in tensors], order, checks)
    report: dict[str, Any] = {"error": ""}
    try:
        kernel[grid](*(tensor for tensor, _ in tensors), *args, **meta)
    except Exception as error:  # noqa: BLE001 - the error is the result
        report["error"] = f"{type(error).__name__}: {error}"
    report["faults"] = [
        {
            "kind": fault.kind,
            "line": fault.line,
            "tensor": fault.tensor,
            "program": list(fault.program),
            "kernel": fault.kernel,
            "message": fault.message,
        }
        for fault in STATE.end()
    ]
    value = tensors[out][0]
    report["out"] = value.to(torch.float64).reshape(-1).tolist()[:512]
    return report


def line(n: int) -> torch.Tensor:
    """Return 1, 2, 3, ... as float32."""
    return torch.arange(1, n + 1, dtype=torch.float32)


def pair(n: int, m: int | None = None, *, empty: bool = True) -> list[tuple[Any, Any]]:
    """Return an input of n elements and an output of m (default n)."""
    return [slab("x", line(n)), slab("y", torch.zeros(n if m is None else m), empty=empty)]


@scenario
def copy_is_clean() -> dict[str, Any]:
    return call(p.copy, (3,), pair(21), 21, BLOCK=8)


@scenario
def read_past() -> dict[str, Any]:
    return call(p.read_past, (3,), pair(21), 21, BLOCK=8)


@scenario
def write_past() -> dict[str, Any]:
    return call(p.write_past, (3,), pair(21), 21, BLOCK=8)


@scenario
def write_far() -> dict[str, Any]:
    return call(p.write_far, (1,), pair(8), 8, BLOCK=8)


@scenario
def write_far_unchecked() -> dict[str, Any]:
    return call(p.write_far, (1,), pair(8), 8, BLOCK=8, checks=frozenset())


@scenario
def read_before() -> dict[str, Any]:
    return call(p.read_before, (1,), pair(8), BLOCK=8)


@scenario
def reach_other() -> dict[str, Any]:
    tensors = pair(8, empty=False)
    gap = (tensors[1][0].data_ptr() - tensors[0][0].data_ptr()) // 4
    return call(p.reach_other, (1,), tensors, gap, BLOCK=8)


@scenario
def rows_dense() -> dict[str, Any]:
    tensors = [slab("x", line(15).view(3, 5), pad=3), slab("y", torch.zeros(15), empty=True)]
    return call(p.rows_dense, (3,), tensors, 3, 5, BLOCK=8)


@scenario
def rows_strided_is_clean() -> dict[str, Any]:
    tensors = [slab("x", line(15).view(3, 5), pad=3), slab("y", torch.zeros(15), empty=True)]
    return call(p.rows_strided, (3,), tensors, 8, 5, BLOCK=8)


@scenario
def add_to_unset() -> dict[str, Any]:
    return call(p.add_to_unset, (1,), pair(6), 6, BLOCK=8)


@scenario
def add_to_zeroed_is_clean() -> dict[str, Any]:
    tensors = pair(6)
    tensors[1][0].fill_(5.0)
    STATE.begin([region for _, region in tensors], "forward", ALL)
    tensors[1][0].zero_()
    p.add_to_unset[(1,)](tensors[0][0], tensors[1][0], 6, BLOCK=8)
    return {"error": "", "faults": [f.kind for f in STATE.end()], "out": tensors[1][0].tolist()}


@scenario
def wrap_row() -> dict[str, Any]:
    return call(p.wrap_row, (1,), pair(8), 65536, 65536, BLOCK=8)


@scenario
def wide_row_is_clean() -> dict[str, Any]:
    return call(p.wide_row, (1,), pair(8), 65536, 65536, BLOCK=8)


@scenario
def wrap_and_return_is_clean() -> dict[str, Any]:
    return call(p.wrap_and_return, (1,), pair(8), 2000000000, BLOCK=8)


@scenario
def hashed_is_clean() -> dict[str, Any]:
    return call(p.hashed, (1,), pair(8, 16), 8, BLOCK=16)


@scenario
def wrap_masked_is_clean() -> dict[str, Any]:
    return call(p.wrap_masked, (1,), pair(4, 8), 2000000000, 4, BLOCK=8)


@scenario
def race_write() -> dict[str, Any]:
    return call(p.race_write, (3,), pair(8), BLOCK=8)


@scenario
def same_write_is_clean() -> dict[str, Any]:
    return call(p.same_write, (3,), pair(8), BLOCK=8)


@scenario
def race_read() -> dict[str, Any]:
    return call(p.race_read, (3,), pair(32, 8), BLOCK=8, out=0)


@scenario
def race_sum() -> dict[str, Any]:
    tensors = [slab("x", line(32)), slab("y", torch.zeros(1))]
    return call(p.race_sum, (4,), tensors, BLOCK=8)


@scenario
def atomic_sum_is_clean() -> dict[str, Any]:
    tensors = [slab("x", line(32)), slab("y", torch.zeros(1))]
    return call(p.atomic_sum, (4,), tensors, BLOCK=8)


@scenario
def locked_sum_is_clean() -> dict[str, Any]:
    lock = slab("lock", torch.zeros(1, dtype=torch.int32))
    tensors = [slab("x", line(32)), slab("y", torch.zeros(1)), lock]
    return call(p.locked_sum, (4,), tensors, BLOCK=8)


@scenario
def last_sum_is_clean() -> dict[str, Any]:
    count = slab("count", torch.zeros(1, dtype=torch.int32))
    part = slab("part", torch.zeros(4), empty=True)
    tensors = [slab("x", line(32)), part, count, slab("y", torch.zeros(1), empty=True)]
    return call(p.last_sum, (4,), tensors, P=4, BLOCK=8, out=3)


@scenario
def wait_for_other() -> dict[str, Any]:
    flag = slab("flag", torch.zeros(1, dtype=torch.int32))
    tensors = [slab("x", line(8)), slab("y", torch.zeros(16), empty=True), flag]
    return call(p.wait_for_other, (2,), tensors, BLOCK=8)


@scenario
def wait_for_other_reversed() -> dict[str, Any]:
    flag = slab("flag", torch.zeros(1, dtype=torch.int32))
    tensors = [slab("x", line(8)), slab("y", torch.zeros(16), empty=True), flag]
    return call(p.wait_for_other, (2,), tensors, BLOCK=8, order="reversed")


@scenario
def flag_passed_is_clean() -> dict[str, Any]:
    flag = slab("flag", torch.zeros(1, dtype=torch.int32))
    part = slab("part", torch.zeros(8), empty=True)
    tensors = [slab("x", line(8)), slab("y", torch.zeros(8), empty=True), part, flag]
    return call(p.flag_passed, (2,), tensors, BLOCK=8)


@scenario
def misaligned() -> dict[str, Any]:
    x = slab("x", torch.zeros(64, dtype=torch.int8))
    return call(p.misaligned, (1,), [x, slab("y", torch.zeros(8))], BLOCK=8)


@scenario
def forward_order() -> dict[str, Any]:
    return call(p.order_dependent, (3,), pair(2, empty=False), BLOCK=2, checks=frozenset())


@scenario
def reversed_order() -> dict[str, Any]:
    tensors = pair(2, empty=False)
    return call(p.order_dependent, (3,), tensors, BLOCK=2, checks=frozenset(), order="reversed")


@scenario
def pointers_are_followed() -> dict[str, Any]:
    kept = [line(6), line(6) * 10]
    table = torch.tensor([one.data_ptr() for one in kept], dtype=torch.int64)
    return call(p.pointers, (2,), [slab("table", table), slab("y", torch.zeros(16))], 6, BLOCK=8)


@scenario
def pointers_past_the_end() -> dict[str, Any]:
    kept = [line(6), line(6) * 10]
    table = torch.tensor([one.data_ptr() for one in kept], dtype=torch.int64)
    tensors = [slab("table", table), slab("y", torch.zeros(2**15))]
    return call(p.pointers, (1,), tensors, 2**15, BLOCK=2**15)


@scenario
def grid_too_large() -> dict[str, Any]:
    return call(p.copy, (1, 65536), pair(8), 8, BLOCK=8)


@scenario
def empty_grid() -> dict[str, Any]:
    return call(p.copy, (0,), pair(8), 8, BLOCK=8)


@scenario
def assembly() -> dict[str, Any]:
    return call(p.assembly, (1,), pair(8), BLOCK=8)


@scenario
def to_on_int_of_one() -> dict[str, Any]:
    return call(p.to_on_int, (1,), pair(8), 1, BLOCK=8)


@scenario
def to_on_int_of_two() -> dict[str, Any]:
    return call(p.to_on_int, (1,), pair(8), 2, BLOCK=8)


@scenario
def shallow_dot() -> dict[str, Any]:
    tensors = [slab("x", line(64)), slab("y", torch.zeros(256), empty=True)]
    return call(p.shallow_dot, (1,), tensors, BLOCK=16)


@scenario
def unknown_name() -> dict[str, Any]:
    return call(p.unknown_name, (1,), pair(8), BLOCK=8)


@scenario
def loop_changes_type() -> dict[str, Any]:
    return call(p.ragged_block, (1,), pair(8), BLOCK=8, checks=frozenset({"compile"}))


@scenario
def copy_compiles() -> dict[str, Any]:
    return call(p.copy, (3,), pair(21), 21, BLOCK=8, checks=frozenset({"compile"}))


@scenario
def to_on_int_of_one_does_not_compile() -> dict[str, Any]:
    return call(p.to_on_int, (1,), pair(8), 1, BLOCK=8, checks=frozenset({"compile"}))


@scenario
def accepted_words() -> dict[str, Any]:
    return call(a.words, (1,), pair(7, 16), 7, BLOCK=8)


@scenario
def accepted_imported() -> dict[str, Any]:
    return call(a.imported, (1,), pair(8), BLOCK=8)


@scenario
def accepted_extras() -> dict[str, Any]:
    return call(a.extras, (1,), pair(8), BLOCK=8)


@scenario
def accepted_constants() -> dict[str, Any]:
    return call(a.constants, (1,), pair(8), KIND="double", TO=tl.float32)


@scenario
def accepted_control() -> dict[str, Any]:
    return call(a.control, (4,), pair(24, 24), 3, BLOCK=8)


@scenario
def accepted_narrow() -> dict[str, Any]:
    x = slab("x", torch.tensor([127, -128, 5, 0], dtype=torch.int8))
    y = slab("y", torch.zeros(8, dtype=torch.int64), empty=True)
    return call(a.narrow, (1,), [x, y], 2, BLOCK=4)


@scenario
def accepted_branchy_reduce() -> dict[str, Any]:
    return call(a.branchy_reduce, (1,), pair(8, 1), BLOCK=8)


@scenario
def accepted_shapes() -> dict[str, Any]:
    return call(a.shapes, (1,), pair(8), BLOCK=8)


@scenario
def accepted_hints() -> dict[str, Any]:
    return call(a.hints, (1,), pair(8), 5, BLOCK=8)


@scenario
def accepted_spoken() -> dict[str, Any]:
    return call(a.spoken, (1,), pair(4), BLOCK=4)


@scenario
def accepted_closure() -> dict[str, Any]:
    return call(a.made_in_a_function(4.0), (1,), pair(8), BLOCK=8)


@scenario
def accepted_tuples() -> dict[str, Any]:
    x, y = pair(8)
    STATE.begin([x[1], y[1]], "forward", ALL)
    a.tuples[(1,)]((x[0], 5), y[0], BLOCK=8)
    return {"error": "", "faults": [f.kind for f in STATE.end()], "out": y[0].tolist()}


@scenario
def accepted_float8() -> dict[str, Any]:
    x = slab("x", line(8).to(torch.float8_e5m2))
    return call(
        a.float8_roundtrip, (1,), [x, slab("y", torch.zeros(8).to(torch.float8_e5m2))], BLOCK=8
    )


@scenario
def accepted_descriptor_of_the_host() -> dict[str, Any]:
    x, y = slab("x", line(6 * 16).view(6, 16)), slab("y", torch.zeros(8, 16))
    STATE.begin([x[1], y[1]], "forward", ALL)
    a.hosted[(1,)](TensorDescriptor.from_tensor(x[0], [8, 16]), y[0], N=16)
    out = y[0].reshape(-1).tolist()
    return {"error": "", "faults": [f.kind for f in STATE.end()], "out": out}


@scenario
def accepted_warmed() -> dict[str, Any]:
    x, y = pair(8)
    STATE.begin([x[1], y[1]], "forward", ALL)
    a.warmed(x[0], y[0])
    return {"error": "", "faults": [f.kind for f in STATE.end()], "out": y[0].tolist()}


@scenario
def undefined_lanes() -> dict[str, Any]:
    report = call(a.undefined_lanes, (1,), pair(8), 5, BLOCK=8)
    report["out"] = [str(value) for value in report["out"]]
    return report


@scenario
def unknown_device_function() -> dict[str, Any]:
    return call(a.unknown_device_function, (1,), pair(8), BLOCK=8)


def tuned(kernel: Any, config: int | None, times: int = 1) -> dict[str, Any]:
    """Run a tuned kernel with a config, or the tuner's own choice, `times` times."""
    x, y = slab("x", line(8)), slab("y", torch.zeros(8))
    STATE.force_config(config)
    STATE.begin([x[1], y[1]], "forward", ALL)
    for _ in range(times):
        kernel[lambda meta: (triton.cdiv(8, meta["BLOCK"]),)](x[0], y[0], 8)
    STATE.force_config(None)
    faults = [fault.kind for fault in STATE.end()]
    return {"error": "", "faults": faults, "out": y[0].tolist(), "configs": STATE.configs}


@scenario
def tuned_by_itself() -> dict[str, Any]:
    return tuned(a.tuned, None)


@scenario
def tuned_second_config() -> dict[str, Any]:
    return tuned(a.tuned, 1)


@scenario
def tuned_in_place() -> dict[str, Any]:
    return tuned(a.tuned_add, None, times=2)


@scenario
def tuned_in_place_forced() -> dict[str, Any]:
    return tuned(a.tuned_add, 0, times=2)


@scenario
def tuned_in_place_restored() -> dict[str, Any]:
    return tuned(a.tuned_restored, None)


def main(path: str) -> int:
    """Run every scenario."""
    done = {}
    for name, run in SCENARIOS.items():
        spoken = io.StringIO()
        with contextlib.redirect_stdout(spoken):
            done[name] = run()
        done[name]["spoken"] = spoken.getvalue()
    Path(path).write_text(json.dumps(done), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
