"""Probe kernels: block programs that run one operation each, on the GPU and in the interpreter.

Plain torch and triton, no import of gate: the recorder runs this file on a bare GPU machine.
The shared shells load, call the operation `FN` (a jit function) and store; each operation is a
probe of its own once it is specialised for a dtype.
"""

import triton
import triton.language as tl

# --- shells -------------------------------------------------------------------------------------


@triton.jit
def unary(x, y, N: tl.constexpr, FN: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(y + i, FN(tl.load(x + i)))


@triton.jit
def binary(a, b, y, N: tl.constexpr, FN: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(y + i, FN(tl.load(a + i), tl.load(b + i)))


@triton.jit
def ternary(a, b, c, y, N: tl.constexpr, FN: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(y + i, FN(tl.load(a + i), tl.load(b + i), tl.load(c + i)))


@triton.jit
def cast(x, y, N: tl.constexpr, TO: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(y + i, tl.load(x + i).to(TO))


@triton.jit
def cast_rtz(x, y, N: tl.constexpr, TO: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(y + i, tl.load(x + i).to(TO, fp_downcast_rounding="rtz"))


@triton.jit
def bits(x, y, N: tl.constexpr, TO: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(y + i, tl.load(x + i).to(TO, bitcast=True))


@triton.jit
def rows(x, y, M: tl.constexpr, N: tl.constexpr, FN: tl.constexpr):
    """Reduce each row: y has M elements."""
    i = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    tl.store(y + tl.arange(0, M), FN(tl.load(x + i), 1))


@triton.jit
def columns(x, y, M: tl.constexpr, N: tl.constexpr, FN: tl.constexpr):
    """Reduce each column: y has N elements."""
    i = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    tl.store(y + tl.arange(0, N), FN(tl.load(x + i), 0))


@triton.jit
def whole(x, y, N: tl.constexpr, FN: tl.constexpr):
    """Reduce one block to one element."""
    tl.store(y, FN(tl.load(x + tl.arange(0, N)), 0))


@triton.jit
def scan(x, y, M: tl.constexpr, N: tl.constexpr, FN: tl.constexpr):
    i = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    tl.store(y + i, FN(tl.load(x + i)))


# --- elementwise --------------------------------------------------------------------------------


@triton.jit
def add(a, b):
    return a + b


@triton.jit
def sub(a, b):
    return a - b


@triton.jit
def mul(a, b):
    return a * b


@triton.jit
def div(a, b):
    return a / b


@triton.jit
def rem(a, b):
    return a % b


@triton.jit
def floordiv(a, b):
    return a // b


@triton.jit
def square_plus(a):
    return a * a + a


@triton.jit
def mul_add(a, b, c):
    return a * b + c


@triton.jit
def fused(a, b, c):
    return tl.fma(a, b, c)


@triton.jit
def negate(a):
    return -a


@triton.jit
def absolute(a):
    return tl.abs(a)


@triton.jit
def minimum(a, b):
    return tl.minimum(a, b)


@triton.jit
def maximum(a, b):
    return tl.maximum(a, b)


@triton.jit
def maximum_nan(a, b):
    return tl.maximum(a, b, propagate_nan=tl.PropagateNan.ALL)


@triton.jit
def minimum_nan(a, b):
    return tl.minimum(a, b, propagate_nan=tl.PropagateNan.ALL)


@triton.jit
def clamped(a):
    return tl.clamp(a, -1.5, 2.25)


@triton.jit
def less(a, b):
    return (a < b).to(tl.int8)


@triton.jit
def greater_equal(a, b):
    return (a >= b).to(tl.int8)


@triton.jit
def equal(a, b):
    return (a == b).to(tl.int8)


@triton.jit
def not_equal(a, b):
    return (a != b).to(tl.int8)


@triton.jit
def select(a, b):
    return tl.where(a > b, a, b * 2)


@triton.jit
def add_one(a):
    return a + 1


@triton.jit
def times_third(a):
    return a * 0.3333333


@triton.jit
def relu_chain(a):
    return tl.maximum(a * 1.5 - 0.25, 0.0)


@triton.jit
def both(a, b):
    return ((a > 0) & (b > 0)).to(tl.int8) + ((a > 0) | (b > 0)).to(tl.int8) * 2


@triton.jit
def flipped(a):
    return (~(a > 0)).to(tl.int8)


# --- integers -----------------------------------------------------------------------------------


@triton.jit
def bit_and(a, b):
    return a & b


@triton.jit
def bit_or(a, b):
    return a | b


@triton.jit
def bit_xor(a, b):
    return a ^ b


@triton.jit
def bit_not(a):
    return ~a


@triton.jit
def shift_left(a, b):
    return a << (b & 7)


@triton.jit
def shift_right(a, b):
    return a >> (b & 7)


@triton.jit
def umulhi(a, b):
    return tl.umulhi(a, b)


@triton.jit
def ceil_div(a, b):
    return tl.cdiv(a, b)


@triton.jit
def swizzled(a, b):
    x, y = tl.swizzle2d(a, b, 8, 8, 4)
    return x * 1000 + y


@triton.jit
def random_uniform(a):
    return tl.rand(1234, a)


@triton.jit
def random_bits(a):
    return tl.randint(99, a)


@triton.jit
def random_normal(a):
    return tl.randn(7, a)


@triton.jit
def int_truediv(a, b):
    return a / b
