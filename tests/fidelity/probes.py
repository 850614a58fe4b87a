"""The probe table: which kernel runs on which dtypes and values, and how equal it must be.

`ulp` is 0 (bit-equal; any NaN equals any NaN) unless `reason` says why the interpreter may be off
by one unit of the last place.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import kernels as k
import kernels_math as f
import triton.language as tl
from values import Tensor

N = 128
"""Elements of an elementwise probe."""

DOUBLES = "the device library's double precision, which ends within an ulp of the exact value"


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """One launch whose outputs are compared with the GPU's."""

    name: str
    """Unique name, also the stream of its values."""
    kernel: Any
    """The jit function to launch."""
    args: tuple[Any, ...]
    """Tensors and scalars in order."""
    meta: Mapping[str, Any] = field(default_factory=dict)
    """Constexprs."""
    grid: tuple[int, ...] = (1,)
    """Programs."""
    ulp: int = 0
    """Allowed distance in units of the last place of the output dtype."""
    reason: str = ""
    """Why `ulp` is not 0."""


def into(dtype: str, *shape: int) -> Tensor:
    """Return an output of zeros."""
    return Tensor(dtype=dtype, shape=shape or (N,), fill="zero", out=True)


def of(dtype: str, fill: str = "normal", *shape: int) -> Tensor:
    """Return an input."""
    return Tensor(dtype=dtype, shape=shape or (N,), fill=fill)


def shell(
    kernel: Any, fn: Any, ins: tuple[Tensor, ...], out: str, ulp: int = 0, reason: str = "",
    tag: str = "",
) -> Probe:  # fmt: skip
    """Return a probe of one operation on blocks of N elements."""
    name = "-".join([fn.__name__, *(t.dtype for t in ins[:1]), *([tag] if tag else [])])
    if out != ins[0].dtype:
        name += f"-{out}"
    return Probe(
        name=name, kernel=kernel, args=(*ins, into(out)), meta={"N": N, "FN": fn}, ulp=ulp,
        reason=reason,
    )  # fmt: skip


def floats() -> list[Probe]:
    """Arithmetic and comparison of float blocks."""
    made = []
    for dtype in ("bfloat16", "float16", "float32"):
        pair = (of(dtype), of(dtype))
        odd = (of(dtype, "special"), of(dtype, "special"))
        for fn in (k.add, k.sub, k.mul):
            made.append(shell(k.binary, fn, pair, dtype))
            made.append(shell(k.binary, fn, odd, dtype, tag="special"))
        made.append(shell(k.binary, k.div, pair, dtype))
        made.append(shell(k.binary, k.rem, pair, "float32"))
        made.append(shell(k.unary, k.square_plus, (of(dtype),), dtype))
        made.append(shell(k.ternary, k.mul_add, (*pair, of(dtype, "positive")), dtype))
        made.append(shell(k.ternary, k.fused, (*pair, of(dtype)), dtype))
        for fn in (k.minimum, k.maximum, k.maximum_nan, k.minimum_nan, k.select):
            made.append(shell(k.binary, fn, odd, dtype))
        for fn in (k.less, k.greater_equal, k.equal, k.not_equal):
            ties = (of(dtype, "ties"), of(dtype, "ties"))
            made.append(shell(k.binary, fn, ties, "int8"))
            made.append(shell(k.binary, fn, odd, "int8", tag="special"))
        for fn in (k.negate, k.absolute, k.clamped, k.add_one, k.times_third):
            made.append(shell(k.unary, fn, odd[:1], dtype))
        made.append(shell(k.unary, k.relu_chain, (of(dtype),), dtype))
        made.append(shell(k.binary, k.both, odd, "int8"))
        made.append(shell(k.unary, k.flipped, odd[:1], "int8"))
    return made


CASTS = (
    "float32 bfloat16", "float32 float16", "float32 float8_e4m3fn", "float32 float8_e5m2",
    "float32 int8", "float32 uint8", "float32 int16", "float32 int32", "float32 uint32",
    "float32 int64", "float32 float64", "float64 float32", "float64 bfloat16", "float64 float16",
    "bfloat16 float32", "bfloat16 float16", "bfloat16 int32", "bfloat16 float8_e4m3fn",
    "bfloat16 float8_e5m2", "float16 float32", "float16 bfloat16", "float16 int32",
    "float16 float8_e4m3fn", "float16 float8_e5m2", "float8_e4m3fn float32",
    "float8_e4m3fn bfloat16", "float8_e4m3fn float16", "float8_e5m2 float32",
    "float8_e5m2 bfloat16", "float8_e5m2 float16", "int32 bfloat16", "int32 float16",
    "int32 float32", "int64 float32", "int64 bfloat16", "uint32 float32", "uint8 bfloat16",
    "int8 float16", "int32 int8", "int32 uint8", "int64 int32", "int8 int32", "uint8 int32",
    "int16 int64", "uint8 int8", "uint32 int64", "int32 float64",
)  # fmt: skip

TRITON = {
    "bfloat16": tl.bfloat16, "float16": tl.float16, "float32": tl.float32, "float64": tl.float64,
    "float8_e4m3fn": tl.float8e4nv, "float8_e5m2": tl.float8e5, "int8": tl.int8,
    "uint8": tl.uint8, "int16": tl.int16, "uint16": tl.uint16, "int32": tl.int32,
    "uint32": tl.uint32, "int64": tl.int64,
}  # fmt: skip


