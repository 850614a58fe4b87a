"""Scenarios of planted faults, and of correct kernels that look like them."""

from __future__ import annotations

from typing import Any

from harness import ALL, STATE, TensorRegion, call, line, pair, scenario, slab

# isort: split
# The harness sets up the interpreter, so it comes first.
import planted as p
import torch
from accepted import made_in_a_function


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


def index_of(n: int) -> tuple[Any, Any]:
    return slab("index", torch.arange(n, dtype=torch.int32))


@scenario
def index_past() -> dict[str, Any]:
    return call(p.index_past, (3,), [index_of(2), *pair(10)], 5, out=2, BLOCK=8)


@scenario
def count_past_and_write_past() -> dict[str, Any]:
    tensors = [index_of(21), slab("y", torch.zeros(21, dtype=torch.int32), empty=True)]
    return call(p.count_past_and_write_past, (3,), tensors, 21, BLOCK=8)


@scenario
def wide_row_is_clean() -> dict[str, Any]:
    return call(p.wide_row, (1,), pair(8), 65536, 65536, BLOCK=8)


FAR = 2**30 + 7


def far_pair() -> list[tuple[Any, Any]]:
    """Return three rows far apart in memory that is never touched between them, and an output."""
    memory = torch.empty(2 * FAR + 8, dtype=torch.int8)
    rows = memory.as_strided((3, 5), (FAR, 1))
    rows.copy_(torch.arange(15).view(3, 5))
    region = TensorRegion(
        name="x",
        address=rows.data_ptr(),
        itemsize=1,
        shape=(3, 5),
        strides=(FAR, 1),
        start=memory.data_ptr(),
        end=memory.data_ptr() + memory.numel(),
    )
    return [(rows, region), slab("y", torch.zeros(15, dtype=torch.int8), empty=True)]


@scenario
def far_rows() -> dict[str, Any]:
    return call(p.far_rows, (3,), far_pair(), FAR, N=5, BLOCK=8)


@scenario
def far_rows_wide_is_clean() -> dict[str, Any]:
    return call(p.far_rows_wide, (3,), far_pair(), FAR, N=5, BLOCK=8)


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
def kernel_without_a_name_is_not_compiled() -> dict[str, Any]:
    kernel = made_in_a_function(4.0)
    report = call(kernel, (1,), pair(8), BLOCK=8, checks=frozenset({"compile"}))
    report["notes"] = [*STATE.notes, *STATE.remarks()]
    return report


@scenario
def copy_compiles() -> dict[str, Any]:
    return call(p.copy, (3,), pair(21), 21, BLOCK=8, checks=frozenset({"compile"}))


@scenario
def to_on_int_of_one_does_not_compile() -> dict[str, Any]:
    return call(p.to_on_int, (1,), pair(8), 1, BLOCK=8, checks=frozenset({"compile"}))


@scenario
def volatile_cached_does_not_assemble() -> dict[str, Any]:
    return call(p.volatile_cached, (1,), pair(8), BLOCK=8, checks=frozenset({"compile"}))
