"""Probe kernels for reductions, scans, sorting, products, masks, atomics and addressing."""

import triton
import triton.language as tl

# --- reductions: FN(block, axis) ----------------------------------------------------------------


@triton.jit
def total(x, axis: tl.constexpr):
    return tl.sum(x, axis)


@triton.jit
def total_float32(x, axis: tl.constexpr):
    return tl.sum(x.to(tl.float32), axis)


@triton.jit
def largest(x, axis: tl.constexpr):
    return tl.max(x, axis)


@triton.jit
def smallest(x, axis: tl.constexpr):
    return tl.min(x, axis)


@triton.jit
def where_largest(x, axis: tl.constexpr):
    return tl.argmax(x, axis)


@triton.jit
def where_smallest(x, axis: tl.constexpr):
    return tl.argmin(x, axis)


@triton.jit
def parity(x, axis: tl.constexpr):
    return tl.xor_sum(x, axis)


@triton.jit
def _multiply(a, b):
    return a * b


@triton.jit
def product(x, axis: tl.constexpr):
    return tl.reduce(x, axis, _multiply)


@triton.jit
def _welford(m1, s1, n1, m2, s2, n2):
    n = n1 + n2
    d = m2 - m1
    return m1 + d * (n2 / n), s1 + s2 + d * d * (n1 * n2 / n), n


@triton.jit
def variance(x, axis: tl.constexpr):
    ones = tl.full(x.shape, 1.0, tl.float32)
    _, s, n = tl.reduce((x, x * 0, ones), axis, _welford)
    return s / n


@triton.jit
def softmax_rows(x, y, M: tl.constexpr, N: tl.constexpr):
    i = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    v = tl.load(x + i).to(tl.float32)
    e = tl.exp(v - tl.max(v, 1)[:, None])
    tl.store(y + i, e / tl.sum(e, 1)[:, None])


@triton.jit
def sum_all(x, y, M: tl.constexpr, N: tl.constexpr):
    i = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    tl.store(y, tl.sum(tl.load(x + i)))


@triton.jit
def best_pair(x, y, z, M: tl.constexpr, N: tl.constexpr):
    i = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    value, index = tl.max(tl.load(x + i), 1, return_indices=True)
    tl.store(y + tl.arange(0, M), value)
    tl.store(z + tl.arange(0, M), index)


# --- scans: FN(block) over the rows of an M x N block -------------------------------------------


@triton.jit
def running_sum(x):
    return tl.cumsum(x, 1)


@triton.jit
def running_sum_down(x):
    return tl.cumsum(x, 0)


@triton.jit
def running_sum_back(x):
    return tl.cumsum(x, 1, reverse=True)


@triton.jit
def running_product(x):
    return tl.cumprod(x, 1)


@triton.jit
def _larger(a, b):
    return tl.where(a > b, a, b)


@triton.jit
def running_max(x):
    return tl.associative_scan(x, 1, _larger)


@triton.jit
def _linear(a1, b1, a2, b2):
    return a1 * a2, b1 * a2 + b2


@triton.jit
def recurrence(x):
    _a, b = tl.associative_scan((x * 0 + 0.5, x), 1, _linear)
    return b


@triton.jit
def sorted_up(x):
    return tl.sort(x)


@triton.jit
def sorted_down(x):
    return tl.sort(x, descending=True)


@triton.jit
def turned(x):
    return tl.flip(x, 1)


@triton.jit
def transposed_sum(x):
    return tl.trans(tl.trans(x) + tl.trans(x))


@triton.jit
def best_four(x, y, M: tl.constexpr, N: tl.constexpr):
    i = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    top = tl.topk(tl.load(x + i), 4)
    o = tl.arange(0, M)[:, None] * 4 + tl.arange(0, 4)[None, :]
    tl.store(y + o, top)


@triton.jit
def gathered(x, index, y, M: tl.constexpr, N: tl.constexpr):
    i = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    tl.store(y + i, tl.gather(tl.load(x + i), tl.load(index + i), 1))


@triton.jit
def counted(x, y, N: tl.constexpr, BINS: tl.constexpr):
    h = tl.histogram(tl.load(x + tl.arange(0, N)), BINS)
    tl.store(y + tl.arange(0, BINS), h)


@triton.jit
def joined(a, b, y, N: tl.constexpr):
    i = tl.arange(0, N)
    c = tl.join(tl.load(a + i), tl.load(b + i))
    p, q = tl.split(c)
    tl.store(y + tl.arange(0, 2 * N), tl.reshape(tl.join(q, p), (2 * N,)))


@triton.jit
def interleaved(a, b, y, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(y + tl.arange(0, 2 * N), tl.interleave(tl.load(a + i), tl.load(b + i)))


# --- products -----------------------------------------------------------------------------------


@triton.jit
def dot(a, b, y, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, HOW: tl.constexpr):
    m, n, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    p = tl.load(a + m[:, None] * K + k[None, :])
    q = tl.load(b + k[:, None] * N + n[None, :])
    if HOW == "ieee":
        r = tl.dot(p, q, input_precision="ieee")
    elif HOW == "tf32x3":
        r = tl.dot(p, q, input_precision="tf32x3")
    elif HOW == "half":
        r = tl.dot(p, q, out_dtype=tl.float16)
    elif HOW == "int":
        r = tl.dot(p, q, out_dtype=tl.int32)
    else:
        r = tl.dot(p, q)
    tl.store(y + m[:, None] * N + n[None, :], r)


@triton.jit
def dot_loop(a, b, y, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, STEP: tl.constexpr):
    m, n, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, STEP)
    acc = tl.zeros((M, N), dtype=tl.float32)
    for start in range(0, K, STEP):
        p = tl.load(a + m[:, None] * K + (start + k)[None, :])
        q = tl.load(b + (start + k)[:, None] * N + n[None, :])
        acc += tl.dot(p, q)
    tl.store(y + m[:, None] * N + n[None, :], acc)


