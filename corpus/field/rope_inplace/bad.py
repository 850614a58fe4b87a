"""Rotary position embedding in place: one program a token and head."""

import torch
import triton
import triton.language as tl


@triton.jit
def rope_inplace_kernel(
    x_ptr,
    cos_ptr,
    sin_ptr,
    stride_xs,
    stride_xh,
    stride_xd,
    stride_cs,
    stride_cr,
    stride_ss,
    stride_sr,
    heads,
    half,
    BLOCK: tl.constexpr,
):
    pid = tl.program_id(0).to(tl.int64)
    token = pid // heads
    head = pid % heads
    cols = tl.arange(0, BLOCK).to(tl.int64)
    mask = cols < half
    row = x_ptr + token * stride_xs + head * stride_xh
    low = row + cols * stride_xd
    high = row + (cols + half) * stride_xd
    cos = tl.load(cos_ptr + token * stride_cs + cols * stride_cr, mask=mask, other=0.0)
    sin = tl.load(sin_ptr + token * stride_ss + cols * stride_sr, mask=mask, other=0.0)
    a = tl.load(low, mask=mask, other=0.0).to(tl.float32)
    b = tl.load(high, mask=mask, other=0.0).to(tl.float32)
    tl.store(low, (a * cos - b * sin).to(x_ptr.dtype.element_ty))
    tl.store(high, (b * cos + a * sin).to(x_ptr.dtype.element_ty))


def rope_inplace(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> None:
    """Rotate `x` [S, H, D] in place by the angles of `cos` and `sin` [S, D / 2]."""
    S, H, D = x.shape
    half = D // 2
    rope_inplace_kernel[(S * H,)](
        x,
        cos,
        sin,
        *x.stride(),
        *cos.stride(),
        *sin.stride(),
        H,
        half,
        BLOCK=triton.next_power_of_2(half),
    )
