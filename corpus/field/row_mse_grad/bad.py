"""Gradient of the mean squared error of rows: one program a row."""

import torch
import triton
import triton.language as tl


@triton.jit
def row_mse_grad_kernel(
    g_ptr, x_ptr, t_ptr, dx_ptr, x_row_stride, t_row_stride, n_cols, BLOCK: tl.constexpr
):
    row = tl.program_id(0).to(tl.int64)
    g = tl.load(g_ptr + row).to(tl.float32)
    for start in range(0, n_cols, BLOCK):
        cols = start + tl.arange(0, BLOCK).to(tl.int64)
        mask = cols < n_cols
        x = tl.load(x_ptr + row * x_row_stride + cols, mask=mask, other=0.0).to(tl.float32)
        t = tl.load(t_ptr + row * t_row_stride + cols, mask=mask, other=0.0).to(tl.float32)
        dx = (x - t) * (2.0 / n_cols) * g
        tl.store(dx_ptr + row * n_cols + cols, dx.to(dx_ptr.dtype.element_ty), mask=mask)


def row_mse_grad(g: torch.Tensor, x: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    """Return dx of loss[m] = mean((x[m] - target[m])^2) for incoming gradients `g` [M]."""
    if x.stride(1) != 1:
        x = x.contiguous()
    if target.stride(1) != 1:
        target = target.contiguous()
    M, N = x.shape
    dx = torch.empty((M, N), dtype=x.dtype, device=x.device)
    row_mse_grad_kernel[(M,)](g, x, target, dx, x.stride(0), target.stride(0), N, BLOCK=1024)
    return dx
