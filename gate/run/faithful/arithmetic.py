"""The builder's arithmetic, comparison and conversion operations.

Values of 16 and 8 bits are computed in float32 and rounded once for each operation, as the GPU's
`add.bf16` and its kin do. Integers wrap; division and remainder truncate. int32 results that left
the int32 range carry their true values along when overflow is watched (`wraps`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from gate.dtypes import Array
from gate.run.faithful import wraps
from gate.run.faithful.block import Block, Wide, common_root
from gate.run.faithful.fma import fused
from gate.run.faithful.formats import (
    SIGNED,
    UNSIGNED,
    float_to_float,
    float_to_int,
    int_to_float,
    numpy_of,
)
from gate.run.faithful.maths import divide

Ufunc = Callable[..., Any]
_F32 = np.dtype(np.float32)


def _narrow(data: Array) -> bool:
    return data.dtype.kind == "V" or data.dtype.itemsize == 1


def floats(op: Ufunc) -> Callable[[Any, Block, Block], Block]:
    """Return the builder method of a binary float operation."""

    def method(self: Any, lhs: Block, rhs: Block) -> Block:
        a, b = lhs.data, rhs.data
        if not _narrow(a):
            return Block(op(a, b), lhs.dtype)
        return Block(op(a.astype(_F32), b.astype(_F32)).astype(a.dtype), lhs.dtype)

    return method


def ints(op: Ufunc, follow: bool = False) -> Callable[[Any, Block, Block], Block]:
    """Return the builder method of a binary integer operation that keeps the width.

    follow  whether the operation can carry an index: its overflow is watched.
    """

    def method(self: Any, lhs: Block, rhs: Block) -> Block:
        a, b = lhs.data, rhs.data
        if a.dtype.kind == "b":
            return Block((op(a.view(np.int8), b.view(np.int8)) & 1).astype(np.bool_), lhs.dtype)
        made = Block(op(a, b), lhs.dtype)
        if follow and self.watch_wraps:
            wraps.follow(made, op, lhs, rhs)
        return made

    return method


def compares(op: Ufunc) -> Callable[[Any, Block, Block], Block]:
    """Return the builder method of a comparison; it gives truth values."""

    def method(self: Any, lhs: Block, rhs: Block) -> Block:
        return Block(op(lhs.data, rhs.data), self.int1)

    return method


def _unordered(op: Ufunc) -> Ufunc:
    def compare(a: Array, b: Array) -> Array:
        truth: Array = op(a, b) | (a != a) | (b != b)
        return truth

    return compare


def _ordered_ne(a: Array, b: Array) -> Array:
    truth: Array = (a != b) & (a == a) & (b == b)
    return truth


def _truncated_division(a: Array, b: Array) -> Array:
    quotient: Array = (a - np.fmod(a, b)) // b
    return quotient


def _pick_signed_zero(first: Array, second: Array, made: Array, negative: bool) -> Array:
    zeros = (first == 0) & (second == 0)
    if not zeros.any():
        return made
    sign = np.signbit(first) | np.signbit(second) if negative else (
        np.signbit(first) & np.signbit(second)
    )  # fmt: skip
    return np.where(zeros, np.where(sign, -0.0, 0.0).astype(made.dtype), made)


def _minnum(a: Array, b: Array) -> Array:
    return _pick_signed_zero(a, b, np.fmin(a, b), True)


def _maxnum(a: Array, b: Array) -> Array:
    return _pick_signed_zero(a, b, np.fmax(a, b), False)


def _minimum(a: Array, b: Array) -> Array:
    return _pick_signed_zero(a, b, np.minimum(a, b), True)


def _maximum(a: Array, b: Array) -> Array:
    return _pick_signed_zero(a, b, np.maximum(a, b), False)


_add, _subtract, _multiply = floats(np.add), floats(np.subtract), floats(np.multiply)


class Arithmetic:
    """Mixin: arithmetic, comparison, bits, selection and conversion on blocks."""

    watch_wraps: bool
    fuses: bool
    addresses_escaped: bool
    int1: Any

    create_fdiv = floats(divide)
    create_precise_divf = floats(np.divide)
    create_approx_divf = floats(np.divide)
    create_frem = floats(np.fmod)
    create_minnumf = floats(_minnum)
    create_maxnumf = floats(_maxnum)
    create_minimumf = floats(_minimum)
    create_maximumf = floats(_maximum)

    create_add = ints(np.add, follow=True)
    create_sub = ints(np.subtract, follow=True)
    create_mul = ints(np.multiply, follow=True)
    create_sdiv = ints(_truncated_division, follow=True)
    create_udiv = ints(_truncated_division)
    create_srem = ints(np.fmod)
    create_urem = ints(np.fmod)
    create_minsi = ints(np.minimum, follow=True)
    create_minui = ints(np.minimum)
    create_maxsi = ints(np.maximum, follow=True)
    create_maxui = ints(np.maximum)
    create_and = ints(np.bitwise_and)
    create_or = ints(np.bitwise_or)
    create_xor = ints(np.bitwise_xor)

    create_icmpSLE = create_icmpULE = create_fcmpOLE = compares(np.less_equal)
    create_icmpSLT = create_icmpULT = create_fcmpOLT = compares(np.less)
    create_icmpSGE = create_icmpUGE = create_fcmpOGE = compares(np.greater_equal)
    create_icmpSGT = create_icmpUGT = create_fcmpOGT = compares(np.greater)
    create_icmpEQ = create_fcmpOEQ = compares(np.equal)
    create_icmpNE = create_fcmpUNE = compares(np.not_equal)
    create_fcmpONE = compares(_ordered_ne)
    create_fcmpULT = compares(_unordered(np.less))
    create_fcmpUGT = compares(_unordered(np.greater))
    create_fcmpULE = compares(_unordered(np.less_equal))
    create_fcmpUGE = compares(_unordered(np.greater_equal))
    create_fcmpUEQ = compares(_unordered(np.equal))

    def create_fmul(self, lhs: Block, rhs: Block) -> Block:
        """Multiply, and remember the factors for an addition that follows."""
        made = _multiply(self, lhs, rhs)
        if self.fuses and lhs.data.dtype.itemsize > 1:
            made.factors = (lhs.data, rhs.data)
        return made

    def create_fadd(self, lhs: Block, rhs: Block) -> Block:
        """Add; a product among the operands is fused, the left one first, as LLVM does."""
        if lhs.factors is not None:
            return Block(fused(*lhs.factors, rhs.data), lhs.dtype)
        if rhs.factors is not None:
            return Block(fused(*rhs.factors, lhs.data), lhs.dtype)
        return _add(self, lhs, rhs)

    def create_fsub(self, lhs: Block, rhs: Block) -> Block:
        """Subtract; a product among the operands is fused, the left one first."""
        if lhs.factors is not None:
            return Block(fused(*lhs.factors, -rhs.data), lhs.dtype)
        if rhs.factors is not None:
            return Block(fused(-rhs.factors[0], rhs.factors[1], lhs.data), lhs.dtype)
        return _subtract(self, lhs, rhs)

    def create_shl(self, lhs: Block, rhs: Block) -> Block:
        """Shift left; a distance of the width or more gives 0, as `shl` does in PTX."""
        made = Block(self._shift(lhs, rhs, np.left_shift, UNSIGNED), lhs.dtype)
        if self.watch_wraps:
            wraps.follow(made, np.left_shift, lhs, rhs)
        return made

    def create_lshr(self, lhs: Block, rhs: Block) -> Block:
        """Shift right and fill with zeros, whatever the sign."""
        return Block(self._shift(lhs, rhs, np.right_shift, UNSIGNED), lhs.dtype)

    def create_ashr(self, lhs: Block, rhs: Block) -> Block:
        """Shift right and fill with the sign bit."""
        return Block(self._shift(lhs, rhs, np.right_shift, SIGNED), lhs.dtype)

    @staticmethod
    def _shift(lhs: Block, rhs: Block, op: Ufunc, family: Mapping[int, np.dtype[Any]]) -> Array:
        held = lhs.data.dtype
        if held.kind == "b":
            return np.where(rhs.data, op is np.right_shift and family is SIGNED, True) & lhs.data
        bits = held.itemsize * 8
        value = lhs.data.view(family[held.itemsize])
        by = rhs.data.view(UNSIGNED[held.itemsize])
        far = by >= bits
        if family is SIGNED:
            kept: Array = op(value, np.where(far, bits - 1, by).astype(value.dtype))
            return kept.view(held)
        moved = np.where(far, 0, op(value, np.where(far, 0, by)))
        return moved.astype(value.dtype).view(held)

    def create_umulhi(self, lhs: Block, rhs: Block) -> Block:
        """Return the high half of the unsigned product."""
        held = lhs.data.dtype
        kind = UNSIGNED[held.itemsize]
        a, b = lhs.data.view(kind), rhs.data.view(kind)
        if held.itemsize < 8:
            wide = UNSIGNED[held.itemsize * 2]
            high = (a.astype(wide) * b.astype(wide)) >> (held.itemsize * 8)
            return Block(high.astype(kind).view(held), lhs.dtype)
        low = np.uint64(0xFFFFFFFF)
        half = np.uint64(32)
        a0, a1, b0, b1 = a & low, a >> half, b & low, b >> half
        middle = a1 * b0 + ((a0 * b0) >> half)
        cross = a0 * b1 + (middle & low)
        return Block((a1 * b1 + (middle >> half) + (cross >> half)).view(held), lhs.dtype)

    def create_fneg(self, arg: Block) -> Block:
        """Flip the sign bit; a product stays one."""
        made = self._sign(arg, np.bitwise_xor, flip=True)
        if arg.factors is not None:
            made.factors = (-arg.factors[0], arg.factors[1])
        return made

    def create_fabs(self, arg: Block) -> Block:
        """Clear the sign bit."""
        return self._sign(arg, np.bitwise_and, flip=False)

    @staticmethod
    def _sign(arg: Block, op: Ufunc, flip: bool) -> Block:
        held = arg.data.dtype
        kind = UNSIGNED[held.itemsize]
        top = 1 << (held.itemsize * 8 - 1)
        bits = kind.type(top if flip else top - 1)
        return Block(op(arg.data.view(kind), bits).view(held), arg.dtype)

    def create_iabs(self, arg: Block) -> Block:
        """Return the absolute value; the smallest integer stays."""
        return Block(np.abs(arg.data), arg.dtype)

    def create_clampf(self, arg: Block, low: Block, high: Block, propagate_nans: Any) -> Block:
        """Clamp; a NaN gives the lower end unless NaNs propagate."""
        a, lo, hi = (b.data.astype(_F32) if _narrow(b.data) else b.data for b in (arg, low, high))
        made = np.fmin(np.fmax(a, lo), hi)
        if str(propagate_nans).endswith("ALL"):
            made = np.where(a != a, a, made)
        return Block(made.astype(arg.data.dtype), arg.dtype)

    def create_select(self, condition: Block, lhs: Block, rhs: Block) -> Block:
        """Choose element by element."""
        made = Block(np.where(condition.data, lhs.data, rhs.data), lhs.dtype)
        made.root = common_root(lhs, rhs)
        if lhs.wide is not None or rhs.wide is not None:
            true = np.where(condition.data, wraps.true_of(lhs), wraps.true_of(rhs))
            made.wide = Wide(true, wraps.line_of(lhs, rhs))
        return made

    # --- conversions ---

    def create_fp_to_fp(self, src: Block, dst_type: Any, rounding_mode: Any) -> Block:
        """Convert between float types, rounding as asked."""
        zero = rounding_mode is not None and str(rounding_mode).endswith("RTZ")
        scalar = dst_type.scalar
        return Block(float_to_float(src.data, scalar.name, toward_zero=zero), scalar)

    def create_fp_ext(self, src: Block, dst_type: Any) -> Block:
        """Widen a float."""
        return Block(src.data.astype(numpy_of(dst_type)), dst_type.scalar)

    def create_fp_trunc(self, src: Block, dst_type: Any) -> Block:
        """Narrow a float, to nearest even."""
        return Block(float_to_float(src.data, dst_type.scalar.name), dst_type.scalar)

    def create_fp_to_si(self, src: Block, dst_type: Any) -> Block:
        """Truncate a float to an integer."""
        return Block(float_to_int(src.data, dst_type.scalar.name), dst_type.scalar)

    create_fp_to_ui = create_fp_to_si

    def create_si_to_fp(self, src: Block, dst_type: Any) -> Block:
        """Round an integer to a float."""
        return Block(int_to_float(src.data, dst_type.scalar.name), dst_type.scalar)

    create_ui_to_fp = create_si_to_fp

    def create_int_cast(self, src: Block, dst_type: Any, is_signed: bool) -> Block:
        """Change the width of an integer; a narrower one keeps the low bits."""
        scalar = dst_type.scalar
        held = numpy_of(scalar)
        if held.kind == "b":
            return Block((src.data & 1).astype(held), scalar)
        made = Block(src.data.astype(held), scalar)
        if src.wide is not None and held.itemsize >= src.data.dtype.itemsize:
            made.wide = src.wide
        return made

    def create_bitcast(self, src: Block, dst_type: Any) -> Block:
        """Read the same bits as another type; a pointer keeps its origin."""
        scalar = dst_type.scalar
        return Block(src.data.view(numpy_of(scalar)), scalar, src.root)

    def create_int_to_ptr(self, src: Block, dst_type: Any) -> Block:
        """Make an address of an integer; its origin is not known."""
        return Block(src.data.view(np.uint64), dst_type.scalar)

    def create_ptr_to_int(self, src: Block, dst_type: Any) -> Block:
        """Read an address as an integer."""
        self.addresses_escaped = True
        return Block(src.data.view(numpy_of(dst_type)), dst_type.scalar)
