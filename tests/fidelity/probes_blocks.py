"""The rest of the probe table: reductions, scans, products, masks, atomics and addressing."""

from __future__ import annotations

from typing import Any

import kernels as k
import kernels_blocks as b
import triton.language as tl
from probes import (
    APPROX,
    ORDER,
    TENSOR,
    Probe,
    casts,
    floats,
    into,
    ints,
    maths,
    of,
)
from values import Tensor

M, W = 8, 64
"""Rows and columns of a block probe."""


def reduced(fn: Any, dtype: str, fill: str, out: str, ulp: int = 0, reason: str = "") -> list[Probe]:
    """Return the probes of one reduction: rows, columns and a whole block."""
    tag = f"{fn.__name__}-{dtype}-{fill}"
    meta = {"M": M, "N": W, "FN": fn}
    block = of(dtype, fill, M, W)
    return [
        Probe(name=f"rows-{tag}", kernel=k.rows, args=(block, into(out, M)), meta=meta, ulp=ulp, reason=reason),
        Probe(name=f"columns-{tag}", kernel=k.columns, args=(block, into(out, W)), meta=meta, ulp=ulp, reason=reason),
        Probe(name=f"whole-{tag}", kernel=k.whole, args=(of(dtype, fill, 512), into(out, 1)), meta={"N": 512, "FN": fn}, ulp=ulp, reason=reason),
    ]  # fmt: skip


def reductions() -> list[Probe]:
    """Sums, extremes and custom reductions."""
    made: list[Probe] = []
    for dtype in ("float32", "bfloat16", "float16"):
        made += reduced(b.total, dtype, "counts", dtype)
        made += reduced(b.total, dtype, "normal", dtype, 1, ORDER)
        made += reduced(b.largest, dtype, "special", "float32")
        made += reduced(b.smallest, dtype, "normal", "float32")
        made += reduced(b.where_largest, dtype, "ties", "int32")
        made += reduced(b.where_smallest, dtype, "normal", "int32")
    made += reduced(b.total_float32, "bfloat16", "normal", "float32", 1, ORDER)
    for dtype, out in (("int8", "int32"), ("uint8", "uint32"), ("int32", "int32")):
        made += reduced(b.total, dtype, "full", out)
        made += reduced(b.largest, dtype, "full", "int32")
    made += reduced(b.parity, "int32", "full", "int32")
    made += reduced(b.product, "float32", "powers", "float32")
    made += reduced(b.product, "bfloat16", "powers", "bfloat16")
    made += reduced(b.variance, "float32", "counts", "float32", 2, ORDER)
    meta = {"M": M, "N": W}
    for dtype in ("float32", "bfloat16", "float16"):
        made.append(
            Probe(
                name=f"softmax-{dtype}", kernel=b.softmax_rows, meta=meta, ulp=2, reason=APPROX,
                args=(of(dtype, "normal", M, W), into("float32", M, W)),
            )  # fmt: skip
        )
        made.append(
            Probe(
                name=f"sum_all-{dtype}", kernel=b.sum_all, meta=meta,
                args=(of(dtype, "counts", M, W), into("float32", 1)),
            )  # fmt: skip
        )
    made.append(
        Probe(
            name="best_pair-float32", kernel=b.best_pair, meta=meta,
            args=(of("float32", "ties", M, W), into("float32", M), into("int32", M)),
        )  # fmt: skip
    )
    return made


