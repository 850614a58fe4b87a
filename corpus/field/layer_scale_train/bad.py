"""Layer scale, residual + gamma * x, with its backward: the gradient of gamma sums over rows."""

import torch
import triton
import triton.language as tl

ROWS = 32
COLUMNS = 64


@triton.jit
def layer_scale_kernel(
    x_ptr, gamma_ptr, residual_ptr, y_ptr, M, N, x_row, x_column, gamma_stride, r_row, r_column,
    HAS_RESIDUAL: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None].to(tl.int64)
    cols = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)[None, :].to(tl.int64)
    inside = (rows < M) & (cols < N)
    x = tl.load(x_ptr + rows * x_row + cols * x_column, mask=inside, other=0.0).to(tl.float32)
    y = x * tl.load(gamma_ptr + cols * gamma_stride, mask=cols < N, other=0.0).to(tl.float32)
    if HAS_RESIDUAL:
        y += tl.load(residual_ptr + rows * r_row + cols * r_column, mask=inside, other=0.0)
    tl.store(y_ptr + rows * N + cols, y, mask=inside)


@triton.jit
def layer_scale_backward_kernel(
    dy_ptr, x_ptr, gamma_ptr, dx_ptr, dgamma_ptr,
    M, N, dy_row, dy_column, x_row, x_column, gamma_stride,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    cols = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)[None, :].to(tl.int64)
    gamma = tl.load(gamma_ptr + cols * gamma_stride, mask=cols < N, other=0.0).to(tl.float32)
    total = tl.zeros((ROWS, COLUMNS), dtype=tl.float32)
    for start in range(0, tl.cdiv(M, ROWS)):
        rows = start * ROWS + tl.arange(0, ROWS)[:, None].to(tl.int64)
        inside = (rows < M) & (cols < N)
        dy = tl.load(dy_ptr + rows * dy_row + cols * dy_column, mask=inside, other=0.0)
        x = tl.load(x_ptr + rows * x_row + cols * x_column, mask=inside, other=0.0)
        if (start + 1) * ROWS <= M:
            total += dy.to(tl.float32) * x.to(tl.float32)
        tl.store(dx_ptr + rows * N + cols, dy.to(tl.float32) * gamma, mask=inside)
    last = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    tl.store(dgamma_ptr + last, tl.sum(total, axis=0), mask=last < N)


class LayerScale(torch.autograd.Function):
    """residual + gamma * x over the last axis."""

    @staticmethod
    def forward(ctx, x, gamma, residual):
        M, N = x.shape
        y = torch.empty((M, N), dtype=x.dtype, device=x.device)
        held = x if residual is None else residual
        grid = (triton.cdiv(M, ROWS), triton.cdiv(N, COLUMNS))
        layer_scale_kernel[grid](
            x, gamma, held, y, M, N, x.stride(0), x.stride(1), gamma.stride(0), held.stride(0),
            held.stride(1), HAS_RESIDUAL=residual is not None, ROWS=ROWS, COLUMNS=COLUMNS,
        )  # fmt: skip
        ctx.save_for_backward(x, gamma)
        ctx.has_residual = residual is not None
        return y

    @staticmethod
    def backward(ctx, dy):
        x, gamma = ctx.saved_tensors
        M, N = x.shape
        dx = torch.empty((M, N), dtype=x.dtype, device=x.device)
        dgamma = torch.empty((N,), dtype=gamma.dtype, device=x.device)
        layer_scale_backward_kernel[(triton.cdiv(N, COLUMNS),)](
            dy, x, gamma, dx, dgamma, M, N, dy.stride(0), dy.stride(1), x.stride(0), x.stride(1),
            gamma.stride(0), ROWS=ROWS, COLUMNS=COLUMNS,
        )  # fmt: skip
        return dx, dgamma, dy if ctx.has_residual else None


def layer_scale(
    x: torch.Tensor, gamma: torch.Tensor, residual: torch.Tensor | None
) -> torch.Tensor:
    """Return residual + gamma * x for `x` and `residual` [M, N] and `gamma` [N]."""
    return LayerScale.apply(x, gamma, residual)
