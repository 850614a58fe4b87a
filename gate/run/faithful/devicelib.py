"""Functions of NVIDIA's device library in float32, by the steps that it takes on a GPU.

Each is the fused multiply-adds, roundings and calls of the special function unit (`units`) that
the machine code for sm_90 holds. Source: the disassembly of what Triton 3.6 compiles.
"""

from __future__ import annotations

import math

import numpy as np

from gate.dtypes import Array
from gate.run.faithful import units
from gate.run.faithful.fma import fused

_LOG2E = np.float32(1.4426950408889634)
_LN2 = np.float32(0.6931471805599453)
_TINY = np.float32(2.0**-126)
_SLOW = np.float32(105615.0)
"""Where sines and cosines change to the exact reduction of their argument."""


def flushed(data: Array) -> Array:
    """Return float32 values with subnormal ones made zero, the sign kept."""
    return np.where(np.abs(data) < _TINY, np.copysign(np.float32(0), data), data)


def _float32(*bits: int) -> tuple[np.float32, ...]:
    return tuple(np.array(bits, dtype=np.uint32).view(np.float32))


def _rounded(*values: float) -> tuple[np.float32, ...]:
    return tuple(np.float32(value) for value in values)


def _fma(x: Array, y: Array | np.float32, z: Array | np.float32) -> Array:
    made: Array = fused(x, _full(y, x), _full(z, x))
    return made


def _full(value: Array | np.float32, like: Array) -> Array:
    return value if isinstance(value, np.ndarray) else np.full_like(like, value)


def _polynomial(x: Array, coefficients: tuple[np.float32, ...]) -> Array:
    """Return Horner's scheme in fused multiply-adds, the highest power first."""
    total = np.full_like(x, coefficients[0])
    for coefficient in coefficients[1:]:
        total = _fma(total, x, coefficient)
    return total


def _bits(data: Array) -> Array:
    return np.asarray(data, dtype=np.float32, order="C").view(np.int32)


_TANH = _float32(0x3C80F082, 0xBD563CAE, 0x3E085941, 0xBEAAA9ED, 0x00000000)


def tanh(data: Array) -> Array:
    """Return tanh: a polynomial below 0.6, 1 - 2 / (exp(2x) + 1) above it."""
    size = np.abs(flushed(data))
    small = _fma(_polynomial(data * data, _TANH), data, data)
    grown = units.ex2(size * np.float32(2.8853900432586670)) + np.float32(1)
    large = _fma(units.rcp(grown), np.float32(-2), np.float32(1))
    large = np.where(size >= np.float32(9.010913848876953), np.float32(1), large)
    return np.where(size < np.float32(0.6), small, np.copysign(large, data))


_ASIN = _float32(0x3D53F941, 0x3C94D2E9, 0x3D3F841F, 0x3D994929, 0x3E2AAB94)


def asin(data: Array) -> Array:
    """Return the arc sine: a polynomial up to 0.57, pi/2 - 2 asin(sqrt((1 - x) / 2)) above it."""
    size = np.abs(flushed(data))
    above = size > np.float32(0.5699999928474426)
    root = units.sqrt((np.float32(1) - size) * np.float32(0.5))
    x = np.where(above, root, size)
    square = x * x
    near = _fma(square * _polynomial(square, _ASIN), x, x)
    made = np.where(above, _fma(near, np.float32(-2), np.float32(np.pi / 2)), near)
    return np.where(np.isnan(made), made, np.copysign(made, data))


def _split(data: Array, start: int) -> tuple[Array, Array, Array]:
    """Return the exponent and the mantissa less 1 of positive numbers, and what was scaled."""
    low = data < _TINY
    scaled = np.where(low, data * np.float32(2.0**23), data)
    raw = _bits(scaled)
    with np.errstate(over="ignore"):
        exponent = (raw - np.int32(start)) & np.int32(-(1 << 23))
        rest = (raw - exponent).view(np.float32) - np.float32(1)
    lost = np.where(low, np.float32(-23), np.float32(0))
    return _fma(exponent.astype(np.float32), np.float32(2.0**-23), lost), rest, scaled