def scans() -> list[Probe]:
    """Prefix operations, sorting, and block shuffles."""
    made = []
    rows: tuple[tuple[Any, str, str, str, int, str], ...] = (
        (b.running_sum, "float32", "counts", "float32", 0, ""),
        (b.running_sum, "float32", "positive", "float32", 2, ORDER),
        (b.running_sum, "bfloat16", "ties", "bfloat16", 0, ""),
        (b.running_sum, "float16", "counts", "float16", 0, ""),
        (b.running_sum, "int32", "full", "int32", 0, ""),
        (b.running_sum, "int8", "full", "int32", 0, ""),
        (b.running_sum_down, "float32", "counts", "float32", 0, ""),
        (b.running_sum_back, "float32", "counts", "float32", 0, ""),
        (b.running_sum_back, "int32", "full", "int32", 0, ""),
        (b.running_product, "float32", "powers", "float32", 0, ""),
        (b.running_product, "int32", "full", "int32", 0, ""),
        (b.running_max, "float32", "normal", "float32", 0, ""),
        (b.running_max, "bfloat16", "normal", "bfloat16", 0, ""),
        (b.recurrence, "float32", "counts", "float32", 1, ORDER),
        (b.sorted_up, "float32", "normal", "float32", 0, ""),
        (b.sorted_up, "bfloat16", "normal", "bfloat16", 0, ""),
        (b.sorted_down, "int32", "full", "int32", 0, ""),
        (b.sorted_down, "float16", "ties", "float16", 0, ""),
        (b.turned, "bfloat16", "normal", "bfloat16", 0, ""),
        (b.turned, "float32", "normal", "float32", 0, ""),
        (b.transposed_sum, "bfloat16", "normal", "bfloat16", 0, ""),
    )
    meta = {"M": M, "N": W}
    for fn, dtype, fill, out, ulp, reason in rows:
        made.append(
            Probe(
                name=f"{fn.__name__}-{dtype}-{fill}", kernel=k.scan, meta={**meta, "FN": fn},
                args=(of(dtype, fill, M, W), into(out, M, W)), ulp=ulp, reason=reason,
            )  # fmt: skip
        )
    for dtype in ("float32", "bfloat16", "int32"):
        made.append(Probe(name=f"topk-{dtype}", kernel=b.best_four, meta=meta, args=(of(dtype, "counts", M, W), into(dtype, M, 4))))  # fmt: skip
        made.append(Probe(name=f"gather-{dtype}", kernel=b.gathered, meta=meta, args=(of(dtype, "counts", M, W), of("int32", f"index:{W}", M, W), into(dtype, M, W))))  # fmt: skip
        made.append(Probe(name=f"join-{dtype}", kernel=b.joined, meta={"N": W}, args=(of(dtype, "counts", W), of(dtype, "counts", W), into(dtype, 2 * W))))  # fmt: skip
        made.append(Probe(name=f"interleave-{dtype}", kernel=b.interleaved, meta={"N": W}, args=(of(dtype, "counts", W), of(dtype, "counts", W), into(dtype, 2 * W))))  # fmt: skip
    made.append(Probe(name="histogram", kernel=b.counted, meta={"N": 512, "BINS": 16}, args=(of("int32", "index:16", 512), into("int32", 16))))  # fmt: skip
    return made


def products() -> list[Probe]:
    """Matrix products by input dtype and precision."""
    made = []
    rows = (
        ("bfloat16", "float32", "counts", "", 0, ""), ("bfloat16", "float32", "normal", "", 1, TENSOR),
        ("float16", "float32", "counts", "", 0, ""), ("float16", "float32", "normal", "", 1, TENSOR),
        ("float16", "float16", "counts", "half", 0, ""), ("float16", "float16", "normal", "half", 1, TENSOR),
        ("float32", "float32", "counts", "", 0, ""), ("float32", "float32", "normal", "", 1, TENSOR),
        ("float32", "float32", "normal", "ieee", 1, ORDER), ("float32", "float32", "normal", "tf32x3", 1, TENSOR),
        ("int8", "int32", "full", "int", 0, ""), ("float8_e4m3fn", "float32", "counts", "", 0, ""),
        ("float8_e5m2", "float32", "counts", "", 0, ""), ("float8_e4m3fn", "float32", "normal", "", 1, TENSOR),
    )  # fmt: skip
    for dtype, out, fill, how, ulp, reason in rows:
        for inner in (32, 64):
            meta = {"M": 16, "N": 32, "K": inner, "HOW": how}
            made.append(Probe(name=f"dot-{dtype}-{fill}-{how or 'default'}-{inner}", kernel=b.dot, meta=meta, args=(of(dtype, fill, 16, inner), of(dtype, fill, inner, 32), into(out, 16, 32)), ulp=ulp, reason=reason))  # fmt: skip
    for dtype in ("bfloat16", "float16", "float32"):
        made.append(Probe(name=f"dot_loop-{dtype}", kernel=b.dot_loop, meta={"M": 16, "N": 16, "K": 96, "STEP": 32}, args=(of(dtype, "counts", 16, 96), of(dtype, "counts", 96, 16), into("float32", 16, 16))))  # fmt: skip
    return made


