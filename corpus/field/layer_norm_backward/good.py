"""Input gradient of layer normalisation: one program a row, statistics saved by the forward."""

import torch
import triton
import triton.language as tl


@triton.jit
def layer_norm_backward_kernel(
    dy_ptr,
    x_ptr,
    w_ptr,
    mean_ptr,
    rstd_ptr,
    dx_ptr,
    dy_row_stride,
    x_row_stride,
    dx_row_stride,
    n_cols,
    BLOCK: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    dy = tl.load(dy_ptr + row * dy_row_stride + cols, mask=mask, other=0.0).to(tl.float32)
    x = tl.load(x_ptr + row * x_row_stride + cols, mask=mask, other=0.0).to(tl.float32)
    w = tl.load(w_ptr + cols, mask=mask, other=0.0).to(tl.float32)
    mean = tl.load(mean_ptr + row)
    rstd = tl.load(rstd_ptr + row)
    normal = tl.where(mask, (x - mean) * rstd, 0.0)
    wdy = w * dy
    along = tl.sum(wdy * normal, axis=0) / n_cols
    level = tl.sum(wdy, axis=0) / n_cols
    dx = (wdy - level - normal * along) * rstd
    tl.store(dx_ptr + row * dx_row_stride + cols, dx.to(dx_ptr.dtype.element_ty), mask=mask)


def layer_norm_backward(
    dy: torch.Tensor,
    x: torch.Tensor,
    weight: torch.Tensor,
    mean: torch.Tensor,
    rstd: torch.Tensor,
) -> torch.Tensor:
    """Return dx of y = (x - mean) * rstd * weight + bias for `dy`, `x` [M, N]; mean, rstd [M]."""
    if dy.stride(1) != 1:
        dy = dy.contiguous()
    if x.stride(1) != 1:
        x = x.contiguous()
    M, N = x.shape
    dx = torch.empty((M, N), dtype=x.dtype, device=x.device)
    layer_norm_backward_kernel[(M,)](
        dy,
        x,
        weight.contiguous(),
        mean.contiguous(),
        rstd.contiguous(),
        dx,
        dy.stride(0),
        x.stride(0),
        dx.stride(0),
        N,
        BLOCK=triton.next_power_of_2(N),
    )
    return dx