def _logarithm(made: Array, scaled: Array) -> Array:
    """Return a logarithm with its ends: -Inf at 0, Inf at Inf, NaN below zero."""
    odd = _bits(scaled).view(np.uint32) >= np.uint32(0x7F800000)
    infinity = np.float32(np.inf)
    made = np.where(odd, scaled * infinity + infinity, made)
    return np.where(scaled == 0, -infinity, made)


_LOG = (
    *_float32(0xBE055027),
    *_rounded(
        0.14084610342979431152,
        -0.12148627638816833496,
        0.13980610668659210205,
        -0.16684235632419586182,
        0.20012299716472625732,
        -0.24999669194221496582,
        0.33333182334899902344,
        -0.5,
    ),
)


def log(data: Array) -> Array:
    """Return the natural logarithm."""
    exponent, rest, scaled = _split(data, 0x3F2AAAAB)
    near = _fma(rest, rest * _polynomial(rest, _LOG), rest)
    return _logarithm(_fma(exponent, _LN2, near), scaled)


_LOG2 = (
    *_float32(0x3DC6B27F),
    *_rounded(
        -0.16845393180847167969,
        0.1716887056827545166,
        -0.17900948226451873779,
        0.20512372255325317383,
        -0.24046532809734344482,
        0.28857114911079406738,
        -0.36067417263984680176,
        0.48089820146560668945,
        -0.72134751081466674805,
    ),
)


def log2(data: Array) -> Array:
    """Return the logarithm to base 2."""
    exponent, rest, scaled = _split(data, 0x3F3504F3)
    bent = rest * (rest * _polynomial(rest, _LOG2))
    return _logarithm(exponent + _fma(rest, _LOG2E, bent), scaled)


_TWO_OVER_PI = 0xA2F9836E4E441529FC2757D1F534DDC0DB6295993C439041FE5163ABDEBBC561
"""2 / pi with 256 bits behind the point."""


def _reduced(x: float) -> tuple[int, float]:
    """Return the nearest multiple of pi/2 to a large x, mod 4, and what is left, as float32."""
    if not math.isfinite(x):
        return 0, math.nan
    top, bottom = abs(x).as_integer_ratio()
    whole = top * _TWO_OVER_PI // bottom
    turns = ((whole >> 255) + 1) >> 1
    left = float(whole - (turns << 256)) * 2.0**-256 * (math.pi / 2)
    left = float(np.float32(left))
    return (turns, left) if x >= 0 else (-turns, -left)


_SINE = _float32(0xB94D4153, 0x3C0885E4, 0xBE2AAAA8)
_COSINE = (
    *_float32(0x37CBAC00),
    np.float32(-0.0013887860113754868507),
    *_float32(0x3D2AAABB, 0xBEFFFFFF),
)


def _wave(data: Array, quarter: int) -> Array:
    """Return the sine of x plus a number of quarter turns."""
    calm = np.where(np.abs(data) < _SLOW, data, np.float32(0))
    turns = np.rint(calm * np.float32(0.63661974668502807617))
    left = _fma(turns, np.float32(-1.5707962512969970703), calm)
    left = _fma(turns, np.float32(-7.5497894158615963534e-08), left)
    left = _fma(turns, np.float32(-5.3903029534742383927e-15), left)
    count = turns.astype(np.int64)
    far = ~(np.abs(data) < _SLOW)
    if far.any():
        parts = [_reduced(float(x)) for x in data[far]]
        count[far] = [turn % 4 for turn, _ in parts]
        left[far] = [rest for _, rest in parts]
    count = count + quarter
    square = left * left
    odd = (count & 1) == 1
    start = np.where(odd, np.float32(1), left)
    bent = np.where(odd, _polynomial(square, _COSINE), _polynomial(square, _SINE))
    made = _fma(_fma(square, start, np.float32(0)), bent, start)
    return np.where((count & 2) == 2, -made, made)


def sin(data: Array) -> Array:
    """Return the sine."""
    return _wave(np.asarray(data), 0)


def cos(data: Array) -> Array:
    """Return the cosine."""
    return _wave(np.asarray(data), 1)


_ERF_NEAR = _float32(
    0x38B1E96A, 0xBA574D20, 0x3BAAD5EA, 0xBCDC1BE7, 0x3DE718AF, 0xBEC093AC, 0x3E0375D3
)
_ERF_FAR = _float32(
    0x3789CA3C, 0xB9F560B9, 0x3BAC840B, 0xBD0C8162, 0x3E1CF906, 0x3F6A937E, 0x3F20D842
)


