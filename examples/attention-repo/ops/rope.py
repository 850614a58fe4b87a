"""Rotary position embedding: each head's two halves are rotated by an angle per position."""

import torch
import triton
import triton.language as tl


@triton.jit
def rope_kernel(
    x_ptr,
    cos_ptr,
    sin_ptr,
    y_ptr,
    stride_xb,
    stride_xh,
    stride_xs,
    stride_xd,
    heads,
    seq_len,
    half,
    BLOCK: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    position = row % seq_len
    head = row // seq_len % heads
    batch = row // seq_len // heads
    cols = tl.arange(0, BLOCK).to(tl.int64)
    mask = cols < half
    x_row = x_ptr + batch * stride_xb + head * stride_xh + position * stride_xs
    first = tl.load(x_row + cols * stride_xd, mask=mask, other=0.0).to(tl.float32)
    second = tl.load(x_row + (cols + half) * stride_xd, mask=mask, other=0.0).to(tl.float32)
    cos = tl.load(cos_ptr + position * half + cols, mask=mask, other=0.0).to(tl.float32)
    sin = tl.load(sin_ptr + position * half + cols, mask=mask, other=0.0).to(tl.float32)
    y_row = y_ptr + row * half * 2
    out = y_ptr.dtype.element_ty
    tl.store(y_row + cols, (first * cos - second * sin).to(out), mask=mask)
    tl.store(y_row + half + cols, (second * cos + first * sin).to(out), mask=mask)


def rope(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    """Return `x` [B, H, S, D] rotated by the angles of `cos` and `sin` [S, D / 2]."""
    B, H, S, D = x.shape
    y = torch.empty((B, H, S, D), dtype=x.dtype, device=x.device)
    rope_kernel[(B * H * S,)](
        x,
        cos.contiguous(),
        sin.contiguous(),
        y,
        *x.stride(),
        H,
        S,
        D // 2,
        BLOCK=triton.next_power_of_2(D // 2),
    )
    return y
