"""Kernels in the manner of the libraries of the field, each on features that it leans on there.

Norms, linear attention, rotary embeddings, 4-bit and 8-bit quantisation, routers, locks, dropout,
persistent loops, descriptors. All are correct: no check may trip on them, on either device.
"""

from collections import namedtuple

import triton
import triton.language as tl
from triton.language.extra import libdevice

Pair = namedtuple("Pair", ["left", "right"])


@triton.jit
def welford_combine(mean_a, m2_a, n_a, mean_b, m2_b, n_b):
    delta = mean_b - mean_a
    n = n_a + n_b
    share = tl.where(n == 0.0, 0.0, n_b / n)
    return mean_a + delta * share, m2_a + m2_b + delta * delta * n_a * share, n


@triton.jit
def group_norm(x, w, b, y, n, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    x += row * n
    y += row * n
    i = tl.arange(0, BLOCK)
    m = i < n
    v = tl.load(x + i, mask=m, other=0.0).to(tl.float32)
    mean, m2, count = tl.reduce((v, tl.zeros_like(v), m.to(tl.float32)), 0, welford_combine)
    r = tl.rsqrt(m2 / count + eps)
    o = (v - mean) * r * tl.load(w + i, mask=m) + tl.load(b + i, mask=m)
    tl.store(y + i, o, mask=m)


@triton.jit
def scan_combine(a1, b1, a2, b2):
    return a1 * a2, a2 * b1 + b2


@triton.jit
def linear_attention_scan(a, b, y, T, BT: tl.constexpr):
    """Chunked recurrence h = a h + b with a carried state."""
    h = 0.0
    for start in tl.range(0, T, BT, num_stages=2):
        i = start + tl.arange(0, BT)
        m = i < T
        aa = tl.load(a + i, mask=m, other=1.0)
        bb = tl.load(b + i, mask=m, other=0.0)
        ca, cb = tl.associative_scan((aa, bb), 0, scan_combine)
        o = cb + ca * h
        tl.store(y + i, o, mask=m)
        last = tl.arange(0, BT) == BT - 1
        h = tl.sum(tl.where(last, o, 0.0))


@triton.jit
def rope_inplace(q, cos, sin, n, D: tl.constexpr, BACKWARD: tl.constexpr):
    row = tl.program_id(0)
    half: tl.constexpr = D // 2
    i = tl.arange(0, half)
    c = tl.load(cos + (row % n) * half + i)
    s = tl.load(sin + (row % n) * half + i)
    if BACKWARD:
        s = -s
    a = tl.load(q + row * D + i)
    b = tl.load(q + row * D + half + i)
    tl.store(q + row * D + i, a * c - b * s)
    tl.store(q + row * D + half + i, b * c + a * s)


@triton.jit
def int4_dequant(qw, scale, zero, y, K, G: tl.constexpr, BK: tl.constexpr):
    """AWQ-like: eight nibbles of a word in an interleaved order."""
    word = tl.program_id(0)
    i = tl.arange(0, BK)
    packed = tl.load(qw + word * BK + i)
    packed = tl.interleave(packed, packed)
    packed = tl.interleave(packed, packed)
    packed = tl.interleave(packed, packed)
    order = ((tl.arange(0, 2) * 4)[None, :] + tl.arange(0, 4)[:, None]).reshape(8)
    shifts = tl.broadcast_to((order * 4)[None, :], (BK, 8)).reshape(BK * 8)
    q = (packed >> shifts) & 0xF
    j = tl.arange(0, BK * 8)
    s = tl.load(scale + (word * BK * 8 + j) // G)
    z = tl.load(zero + (word * BK * 8 + j) // G)
    tl.store(y + word * BK * 8 + j, (q.to(tl.float32) - z) * s)


@triton.jit
def fp8_quant_group(x, y, s, n, FP8_MAX: tl.constexpr, BLOCK: tl.constexpr):
    g = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    m = i < n
    v = tl.load(x + g * n + i, mask=m, other=0.0).to(tl.float32)
    amax = tl.maximum(tl.max(tl.abs(v)), 1e-10)
    scale = amax / FP8_MAX
    q = tl.clamp(v / scale, -FP8_MAX, FP8_MAX).to(y.dtype.element_ty)
    tl.store(y + g * n + i, q, mask=m)
    tl.store(s + g, scale)


@triton.jit
def e8m0_scale(x, y, e, BLOCK: tl.constexpr):
    """MX scale: the power of two below the largest value, as a byte, by bits."""
    i = tl.arange(0, BLOCK)
    v = tl.load(x + i)
    top = tl.max(tl.abs(v), 0)
    bits = top.to(tl.int32, bitcast=True)
    exponent = ((bits >> 23) & 0xFF) - 2
    exponent = tl.maximum(exponent, 0).to(tl.uint8)
    scale = (exponent.to(tl.int32) << 23).to(tl.float32, bitcast=True)
    tl.store(e, exponent)
    tl.store(y + i, v / scale)


@triton.jit
def apply_pair(p, i, OP: tl.constexpr):
    return OP(tl.load(p.left + i), tl.load(p.right + i))


@triton.jit
def silu_mul(a, b):
    return a * tl.sigmoid(a) * b


@triton.jit
def gelu_mul(a, b):
    return 0.5 * a * (1 + libdevice.erf(a * 0.7071067811865476)) * b


@triton.jit
def glu(p, y, n, ACT: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    i = tl.where(i < n, i, 0)
    tl.store(y + i, apply_pair(p, i, ACT))


@triton.jit
def topk_router(logits, w, ids, E: tl.constexpr, K: tl.constexpr):
    """MoE router: iterative argmax, weights renormalised."""
    t = tl.program_id(0)
    i = tl.arange(0, E)
    v = tl.load(logits + t * E + i).to(tl.float32)
    v = tl.softmax(v)
    total = 0.0
    for k in tl.static_range(K):
        best, at = tl.max(v, 0, return_indices=True)
        tl.store(w + t * K + k, best)
        tl.store(ids + t * K + k, at)
        v = tl.where(i == at, float("-inf"), v)
        total += best
    for k in tl.static_range(K):
        tl.store(w + t * K + k, tl.load(w + t * K + k) / total)


@triton.jit
def spin_lock_sum(x, y, lock, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    part = tl.sum(tl.load(x + i, mask=i < n, other=0.0))
    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
    tl.store(y, tl.load(y) + part)
    tl.debug_barrier()
    tl.atomic_xchg(lock, 0)


@triton.jit
def float_atomic_max(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = i < n
    tl.atomic_max(y + i % 4, tl.load(x + i, mask=m, other=float("-inf")), mask=m, sem="relaxed")


@triton.jit
def dropout(x, y, n, p, seed, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = i < n
    keep = tl.rand(seed, i) > p
    r0, r1, r2, r3 = tl.randint4x(seed, i)
    v = tl.load(x + i, mask=m)
    tl.store(
        y + i, tl.where(keep, v / (1 - p), 0.0) + ((r0 ^ r1 ^ r2 ^ r3) & 0).to(tl.float32), mask=m
    )


@triton.jit
def persistent_copy(x, y, n, NUM: tl.constexpr, BLOCK: tl.constexpr):
    for tile in tl.range(tl.program_id(0), tl.cdiv(n, BLOCK), NUM, flatten=True):
        i = tile * BLOCK + tl.arange(0, BLOCK)
        m = i < n
        v = tl.load(x + i, mask=m, cache_modifier=".cg")
        tl.store(y + i, v, mask=m, cache_modifier=".wt")
