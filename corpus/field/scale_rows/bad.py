"""Multiply each row by its own factor: one program a block of a row."""

import torch
import triton
import triton.language as tl

BLOCK = 256


@triton.jit
def scale_rows_kernel(
    x_ptr, s_ptr, y_ptr, stride_m, stride_n, s_stride, n_cols, BLOCK: tl.constexpr
):
    row = tl.program_id(1).to(tl.int64)
    cols = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK).to(tl.int64)
    mask = cols < n_cols
    s = tl.load(s_ptr + row * s_stride).to(tl.float32)
    x = tl.load(x_ptr + row * stride_m + cols * stride_n, mask=mask, other=0.0).to(tl.float32)
    tl.store(y_ptr + row * n_cols + cols, (x * s).to(y_ptr.dtype.element_ty), mask=mask)


def scale_rows(x: torch.Tensor, s: torch.Tensor) -> torch.Tensor:
    """Return `x` [M, N] with each row times its factor in `s` [M]."""
    M, N = x.shape
    y = torch.empty((M, N), dtype=x.dtype, device=x.device)
    grid = (triton.cdiv(N, BLOCK), M)
    scale_rows_kernel[grid](x, s, y, *x.stride(), s.stride(0), N, BLOCK=BLOCK)
    return y
