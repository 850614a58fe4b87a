"""The rest of the probe table: reductions, scans, products, masks, atomics and addressing."""

from __future__ import annotations

from typing import Any

import kernels as k
import kernels_blocks as b
import triton
from probes import Probe, casts, floats, into, ints, maths, of
from values import Tensor

M, W = 8, 64
"""Rows and columns of a block probe."""


def probe(
    name: str, kernel: Any, *args: Any, grid: tuple[int, ...] = (1,), ulp: int = 0,
    reason: str = "", **meta: Any,
) -> Probe:  # fmt: skip
    """Return a probe; the named rest are the constants of the launch."""
    return Probe(
        name=name, kernel=kernel, args=args, meta=meta, grid=grid, ulp=ulp, reason=reason
    )  # fmt: skip


def reduced(fn: Any, dtype: str, fill: str, out: str) -> list[Probe]:
    """Return the probes of one reduction: rows, columns and a whole block."""
    tag = f"{fn.__name__}-{dtype}-{fill}"
    block = of(dtype, fill, M, W)
    line = of(dtype, fill, 512)
    return [
        probe(f"rows-{tag}", k.rows, block, into(out, M), M=M, N=W, FN=fn),
        probe(f"columns-{tag}", k.columns, block, into(out, W), M=M, N=W, FN=fn),
        probe(f"whole-{tag}", k.whole, line, into(out, 1), N=512, FN=fn),
    ]


def reductions() -> list[Probe]:
    """Sums, extremes and custom reductions."""
    made: list[Probe] = []
    for dtype in ("float32", "bfloat16", "float16"):
        made += reduced(b.total, dtype, "counts", dtype)
        made += reduced(b.total, dtype, "normal", dtype)
        made += reduced(b.largest, dtype, "special", "float32")
        made += reduced(b.smallest, dtype, "normal", "float32")
        made += reduced(b.where_largest, dtype, "ties", "int32")
        made += reduced(b.where_smallest, dtype, "normal", "int32")
    made += reduced(b.total_float32, "bfloat16", "normal", "float32")
    for dtype, out in (("int8", "int32"), ("uint8", "uint32"), ("int32", "int32")):
        made += reduced(b.total, dtype, "full", out)
        made += reduced(b.largest, dtype, "full", "int32")
    made += reduced(b.parity, "int32", "full", "int32")
    made += reduced(b.product, "float32", "powers", "float32")
    made += reduced(b.product, "bfloat16", "powers", "bfloat16")
    made += reduced(b.variance, "float32", "counts", "float32")
    for dtype in ("float32", "bfloat16", "float16"):
        block = of(dtype, "normal", M, W)
        made.append(
            probe(
                f"softmax-{dtype}",
                b.softmax_rows,
                block,
                into("float32", M, W),
                M=M,
                N=W,
            )
        )
        counts = of(dtype, "counts", M, W)
        made.append(probe(f"sum_all-{dtype}", b.sum_all, counts, into("float32", 1), M=M, N=W))
    ties = of("float32", "ties", M, W)
    outs = (into("float32", M), into("int32", M))
    made.append(probe("best_pair-float32", b.best_pair, ties, *outs, M=M, N=W))
    return made


SCANS: tuple[tuple[Any, str, str, str], ...] = (
    (b.running_sum, "float32", "counts", "float32"),
    (b.running_sum, "float32", "positive", "float32"),
    (b.running_sum, "bfloat16", "ties", "bfloat16"),
    (b.running_sum, "float16", "counts", "float16"),
    (b.running_sum, "int32", "full", "int32"),
    (b.running_sum, "int8", "full", "int32"),
    (b.running_sum_down, "float32", "counts", "float32"),
    (b.running_sum_back, "float32", "counts", "float32"),
    (b.running_sum_back, "int32", "full", "int32"),
    (b.running_product, "float32", "powers", "float32"),
    (b.running_product, "int32", "full", "int32"),
    (b.running_max, "float32", "normal", "float32"),
    (b.running_max, "bfloat16", "normal", "bfloat16"),
    (b.recurrence, "float32", "counts", "float32"),
    (b.sorted_up, "float32", "normal", "float32"),
    (b.sorted_up, "bfloat16", "normal", "bfloat16"),
    (b.sorted_down, "int32", "full", "int32"),
    (b.sorted_down, "float16", "ties", "float16"),
    (b.turned, "bfloat16", "normal", "bfloat16"),
    (b.turned, "float32", "normal", "float32"),
    (b.transposed_sum, "bfloat16", "normal", "bfloat16"),
)
"""Function, input dtype, values, output dtype."""


