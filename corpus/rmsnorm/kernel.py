"""RMS normalisation with a weight: one program a row, the whole row in one block."""

import torch
import triton
import triton.language as tl


@triton.jit
def rmsnorm_kernel(
    x_ptr, w_ptr, y_ptr, x_row_stride, y_row_stride, n_cols, eps, BLOCK: tl.constexpr
):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * x_row_stride + cols, mask=mask, other=0.0).to(tl.float32)
    w = tl.load(w_ptr + cols, mask=mask, other=0.0).to(tl.float32)
    mean_square = tl.sum(x * x, axis=0) / n_cols
    y = x * (1.0 / tl.sqrt(mean_square + eps)) * w
    tl.store(y_ptr + row * y_row_stride + cols, y.to(y_ptr.dtype.element_ty), mask=mask)


def rmsnorm(x: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    """Return each row of `x` [M, N] over its root mean square, times `weight` [N]."""
    if x.stride(1) != 1:
        x = x.contiguous()
    weight = weight.contiguous()
    rows, width = x.shape
    y = torch.empty((rows, width), dtype=x.dtype, device=x.device)
    block = triton.next_power_of_2(width)
    rmsnorm_kernel[(rows,)](
        x,
        weight,
        y,
        x.stride(0),
        y.stride(0),
        width,
        eps,
        BLOCK=block,
        num_warps=4 if block <= 2048 else 8,
    )
    return y