# --- masks, promotion, control ------------------------------------------------------------------


@triton.jit
def masked(x, y, n, OTHER: tl.constexpr, N: tl.constexpr):
    i = tl.arange(0, N)
    v = tl.load(x + i, mask=i < n, other=OTHER)
    tl.store(y + i, v)


@triton.jit
def masked_store(x, y, n, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(y + i, tl.load(x + i), mask=i < n)


@triton.jit
def mask_and_scalar(x, y, n, flag, N: tl.constexpr):
    i = tl.arange(0, N)
    m = (i < n) & (flag >= 0)
    tl.store(y + i, tl.load(x + i, mask=m, other=-1.0))


@triton.jit
def one_lane_other(x, y, n, N: tl.constexpr):
    pid = tl.program_id(0)
    v = tl.load(x + pid, mask=pid < n, other=0.0)
    tl.store(y + pid, v + 0.5)


@triton.jit
def scaled(x, y, scale, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(y + i, tl.load(x + i) * scale)


@triton.jit
def scaled_and_halved(x, y, scale, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(y + i, (tl.load(x + i) * scale) * 0.5)


@triton.jit
def scalar_cast(x, y, scale, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(y + i, tl.load(x + i) + scale.to(x.dtype.element_ty))


@triton.jit
def branches(x, y, n, N: tl.constexpr):
    pid = tl.program_id(0)
    i = pid * N + tl.arange(0, N)
    v = tl.load(x + i)
    if pid % 2 == 0 and n > 3:
        v = v * 2
    elif not (pid == 1):  # noqa: SIM201 - `not` is what is probed
        v = v + 1
    k = 0
    while k < n:
        v += 0.25
        k += 1
    tl.store(y + i, v)


@triton.jit
def loop_half(x, y, n, N: tl.constexpr):
    i = tl.arange(0, N)
    acc = tl.zeros((N,), dtype=y.dtype.element_ty)
    for step in range(n):
        acc += tl.load(x + step * N + i)
    tl.store(y + i, acc)


@triton.jit
def narrow_index(x, y, n, N: tl.constexpr):
    i = tl.arange(0, N)
    acc = tl.load(x + i)
    for step in range(n):
        acc = (acc + step).to(acc.dtype)
    tl.store(y + i, acc)


@triton.jit
def descriptor_copy(x, y, M: tl.constexpr, N: tl.constexpr, B: tl.constexpr):
    src = tl.make_tensor_descriptor(x, [M, N], [N, 1], [B, B])
    dst = tl.make_tensor_descriptor(y, [M, N], [N, 1], [B, B])
    row = tl.program_id(0) * B
    col = tl.program_id(1) * B
    dst.store([row, col], src.load([row, col]) * 2)


@triton.jit
def block_pointer_copy(x, y, M: tl.constexpr, N: tl.constexpr, B: tl.constexpr):
    row = tl.program_id(0) * B
    src = tl.make_block_ptr(x, (M, N), (N, 1), (row, 0), (B, B), (1, 0))
    dst = tl.make_block_ptr(y, (M, N), (N, 1), (row, 0), (B, B), (1, 0))
    for _ in range(0, tl.cdiv(N, B)):
        v = tl.load(src, boundary_check=(0, 1), padding_option="zero")
        tl.store(dst, v + 1, boundary_check=(0, 1))
        src = tl.advance(src, (0, B))
        dst = tl.advance(dst, (0, B))


# --- atomics ------------------------------------------------------------------------------------


@triton.jit
def atomic(x, index, y, N: tl.constexpr, OP: tl.constexpr):
    i = tl.program_id(0) * N + tl.arange(0, N)
    at = y + tl.load(index + i)
    v = tl.load(x + i)
    if OP == "add":
        tl.atomic_add(at, v)
    elif OP == "max":
        tl.atomic_max(at, v)
    elif OP == "min":
        tl.atomic_min(at, v)
    elif OP == "and":
        tl.atomic_and(at, v)
    elif OP == "or":
        tl.atomic_or(at, v)
    elif OP == "xor":
        tl.atomic_xor(at, v)


@triton.jit
def atomic_old(x, y, z, N: tl.constexpr, OP: tl.constexpr):
    """Each lane has its own element; z gets what the atomic returned."""
    i = tl.arange(0, N)
    v = tl.load(x + i)
    if OP == "add":
        old = tl.atomic_add(y + i, v, mask=i % 3 != 0)
    elif OP == "xchg":
        old = tl.atomic_xchg(y + i, v, mask=i % 3 != 0)
    else:
        old = tl.atomic_cas(y + i, tl.full((N,), 3, y.dtype.element_ty), v)
    tl.store(z + i, old, mask=i % 3 != 0)