def scans() -> list[Probe]:
    """Prefix operations, sorting, and block shuffles."""
    size = {"M": M, "N": W}
    made = []
    for fn, dtype, fill, out in SCANS:
        name = f"{fn.__name__}-{dtype}-{fill}"
        ends = (of(dtype, fill, M, W), into(out, M, W))
        made.append(probe(name, k.scan, *ends, **size, FN=fn))
    for dtype in ("float32", "bfloat16", "int32"):
        block, line = of(dtype, "counts", M, W), of(dtype, "counts", W)
        index = of("int32", f"index:{W}", M, W)
        made.append(probe(f"topk-{dtype}", b.best_four, block, into(dtype, M, 4), **size))
        made.append(probe(f"gather-{dtype}", b.gathered, block, index, into(dtype, M, W), **size))
        made.append(probe(f"join-{dtype}", b.joined, line, line, into(dtype, 2 * W), N=W))
        twice = into(dtype, 2 * W)
        made.append(probe(f"interleave-{dtype}", b.interleaved, line, line, twice, N=W))
    bins = of("int32", "index:16", 512)
    made.append(probe("histogram", b.counted, bins, into("int32", 16), N=512, BINS=16))
    return made


PRODUCTS = (
    ("bfloat16", "float32", "counts", ""), ("bfloat16", "float32", "normal", ""),
    ("float16", "float32", "counts", ""), ("float16", "float32", "normal", ""),
    ("float16", "float16", "counts", "half"), ("float16", "float16", "normal", "half"),
    ("float32", "float32", "counts", ""), ("float32", "float32", "normal", ""),
    ("float32", "float32", "normal", "ieee"), ("float32", "float32", "normal", "tf32x3"),
    ("int8", "int32", "full", "int"), ("float8_e4m3fn", "float32", "counts", ""),
    ("float8_e5m2", "float32", "counts", ""), ("float8_e4m3fn", "float32", "normal", ""),
)  # fmt: skip
"""Operand dtype, output dtype, values, precision."""


def products() -> list[Probe]:
    """Matrix products by input dtype and precision."""
    made = []
    for dtype, out, fill, how in PRODUCTS:
        for inner in (32, 64):
            name = f"dot-{dtype}-{fill}-{how or 'default'}-{inner}"
            ends = (of(dtype, fill, 16, inner), of(dtype, fill, inner, 32), into(out, 16, 32))
            made.append(probe(name, b.dot, *ends, M=16, N=32, K=inner, HOW=how))
    for dtype in ("bfloat16", "float16", "float32"):
        ends = (of(dtype, "counts", 16, 96), of(dtype, "counts", 96, 16), into("float32", 16, 16))
        made.append(probe(f"dot_loop-{dtype}", b.dot_loop, *ends, M=16, N=16, K=96, STEP=32))
    return made