def casts() -> list[Probe]:
    """Conversions, with ties, subnormals, range ends and non-finite values."""
    made = []
    for pair in CASTS:
        source, target = pair.split()
        fill = "special" if source.startswith(("float", "bfloat")) else "full"
        made.append(
            Probe(
                name=f"cast-{source}-{target}",
                kernel=k.cast,
                args=(of(source, fill), into(target)),
                meta={"N": N, "TO": TRITON[target]},
            )
        )
    for target in ("bfloat16", "float16"):
        made.append(
            Probe(
                name=f"cast_rtz-float32-{target}",
                kernel=k.cast_rtz,
                args=(of("float32", "special"), into(target)),
                meta={"N": N, "TO": TRITON[target]},
            )
        )
    for source, target in (("float32", "int32"), ("bfloat16", "uint16"), ("int32", "float32")):
        fill = "full" if source == "int32" else "special"
        made.append(
            Probe(
                name=f"bits-{source}-{target}",
                kernel=k.bits,
                args=(of(source, fill), into(target)),
                meta={"N": N, "TO": TRITON[target]},
            )
        )
    return made


def ints() -> list[Probe]:
    """Integer semantics: wrap, truncation, shifts, bit operations."""
    made = []
    for dtype in ("int8", "uint8", "int16", "int32", "uint32", "int64"):
        pair = (of(dtype, "full"), of(dtype, "full"))
        wide = dtype in ("int32", "uint32", "int64")
        for fn in (k.add, k.sub, k.mul, k.bit_and, k.bit_xor, k.minimum, k.maximum):
            made.append(shell(k.binary, fn, pair, dtype))
        made += [shell(k.binary, fn, pair, dtype) for fn in (k.shift_left, k.shift_right)]
        made.append(shell(k.unary, k.bit_not, pair[:1], dtype))
        made.append(shell(k.binary, k.less, pair, "int8"))
        if wide:
            over = (of(dtype, "full"), of(dtype, "divisor"))
            made += [shell(k.binary, fn, over, dtype) for fn in (k.floordiv, k.rem)]
            made.append(shell(k.binary, k.umulhi, pair, dtype))
    made.append(shell(k.unary, k.negate, (of("int32", "full"),), "int32"))
    made.append(shell(k.unary, k.absolute, (of("int32", "counts"),), "int32"))
    made.append(shell(k.binary, k.bit_or, (of("int32", "full"), of("int32", "full")), "int32"))
    index = (of("int32", "index:97"), of("int32", "divisor"))
    made.append(shell(k.binary, k.ceil_div, (index[0], of("int32", "powers")), "int32"))
    made.append(shell(k.binary, k.int_truediv, index, "float32"))
    tiles = (of("int32", "index:8"), of("int32", "index:8"))
    made.append(shell(k.binary, k.swizzled, tiles, "int32"))
    made.append(shell(k.unary, k.random_uniform, (of("int32", "range"),), "float32"))
    made.append(shell(k.unary, k.random_bits, (of("int32", "range"),), "int32"))
    made.append(shell(k.unary, k.random_normal, (of("int32", "range"),), "float32"))
    return made


def maths() -> list[Probe]:
    """Functions of fp32 (and some of fp64 and 16 bits)."""
    made = []
    rows = (
        (f.exp, "normal"), (f.exp2, "normal"), (f.log, "positive"), (f.log2, "positive"),
        (f.sin, "wide"), (f.cos, "wide"), (f.sqrt, "positive"), (f.sqrt_rn, "positive"),
        (f.rsqrt, "positive"), (f.erf, "normal"), (f.floor, "special"), (f.ceil, "special"),
        (f.sigmoid, "normal"), (f.dev_tanh, "normal"), (f.dev_exp, "normal"),
        (f.dev_expm1, "unit"), (f.dev_log, "positive"), (f.dev_rint, "special"),
        (f.dev_round, "special"), (f.dev_trunc, "special"), (f.dev_erf, "normal"),
        (f.dev_rsqrt, "positive"), (f.dev_fast_exp, "normal"), (f.dev_asin, "unit"),
        (f.dev_cosh, "normal"), (f.dev_log1p, "positive"),
    )  # fmt: skip
    for fn, fill in rows:
        made.append(shell(k.unary, fn, (of("float32", fill),), "float32"))
    for fn in (f.exp, f.exp2, f.dev_tanh):
        made.append(shell(k.unary, fn, (of("float64"),), "float64", 1, DOUBLES))
    for fn, fill in ((f.log, "positive"), (f.sqrt, "positive"), (f.floor, "normal")):
        made.append(shell(k.unary, fn, (of("float64", fill),), "float64"))
    for fn in (f.exp, f.log, f.exp2, f.rsqrt, f.sqrt):
        made.append(shell(k.unary, fn, (of("float32", "special"),), "float32", tag="special"))
    flags = (of("float32", "special"),)
    made += [shell(k.unary, fn, flags, "int8") for fn in (f.dev_isnan, f.dev_isinf)]
    pair = (of("float32"), of("float32", "positive"))
    made.append(shell(k.binary, f.fdiv, pair, "float32"))
    made.append(shell(k.binary, f.div_rn, pair, "float32"))
    made.append(shell(k.binary, f.dev_fmod, pair, "float32"))
    made.append(shell(k.binary, f.dev_atan2, pair, "float32"))
    made.append(shell(k.binary, f.dev_pow, (pair[1], of("float32")), "float32"))
    return made