def erf(data: Array) -> Array:
    """Return the error function: a polynomial near 0, 1 - 2**p(x) further out."""
    size = np.abs(data)
    far = size >= np.float32(1.0029599666595459)
    near = _fma(_polynomial(data * data, _ERF_NEAR), data, data)
    with np.errstate(over="ignore", invalid="ignore"):
        power = _fma(_polynomial(size, _ERF_FAR), -size, -size)
    tail = np.float32(1) - units.ex2(power)
    return np.where(far, np.copysign(tail, data), near)


def exp(data: Array) -> Array:
    """Return e**x: 2 to the fraction of x * log2(e), scaled by a power of two."""
    scale = _float32(0x3BBB989D)[0]
    held = np.clip(_fma(data, scale, np.float32(0.5)), np.float32(0), np.float32(1))
    held = np.where(held == held, held, np.float32(0))
    whole = np.floor(held.astype(np.float64) * 252 + 12582913).astype(np.float32)
    left = _fma(data, _LOG2E, -(whole - np.float32(12583039)))
    left = _fma(data, np.float32(1.925963033500011079e-08), left)
    power = (_bits(whole) << 23).view(np.float32)
    return power * units.ex2(left)


_EXPM1 = (
    *_float32(0x3AB5EBE6),
    *_rounded(
        0.0083824126049876213074,
        0.041667830199003219604,
        0.16666397452354431152,
        0.49999994039535522461,
    ),
)


def expm1(data: Array) -> Array:
    """Return e**x - 1 without cancellation near 0."""
    near = np.abs(data) < np.float32(0.40999999642372131348)
    turns = np.where(near, np.float32(0), np.rint(data * _LOG2E))
    left = _fma(-turns, np.float32(0.693145751953125), data)
    left = _fma(-turns, np.float32(1.428606765330187045e-06), left)
    power = np.where(turns == 128, np.float32(127), turns)
    grown = units.ex2(power)
    bent = _fma(left, left * _polynomial(left, _EXPM1), left)
    made = _fma(grown, bent, grown - np.float32(1))
    made = np.where(turns == 128, made + made, made)
    made = np.where(power > 128, np.float32(np.inf), np.where(power < -25, np.float32(-1), made))
    return np.where(data == 0, data + data, made)


def cosh(data: Array) -> Array:
    """Return the hyperbolic cosine: y + 1 / (4 y) with y = e**|x| / 2."""
    size = np.abs(flushed(data))
    turns = np.trunc(size * _LOG2E)
    turns = np.where(turns > 126, np.float32(126), turns)
    left = _fma(turns, -_LN2, size)
    left = _fma(turns, np.float32(1.9046542121259335545e-09), left)
    power = (_bits(turns + np.float32(12583037)) << 23).view(np.float32)
    grown = power * units.ex2(left * _LOG2E)
    made = _fma(grown, np.float32(2), units.rcp(grown) * np.float32(0.125))
    return np.where(size >= np.float32(90), np.float32(np.inf), made)


_LOG1P = _rounded(
    -0.04534861445426941, 0.10546888411045074463, -0.13229703903198242188,
    0.14491446316242218018, -0.16641564667224884033, 0.19988867640495300293,
    -0.25000196695327758789, 0.33333510160446166992, -0.5,
)  # fmt: skip


def log1p(data: Array) -> Array:
    """Return log(1 + x): x is scaled with the exponent of 1 + x, so that no digit of it is lost."""
    raw = _bits(data)
    whole = (data.astype(np.float64) + 1).astype(np.float32)
    with np.errstate(over="ignore", invalid="ignore"):
        exponent = (_bits(whole) - np.int32(0x3F400000)) & np.int32(-(1 << 23))
        scale = (np.int32(0x40800000) - exponent).view(np.float32)
        rest = (raw - exponent).view(np.float32)
        rest = rest + _fma(scale, np.float32(0.25), np.float32(-1))
        near = _fma(rest, rest * _polynomial(rest, _LOG1P), rest)
        made = _fma(exponent.astype(np.float32) * np.float32(2.0**-23), _LN2, near)
        infinity = np.float32(np.inf)
        made = np.where((data < -1) | ~(data < infinity), data * infinity + infinity, made)
    return np.where(data == 0, data, np.where(data == -1, -infinity, made))


