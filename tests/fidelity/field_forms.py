"""More of the field's kernels: forms of the language that libraries use around the arithmetic.

Keyword arguments, tuples of pointers, nested helpers, absent arguments, products, scans,
descriptors and tuned launches. All are correct: no check may trip on them, on either device.
"""

import triton
import triton.language as tl


@triton.jit(do_not_specialize=["n"], noinline=False)
def keyworded(x, y, n, scale: tl.constexpr = 2, *, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(y + i, tl.load(x + i, i < n, 0) * scale, i < n)


@triton.jit(noinline=True)
def not_inlined(v, k):
    return v * 0 + k


@triton.jit
def calls_not_inlined(x, y, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(y + i, tl.load(x + i) * 3 + not_inlined(n, 1))


@triton.jit
def dot_acc(a, b, y, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, PREC: tl.constexpr):
    m, n, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    p = tl.load(a + m[:, None] * K + k)
    q = tl.load(b + k[:, None] * N + n)
    acc = tl.full((M, N), 1.0, tl.float32)
    acc = tl.dot(p, q, acc=acc, input_precision=PREC)
    acc = tl.dot(p, q, acc, input_precision=PREC)
    tl.store(y + m[:, None] * N + n, acc)


@triton.jit
def batched_dot(a, b, y, B: tl.constexpr, M: tl.constexpr):
    z, m = tl.arange(0, B), tl.arange(0, M)
    at = z[:, None, None] * M * M + m[None, :, None] * M + m[None, None, :]
    tl.store(y + at, tl.dot(tl.load(a + at), tl.load(b + at), input_precision="ieee"))


@triton.jit
def sorter(x, y, z, N: tl.constexpr):
    i = tl.arange(0, N)
    v = tl.load(x + i)
    tl.store(y + i, tl.sort(v, descending=True))
    tl.store(z + i, tl.flip(tl.cumsum(v, reverse=True)))


@triton.jit
def static_text(x, y, BLOCK: tl.constexpr, KIND: tl.constexpr):
    tl.static_assert(BLOCK % 4 == 0, f"BLOCK {BLOCK} is not a multiple of 4 for {KIND}")
    names: tl.constexpr = ("a", "b")
    i = tl.arange(0, BLOCK)
    v = tl.load(x + i)
    for k in tl.static_range(len(names)):
        if names[k] == KIND:
            v += k
    tl.store(y + i, v)


@triton.jit
def strided_sum(xs, strides, y, N: tl.constexpr, BLOCK: tl.constexpr):
    """A tuple of pointers and a tuple of strides, walked at compile time."""
    i = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for k in tl.static_range(len(xs)):
        total += tl.load(xs[k] + i * strides[k], mask=i < N, other=0.0)
    tl.store(y + i, total, mask=i < N)


@triton.jit
def optional(
    x, y, bias, scale, USE: tl.constexpr, MODE: tl.constexpr = None, BLOCK: tl.constexpr = 8
):
    i = tl.arange(0, BLOCK)
    v = tl.load(x + i)
    if bias is not None:
        v += tl.load(bias + i)
    if scale is None:
        v = v * 2
    if USE and MODE is None:
        v = v + 1
    tl.store(y + i, v)


@triton.jit
def methods(x, y, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    v = tl.load(x + i)
    a = v.abs().sqrt().exp().log().sigmoid()
    b = v.reshape(2, BLOCK // 2).trans().sum(axis=1, keep_dims=True).max()
    c = v.to(tl.float16).cast(tl.float32).min(0) + v.argmax(0)
    tl.store(y + i, a + b + c + v.cumsum(0) + tl.math.exp2(v * 0) + tl.math.rsqrt(v * 0 + 1))


@triton.jit
def scaled_product(a, sa, b, sb, y, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    m, n, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    p = tl.load(a + m[:, None] * K + k)
    q = tl.load(b + k[:, None] * N + n)
    s = tl.arange(0, K // 32)
    u = tl.load(sa + m[:, None] * (K // 32) + s)
    w = tl.load(sb + n[:, None] * (K // 32) + s)
    r = tl.dot_scaled(p, u, "e4m3", q, w, "e4m3")
    tl.store(y + m[:, None] * N + n, r)


@triton.jit
def half_atomics(x, y, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.atomic_add(y + i % 4, tl.load(x + i), sem="acq_rel", scope="gpu")


@triton.jit
def float_exchange(x, y, old, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(old + i, tl.atomic_xchg(y + i, tl.load(x + i)))


@triton.jit
def tma_tile(x, y, M, N, BM: tl.constexpr, BN: tl.constexpr):
    src = tl.make_tensor_descriptor(x, shape=[M, N], strides=[N, 1], block_shape=[BM, BN])
    dst = tl.make_tensor_descriptor(y, shape=[M, N], strides=[N, 1], block_shape=[BM, BN])
    a, b = tl.program_id(0) * BM, tl.program_id(1) * BN
    t = src.load([a, b])
    dst.atomic_add([a, b], t)
    dst.atomic_add([a, b], t)


@triton.jit
def gathers(x, at, y, N: tl.constexpr):
    i = tl.arange(0, N)
    v = tl.load(x + i)
    g = tl.gather(v, tl.load(at + i), 0)
    h = tl.histogram(tl.load(at + i), N, mask=i < N - 2)
    lo, hi = tl.split(tl.reshape(g, (N // 2, 2)))
    tl.store(y + i, tl.interleave(lo, hi) + h + tl.ravel(tl.join(lo, hi)) * 0)


@triton.jit
def narrow_ints(x, y, N: tl.constexpr):
    i = tl.arange(0, N)
    v = tl.load(x + i)
    w = v + v
    u = v.to(tl.uint8, bitcast=True)
    tl.store(y + i, w)
    tl.store(y + N + i, (u >> 1).to(tl.int8, bitcast=True))
    tl.store(y + 2 * N + i, (u + 200).to(tl.int8))
    tl.store(y + 3 * N + i, (v.to(tl.int16) * 300).to(tl.int8))


@triton.jit
def power_and_floor(x, y, n, N: tl.constexpr):
    i = tl.arange(0, N)
    s = 2 ** (N // 4)
    t = -7 // 2
    u = n // -2
    tl.store(y + i, tl.load(x + i) + s + t + u + (-7 % 3) + (n % -3))


@triton.jit
def twice(v):
    return v * 2


@triton.jit
def helper(x, i, F: tl.constexpr, ARGS: tl.constexpr = 1):
    if F is None:
        return tl.load(x + i), None
    else:
        return F(tl.load(x + i)), ARGS


@triton.jit
def nested(x, y, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    a, k = helper(x, i, twice, 3)
    b, none = helper(x, i, None)
    if none is None:
        a += b
    tl.store(y + i, a * k)


@triton.jit
def _max(a, b):
    return tl.maximum(a, b)


@triton.jit
def block_scan_2d(x, y, M: tl.constexpr, N: tl.constexpr):
    i = tl.arange(0, M)[:, None] * N + tl.arange(0, N)
    v = tl.load(x + i)
    tl.store(y + i, tl.cumsum(v, 0, reverse=True) + tl.associative_scan(v, 1, _max, reverse=True))


def keep_some(configs, named_args, **kwargs):
    return [one for one in configs if one.kwargs["BLOCK"] <= named_args["n"]]


def clear(args):
    args["y"].zero_()


CONFIGS = [
    triton.Config({"BLOCK": size}, num_warps=warps, num_stages=2, pre_hook=clear)
    for size, warps in ((4, 1), (8, 4), (64, 8))
]


@triton.autotune(
    configs=CONFIGS,
    key=["n"],
    reset_to_zero=["y"],
    prune_configs_by={"early_config_prune": keep_some},
)
@triton.heuristics({"EVEN": lambda args: args["n"] % args["BLOCK"] == 0})
@triton.jit
def tuned_sum(x, y, n, BLOCK: tl.constexpr, EVEN: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    if EVEN:
        tl.atomic_add(y + i, tl.load(x + i))
    else:
        tl.atomic_add(y + i, tl.load(x + i, mask=i < n, other=0.0), mask=i < n)


@triton.jit
def doubled(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, tl.load(x + i, i < n) * 2, i < n)
