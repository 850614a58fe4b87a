"""Scenarios of forms that the compiler accepts, and of what the interpreter cannot emulate."""

from __future__ import annotations

from typing import Any

from harness import ALL, STATE, call, line, pair, scenario, slab

# isort: split
# The harness sets up the interpreter, so it comes first.
import accepted as a
import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor


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
    offered = len(STATE.offers.configs)
    STATE.force_config(None)
    faults = [fault.kind for fault in STATE.end()]
    return {"error": "", "faults": faults, "out": y[0].tolist(), "configs": offered}


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