_ATAN = (*_float32(0xBF52C7EA), *_rounded(-5.6748671531677246094, -6.5655550956726074219))
_ATAN_BELOW = _rounded(1, 11.33538818359375, 28.84246826171875, 19.6966705322265625)
_PI = np.float32(np.pi)


def atan2(y: Array, x: Array) -> Array:
    """Return the angle of (x, y): a quotient of polynomials in the smaller over the larger."""
    high, wide = np.abs(y), np.abs(x)
    with np.errstate(invalid="ignore", divide="ignore"):
        ratio = np.minimum(high, wide) / np.maximum(high, wide)
    square = ratio * ratio
    top = square * _polynomial(square, _ATAN) * ratio
    below = _polynomial(square, _ATAN_BELOW)
    made = _fma(top, (1 / below.astype(np.float64)).astype(np.float32), ratio)
    made = np.where(high > wide, np.float32(np.pi / 2) - made, made)
    made = np.where((high == wide) & np.isinf(wide), np.float32(np.pi / 4), made)
    made = np.where((high == 0) & (wide == 0), np.float32(0), made)
    made = np.where(np.signbit(x), _PI - made, made)
    return np.where(np.isnan(made), made, np.copysign(made, y))


_POW = (*_float32(0x3B18F0FE), *_rounded(0.01249298732727766037, 0.083333469927310943604))


def _log_in_two(size: Array) -> tuple[Array, Array]:
    """Return the logarithm of positive numbers as a float32 and what it leaves out."""
    low = size < _TINY
    raw = _bits(np.where(low, size * np.float32(2.0**24), size))
    exponent = ((raw >> 23) - np.where(low, 151, 127)).astype(np.float32)
    m = ((raw & 0x7FFFFF) | 0x3F800000).view(np.float32)
    upper = m > np.float32(1.4142135381698608398)
    m = np.where(upper, m * np.float32(0.5), m)
    exponent = np.where(upper, exponent + np.float32(1), exponent)
    over, rest = units.rcp(m + np.float32(1)), m - np.float32(1)
    twice = rest + rest
    first = over * twice
    square = first * first
    bent = first * (square * _polynomial(square, _POW))
    left = _fma(-over, twice, rest)
    left = over * _fma(rest, -first, left + left)
    high = _fma(over, twice, bent)
    small = left + (bent + _fma(over, twice, -high))
    total = high + small
    small = small + (high - total)
    whole = exponent * np.float32(0.693145751953125)
    sum_ = total + whole
    small = small + (total + (whole - sum_))
    small = exponent * np.float32(1.428606765330187045e-06) + small
    made = sum_ + small
    return made, small + (sum_ - made)


def pow(base: Array, power: Array) -> Array:
    """Return base ** power: e to the product of the power and a logarithm in two parts."""
    with np.errstate(all="ignore"):
        ends: Array = np.power(base.astype(np.float64), power.astype(np.float64)).astype(np.float32)
        log_high, log_low = _log_in_two(np.abs(base))
        high = log_high * power
        low = _fma(log_low, power, _fma(log_high, power, -high))
        total = high + low
        edge = _bits(total) == 0x42B17218
        start = np.where(edge, np.float32(88.72283172607421875), total)
        turns = np.clip(np.trunc(start * _LOG2E), np.float32(-126), np.float32(126))
        left = _fma(turns, -_LN2, start)
        left = _fma(turns, np.float32(1.9046542121259335545e-09), left)
        scale = (_bits(turns + np.float32(12583039)) << 23).view(np.float32)
        grown = scale * units.ex2(left * _LOG2E)
        low = low + (high - total)
        low = np.where(edge, low + np.float32(2.0**-17), low)
        made = np.where(np.isinf(grown), grown, _fma(grown, low, grown))
    usual = np.isfinite(ends) & (ends != 0) & (base != 0) & (base != 1) & (power != 0)
    return np.where(usual & np.isfinite(made), np.copysign(made, ends), ends)
