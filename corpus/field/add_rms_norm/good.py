"""Residual addition and RMS normalisation in one pass: one program a row."""

import torch
import triton
import triton.language as tl


@triton.jit
def add_rms_norm_kernel(
    x_ptr,
    r_ptr,
    w_ptr,
    y_ptr,
    s_ptr,
    x_row_stride,
    r_row_stride,
    s_row_stride,
    y_row_stride,
    n_cols,
    eps,
    BLOCK: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * x_row_stride + cols, mask=mask, other=0.0).to(tl.float32)
    r = tl.load(r_ptr + row * r_row_stride + cols, mask=mask, other=0.0).to(tl.float32)
    w = tl.load(w_ptr + cols, mask=mask, other=0.0).to(tl.float32)
    s = x + r
    tl.store(s_ptr + row * s_row_stride + cols, s.to(s_ptr.dtype.element_ty), mask=mask)
    y = s / tl.sqrt(tl.sum(s * s, axis=0) / n_cols + eps) * w
    tl.store(y_ptr + row * y_row_stride + cols, y.to(y_ptr.dtype.element_ty), mask=mask)


def add_rms_norm(
    x: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor, eps: float = 1e-6
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return (RMS norm of x + residual times weight, x + residual) for [M, N] tensors."""
    if x.stride(1) != 1:
        x = x.contiguous()
    if residual.stride(1) != 1:
        residual = residual.contiguous()
    M, N = x.shape
    y = torch.empty((M, N), dtype=x.dtype, device=x.device)
    total = torch.empty((M, N), dtype=x.dtype, device=x.device)
    add_rms_norm_kernel[(M,)](
        x,
        residual,
        weight.contiguous(),
        y,
        total,
        x.stride(0),
        residual.stride(0),
        total.stride(0),
        y.stride(0),
        N,
        eps,
        BLOCK=triton.next_power_of_2(N),
    )
    return y, total