def controls() -> list[Probe]:
    """Masks, promotion of run-time scalars, control flow, descriptors and block pointers."""
    made = []
    line = {"N": W}
    for dtype in ("float32", "bfloat16", "float16"):
        for tag, other in (("zero", 0.0), ("nan", float("nan")), ("minus_inf", float("-inf"))):
            made.append(Probe(name=f"masked-{dtype}-{tag}", kernel=b.masked, meta={**line, "OTHER": other}, args=(of(dtype, "normal", W), into(dtype, W), 37)))  # fmt: skip
        made.append(Probe(name=f"scaled-{dtype}", kernel=b.scaled, meta=line, args=(of(dtype, "normal", W), into("float32", W), 20000.3)))  # fmt: skip
        made.append(Probe(name=f"scaled_and_halved-{dtype}", kernel=b.scaled_and_halved, meta=line, args=(of(dtype, "normal", W), into(dtype, W), 20000.3)))  # fmt: skip
        made.append(Probe(name=f"scalar_cast-{dtype}", kernel=b.scalar_cast, meta=line, args=(of(dtype, "normal", W), into(dtype, W), 0.1)))  # fmt: skip
        made.append(Probe(name=f"branches-{dtype}", kernel=b.branches, meta=line, grid=(4,), args=(of(dtype, "normal", 4, W), into(dtype, 4, W), 5)))  # fmt: skip
        made.append(Probe(name=f"loop_half-{dtype}", kernel=b.loop_half, meta=line, args=(of(dtype, "normal", 9, W), into(dtype, W), 9)))  # fmt: skip
        made.append(Probe(name=f"descriptor-{dtype}", kernel=b.descriptor_copy, meta={"M": 20, "N": 40, "B": 16}, grid=(2, 3), args=(of(dtype, "normal", 20, 40), into(dtype, 20, 40))))  # fmt: skip
        if hasattr(tl, "make_block_ptr"):
            made.append(Probe(name=f"block_pointer-{dtype}", kernel=b.block_pointer_copy, meta={"M": 20, "N": 40, "B": 16}, grid=(2,), args=(of(dtype, "normal", 20, 40), into(dtype, 20, 40))))  # fmt: skip
    made.append(Probe(name="masked_store", kernel=b.masked_store, meta=line, args=(of("float32", "normal", W), into("float32", W), 21)))  # fmt: skip
    made.append(Probe(name="mask_and_scalar", kernel=b.mask_and_scalar, meta=line, args=(of("float32", "normal", W), into("float32", W), 40, 3)))  # fmt: skip
    made.append(Probe(name="one_lane_other", kernel=b.one_lane_other, meta=line, grid=(8,), args=(of("float32", "normal", 8), into("float32", 8), 5)))  # fmt: skip
    made.append(Probe(name="masked-int32", kernel=b.masked, meta={**line, "OTHER": -7}, args=(of("int32", "full", W), into("int32", W), 37)))  # fmt: skip
    for dtype in ("int8", "int16", "int32"):
        made.append(Probe(name=f"narrow_index-{dtype}", kernel=b.narrow_index, meta=line, args=(of(dtype, "full", W), into(dtype, W), 5)))  # fmt: skip
    return made


def atomics() -> list[Probe]:
    """Atomic operations whose result does not depend on the order of the lanes."""
    made = []
    rows = (
        ("add", "float32"), ("add", "bfloat16"), ("add", "float16"), ("add", "int32"),
        ("max", "float32"), ("min", "float32"), ("max", "int32"), ("min", "int32"),
        ("and", "int32"), ("or", "int32"), ("xor", "int32"), ("add", "int64"),
    )  # fmt: skip
    for op, dtype in rows:
        fill = "counts" if op in ("add", "max", "min") else "full"
        target = Tensor(dtype=dtype, shape=(16,), fill="counts", out=True)
        made.append(Probe(name=f"atomic-{op}-{dtype}", kernel=b.atomic, meta={"N": W, "OP": op}, grid=(2,), args=(of(dtype, fill, 2 * W), of("int32", "index:16", 2 * W), target)))  # fmt: skip
    for op, dtype in (("add", "float32"), ("add", "int32"), ("xchg", "int32"), ("xchg", "float32"), ("cas", "int32")):  # fmt: skip
        target = Tensor(dtype=dtype, shape=(W,), fill="counts", out=True)
        made.append(Probe(name=f"atomic_old-{op}-{dtype}", kernel=b.atomic_old, meta={"N": W, "OP": op}, args=(of(dtype, "counts", W), target, into(dtype, W))))  # fmt: skip
    return made


PROBES: tuple[Probe, ...] = tuple(
    floats() + casts() + ints() + maths() + reductions() + scans() + products() + controls() + atomics()
)
"""Every probe."""