def promotions(dtype: str) -> list[Probe]:
    """Masks, run-time scalars, control flow and descriptors for one float dtype."""
    line, out = of(dtype, "normal", W), into(dtype, W)
    made = []
    for tag, other in (("zero", 0.0), ("nan", float("nan")), ("minus_inf", float("-inf"))):
        made.append(probe(f"masked-{dtype}-{tag}", b.masked, line, out, 37, N=W, OTHER=other))
    wide, four, nine = into("float32", W), of(dtype, "normal", 4, W), of(dtype, "normal", 9, W)
    made.append(probe(f"scaled-{dtype}", b.scaled, line, wide, 20000.3, N=W))
    name = f"scaled_and_halved-{dtype}"
    made.append(probe(name, b.scaled_and_halved, line, out, 20000.3, N=W))
    made.append(probe(f"scalar_cast-{dtype}", b.scalar_cast, line, out, 0.1, N=W))
    fours = into(dtype, 4, W)
    made.append(probe(f"branches-{dtype}", b.branches, four, fours, 5, N=W, grid=(4,)))
    made.append(probe(f"loop_half-{dtype}", b.loop_half, nine, out, 9, N=W))
    ends = (of(dtype, "normal", 20, 40), into(dtype, 20, 40))
    size = {"M": 20, "N": 40, "B": 16}
    made.append(probe(f"descriptor-{dtype}", b.descriptor_copy, *ends, grid=(2, 3), **size))
    if BLOCK_POINTERS:
        name = f"block_pointer-{dtype}"
        made.append(probe(name, b.block_pointer_copy, *ends, grid=(2,), **size))
    return made


BLOCK_POINTERS = tuple(int(part) for part in triton.__version__.split(".")[:2]) < (3, 9)
"""Whether this Triton still has block pointers."""


def controls() -> list[Probe]:
    """Masks, promotion of run-time scalars, control flow, descriptors and block pointers."""
    made = [one for dtype in ("float32", "bfloat16", "float16") for one in promotions(dtype)]
    line, out = of("float32", "normal", W), into("float32", W)
    made.append(probe("masked_store", b.masked_store, line, out, 21, N=W))
    made.append(probe("mask_and_scalar", b.mask_and_scalar, line, out, 40, 3, N=W))
    eight = of("float32", "normal", 8)
    made.append(
        probe("one_lane_other", b.one_lane_other, eight, into("float32", 8), 5, N=W, grid=(8,))
    )
    whole, ints_out = of("int32", "full", W), into("int32", W)
    made.append(probe("masked-int32", b.masked, whole, ints_out, 37, N=W, OTHER=-7))
    for dtype in ("int8", "int16", "int32"):
        ends = (of(dtype, "full", W), into(dtype, W))
        made.append(probe(f"narrow_index-{dtype}", b.narrow_index, *ends, 5, N=W))
    return made


ATOMICS = (
    ("add", "float32"), ("add", "bfloat16"), ("add", "float16"), ("add", "int32"),
    ("max", "float32"), ("min", "float32"), ("max", "int32"), ("min", "int32"),
    ("and", "int32"), ("or", "int32"), ("xor", "int32"), ("add", "int64"),
)  # fmt: skip
"""Operation and dtype of atomics that meet at the same elements."""

ATOMICS_OLD = (
    ("add", "float32"), ("add", "int32"), ("xchg", "int32"), ("xchg", "float32"), ("cas", "int32"),
)  # fmt: skip
"""Operation and dtype of atomics whose old values are compared."""


def atomics() -> list[Probe]:
    """Atomic operations whose result does not depend on the order of the lanes."""
    made = []
    index = of("int32", "index:16", 2 * W)
    for op, dtype in ATOMICS:
        fill = "counts" if op in ("add", "max", "min") else "full"
        target = Tensor(dtype=dtype, shape=(16,), fill="counts", out=True)
        ends = (of(dtype, fill, 2 * W), index, target)
        made.append(probe(f"atomic-{op}-{dtype}", b.atomic, *ends, N=W, OP=op, grid=(2,)))
    for op, dtype in ATOMICS_OLD:
        target = Tensor(dtype=dtype, shape=(W,), fill="counts", out=True)
        ends = (of(dtype, "counts", W), target, into(dtype, W))
        made.append(probe(f"atomic_old-{op}-{dtype}", b.atomic_old, *ends, N=W, OP=op))
    return made


ROOMS = (floats, casts, ints, maths, reductions, scans, products, controls, atomics)
"""Functions that make probes, in order."""

PROBES: tuple[Probe, ...] = tuple(one for room in ROOMS for one in room())
"""Every probe."""
