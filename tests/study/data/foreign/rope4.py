"""One of the foreign kernels: its mistake is told in test_foreign_diagnosis.py."""

import torch
import triton
import triton.language as tl


@triton.jit
def rope4_kernel(
    x_ptr,
    cos_ptr,
    sin_ptr,
    y_ptr,
    sxb,
    sxs,
    sxh,
    sxd,
    sc,
    S,
    H,
    D,
    INVERSE: tl.constexpr,
    BLOCK: tl.constexpr,
):
    bs = tl.program_id(0)
    h = tl.program_id(1)
    b = bs // S
    s = bs % S
    p = bs // H % S
    half = D // 2
    i = tl.arange(0, BLOCK)
    keep = i < half
    base = x_ptr + b.to(tl.int64) * sxb + s.to(tl.int64) * sxs + h * sxh
    x1 = tl.load(base + i * sxd, mask=keep, other=0.0).to(tl.float32)
    x2 = tl.load(base + (i + half) * sxd, mask=keep, other=0.0).to(tl.float32)
    c = tl.load(cos_ptr + p * sc + i, mask=keep, other=0.0)
    n = tl.load(sin_ptr + s * sc + i, mask=keep, other=0.0)
    if INVERSE:
        n = -n
    out = y_ptr + (bs.to(tl.int64) * H + h) * D
    tl.store(out + i, (x1 * c - x2 * n).to(y_ptr.dtype.element_ty), mask=keep)
    tl.store(out + half + i, (x2 * c + x1 * n).to(y_ptr.dtype.element_ty), mask=keep)


def rope4(x, cos, sin, inverse=False):
    B, S, H, D = x.shape
    cos, sin = cos.contiguous(), sin.contiguous()
    y = torch.empty((B, S, H, D), dtype=x.dtype, device=x.device)
    rope4_kernel[(B * S, H)](
        x,
        cos,
        sin,
        y,
        *x.stride(),
        cos.stride(0),
        S,
        H,
        D,
        INVERSE=inverse,
        BLOCK=triton.next_power_of_2(D // 2),
    )
    return y
