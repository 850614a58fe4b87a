"""libdevice by symbol: `__nv_tanhf` and its kin as NumPy functions.

The values are computed in float64 and rounded once, which is within the ulp that the GPU's device
library promises. A symbol that is not here is `Unsupported` by name.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from gate.dtypes import Array
from gate.run.faithful import devicelib, directed, maths, units
from gate.run.faithful.fma import fused
from gate.run.faithful.formats import SIGNED, UNSIGNED, float_to_int
from gate.run.faithful.unsupported import Unsupported

Function = Callable[..., Any]

_64 = maths.through_float64


def _scalar(op: Callable[..., float], count: int = 1) -> Function:
    """Return a function of the C library over arrays, in float64; errors become NaN or Inf."""

    def safe(*args: float) -> float:
        try:
            return op(*args)
        except OverflowError:
            return math.inf
        except ValueError:
            return math.nan

    return _64(lambda *args: np.frompyfunc(safe, count, 1)(*args).astype(np.float64))


def _round_away(x: Array) -> Array:
    """Round halves away from zero, exactly."""
    whole = np.trunc(x)
    return np.where(np.abs(x - whole) >= 0.5, whole + np.copysign(1.0, x), whole)


def _fast_exp(x: Array) -> Array:
    return units.ex2(x * np.float32(1.4426950408889634))


def _lgamma(x: float) -> float:
    return math.inf if x <= 0 and x == math.floor(x) else math.lgamma(x)


def _normcdf(x: float) -> float:
    return 0.5 * math.erfc(-x / math.sqrt(2.0))


def _normcdfinv(p: float) -> float:
    """Return the normal quantile by Newton steps on the normal distribution function."""
    if not 0.0 < p < 1.0:
        return -math.inf if p == 0 else math.inf if p == 1 else math.nan
    low, high = -40.0, 40.0
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if _normcdf(middle) < p else (low, middle)
    return (low + high) / 2


def _erfinv(y: float) -> float:
    if abs(y) >= 1:
        return math.copysign(math.inf, y) if abs(y) == 1 else math.nan
    low, high = -7.0, 7.0
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if math.erf(middle) < y else (low, middle)
    return (low + high) / 2


_PLAIN: dict[str, Function] = {
    "tan": np.tan, "acos": np.arccos,
    "atan": np.arctan, "sinh": np.sinh,
    "asinh": np.arcsinh, "acosh": np.arccosh, "atanh": np.arctanh,
    "log10": np.log10,
    "cbrt": np.cbrt, "hypot": np.hypot,
    "exp10": lambda x: np.power(10.0, x),
    "rcbrt": lambda x: 1.0 / np.cbrt(x), "rhypot": lambda x, y: 1.0 / np.hypot(x, y),
    "sinpi": lambda x: np.sin(np.pi * np.fmod(x, 2.0)),
    "cospi": lambda x: np.cos(np.pi * np.fmod(x, 2.0)),
    "fmod": np.fmod, "remainder": lambda x, y: x - y * np.rint(x / y),
    "norm3d": lambda x, y, z: np.sqrt(x * x + y * y + z * z),
    "rnorm3d": lambda x, y, z: 1.0 / np.sqrt(x * x + y * y + z * z),
    "norm4d": lambda x, y, z, w: np.sqrt(x * x + y * y + z * z + w * w),
    "rnorm4d": lambda x, y, z, w: 1.0 / np.sqrt(x * x + y * y + z * z + w * w),
    "fdim": lambda x, y: np.where(x > y, x - y, np.where(np.isnan(x) | np.isnan(y), x + y, 0.0)),
    "powi": lambda x, n: np.power(x, n), "cyl_bessel_i0": np.i0,
}  # fmt: skip

_EXACT: dict[str, Function] = {
    "tanh": maths.tanh, "asin": maths.asin, "sin": maths.sin, "cos": maths.cos,
    "log": maths.log, "log2": maths.log2, "erf": maths.erf, "exp2": maths.exp2,
    "exp": maths.stepwise(devicelib.exp, np.exp),
    "expm1": maths.stepwise(devicelib.expm1, np.expm1),
    "cosh": maths.stepwise(devicelib.cosh, np.cosh),
    "pow": maths.stepwise(devicelib.pow, np.power),
    "log1p": maths.stepwise(devicelib.log1p, np.log1p),
    "atan2": maths.stepwise(devicelib.atan2, np.arctan2),
    "sqrt": maths.sqrt, "rsqrt": maths.rsqrt,
    "floor": maths.floor, "ceil": maths.ceil, "trunc": np.trunc, "rint": np.rint,
    "nearbyint": np.rint, "round": _round_away, "fabs": np.abs, "abs": np.abs, "llabs": np.abs,
    "copysign": np.copysign, "nextafter": np.nextafter, "logb": lambda x: np.frexp(x)[1] - 1.0,
    "fma": fused, "fmaf_rn": fused, "fma_rn": fused,
    "saturatef": lambda x: np.clip(np.nan_to_num(x, nan=0.0), 0, 1).astype(x.dtype),
    "fast_fdividef": np.divide, "fadd_rn": np.add, "dadd_rn": np.add, "fsub_rn": np.subtract,
    "dsub_rn": np.subtract, "fmul_rn": np.multiply, "dmul_rn": np.multiply, "fdiv_rn": np.divide,
    "ddiv_rn": np.divide, "fsqrt_rn": np.sqrt, "dsqrt_rn": np.sqrt,
    "frcp_rn": lambda x: (1 / x.astype(np.float64)).astype(x.dtype), "drcp_rn": lambda x: 1 / x,
    "frsqrt_rn": _64(lambda x: 1 / np.sqrt(x)), "fast_expf": _fast_exp,
    "fast_exp10f": _64(_PLAIN["exp10"]), "fast_logf": _64(np.log), "fast_log2f": _64(np.log2),
    "fast_log10f": _64(np.log10), "fast_sinf": _64(np.sin), "fast_cosf": _64(np.cos),
    "fast_tanf": _64(np.tan), "fast_powf": _64(np.power),
}  # fmt: skip

_BY_C: dict[str, Function] = {
    "erfc": _scalar(math.erfc), "tgamma": _scalar(math.gamma),
    "lgamma": _scalar(_lgamma), "normcdf": _scalar(_normcdf), "erfinv": _scalar(_erfinv),
    "normcdfinv": _scalar(_normcdfinv),
    "erfcinv": _scalar(lambda y: -_normcdfinv(y / 2) / math.sqrt(2.0)),
    "erfcx": _scalar(lambda x: math.exp(x * x) * math.erfc(x)),
}  # fmt: skip


def _flag(op: Function) -> Function:
    return lambda x: op(x).astype(np.int32)


_FLAGS: dict[str, Function] = {
    "isnanf": _flag(np.isnan), "isnand": _flag(np.isnan), "isinff": _flag(np.isinf),
    "isinfd": _flag(np.isinf), "finitef": _flag(np.isfinite), "isfinited": _flag(np.isfinite),
    "signbitf": _flag(np.signbit), "signbitd": _flag(np.signbit),
    "ilogb": lambda x: (np.frexp(x)[1] - 1).astype(np.int32),
    "ilogbf": lambda x: (np.frexp(x)[1] - 1).astype(np.int32),
    "ldexp": np.ldexp, "ldexpf": np.ldexp, "scalbn": np.ldexp, "scalbnf": np.ldexp,
}  # fmt: skip


def _popcount(x: Array) -> Array:
    return np.asarray(np.bitwise_count(x.view(UNSIGNED[x.dtype.itemsize]))).astype(np.int32)


def _leading_zeros(x: Array) -> Array:
    bits = x.dtype.itemsize * 8
    left = x.view(UNSIGNED[x.dtype.itemsize]).copy()
    for shift in (1, 2, 4, 8, 16, 32):
        if shift < bits:
            left |= left >> left.dtype.type(shift)
    return np.asarray(bits - np.bitwise_count(left)).astype(np.int32)


def _first_set(x: Array) -> Array:
    low = x & -x
    return np.where(x == 0, 0, x.dtype.itemsize * 8 - _leading_zeros(low)).astype(np.int32)


def _reversed_bits(x: Array) -> Array:
    raw = x.view(UNSIGNED[x.dtype.itemsize])
    bits = np.unpackbits(raw.astype(raw.dtype.newbyteorder(">"))[..., None].view(np.uint8), axis=-1)
    packed = np.packbits(bits[..., ::-1], axis=-1)
    big = packed.view(raw.dtype.newbyteorder(">"))
    return big[..., 0].astype(raw.dtype).view(x.dtype)


def _high(kind: Any) -> Function:
    def high(a: Array, b: Array) -> Array:
        wide = np.frompyfunc(lambda p, q: (int(p) * int(q)) >> (8 * kind.itemsize), 2, 1)
        return np.asarray(wide(a, b)).astype(kind)

    return high


def _byte_perm(a: Array, b: Array, chosen: Array) -> Array:
    """Return four of the eight bytes of (a, b), each chosen by a nibble."""
    both = a.view(np.uint32).astype(np.uint64) | (b.view(np.uint32).astype(np.uint64) << 32)
    made = np.zeros_like(both)
    for place in range(4):
        at = (chosen.view(np.uint32).astype(np.uint64) >> np.uint64(4 * place)) & np.uint64(7)
        made |= ((both >> (8 * at)) & np.uint64(0xFF)) << np.uint64(8 * place)
    return made.astype(np.uint32).view(np.int32)


_INTEGERS: dict[str, Function] = {
    "popc": _popcount, "popcll": _popcount, "clz": _leading_zeros, "clzll": _leading_zeros,
    "ffs": _first_set, "ffsll": _first_set, "brev": _reversed_bits, "brevll": _reversed_bits,
    "mulhi": _high(SIGNED[4]), "mul64hi": _high(SIGNED[8]), "umulhi": _high(UNSIGNED[4]),
    "umul64hi": _high(UNSIGNED[8]), "mul24": np.multiply, "umul24": np.multiply,
    "sad": lambda a, b, c: np.abs(a.astype(np.int64) - b) .astype(a.dtype) + c,
    "usad": lambda a, b, c: (np.maximum(a, b) - np.minimum(a, b)) + c,
    "byte_perm": _byte_perm, "double2hiint": lambda x: (x.view(np.int64) >> 32).astype(np.int32),
    "double2loint": lambda x: x.view(np.int64).astype(np.int32),
    "hiloint2double": lambda high, low: (
        (high.astype(np.int64) << 32) | low.view(np.uint32).astype(np.int64)
    ).view(np.float64),
    "hadd": lambda a, b: ((a.astype(np.int64) + b) >> 1).astype(a.dtype),
    "uhadd": lambda a, b: ((a.astype(np.int64) + b) >> 1).astype(a.dtype),
    "rhadd": lambda a, b: ((a.astype(np.int64) + b + 1) >> 1).astype(a.dtype),
    "urhadd": lambda a, b: ((a.astype(np.int64) + b + 1) >> 1).astype(a.dtype),
}  # fmt: skip

_DIRECTIONS = {"rd": np.floor, "ru": np.ceil, "rz": np.trunc, "rn": np.rint}

_WIDTHS = {"int": "int32", "uint": "uint32", "ll": "int64", "ull": "uint64"}


def _conversion(name: str) -> Function | None:
    """Return `float2int_rn` and its kin, or a cast by bits."""
    casts = {
        "float_as_int": np.int32, "float_as_uint": np.uint32, "int_as_float": np.float32,
        "uint_as_float": np.float32, "double_as_longlong": np.int64,
        "longlong_as_double": np.float64,
    }  # fmt: skip
    if name in casts:
        return lambda x: x.view(casts[name])
    head, _, way = name.rpartition("_")
    source, _, target = head.partition("2")
    if way not in _DIRECTIONS or not target:
        return None
    if source in ("float", "double") and target in _WIDTHS:
        return lambda x: float_to_int(_DIRECTIONS[way](x.astype(np.float64)), _WIDTHS[target])
    if source in _WIDTHS and target in ("float", "double") and way == "rn":
        return lambda x: x.astype(np.float32 if target == "float" else np.float64)
    if (source, target, way) == ("double", "float", "rn"):
        return lambda x: x.astype(np.float32)
    return None


def function(symbol: str) -> Function:
    """Return the NumPy function of a libdevice or ocml symbol.

    Raises
        Unsupported  no such function is emulated
    """
    name = symbol.removeprefix("__nv_")
    if name.startswith("__ocml_"):
        name = name.removeprefix("__ocml_").rsplit("_", 1)[0]
    for table in (_EXACT, _FLAGS, _INTEGERS):
        if name in table:
            return table[name]
    if name in ("llrint", "llrintf", "llround", "llroundf"):
        way = np.rint if "rint" in name else _round_away
        return lambda x: float_to_int(way(x.astype(np.float64)), "int64")
    base = name if name in _PLAIN or name in _BY_C else name.removesuffix("f")
    if base in _PLAIN:
        return _64(_PLAIN[base])
    if base in _EXACT:
        return _EXACT[base]
    if base in _BY_C:
        return _BY_C[base]
    found = directed.function(name) or _conversion(name)
    if found is None:
        raise Unsupported(f"the device function `{symbol}` is not emulated in the interpreter")
    return found
