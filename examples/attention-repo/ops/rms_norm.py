"""RMS normalisation with a weight."""

import torch
import triton
import triton.language as tl


@triton.jit
def rms_norm_kernel(x_ptr, w_ptr, y_ptr, x_stride, y_stride, width, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    mask = cols < width
    x = tl.load(x_ptr + row * x_stride + cols, mask=mask, other=0.0).to(tl.float32)
    w = tl.load(w_ptr + cols, mask=mask, other=0.0).to(tl.float32)
    mean_square = tl.sum(x * x, axis=0) / width
    y = x / tl.sqrt(mean_square + eps) * w
    tl.store(y_ptr + row * y_stride + cols, y.to(y_ptr.dtype.element_ty), mask=mask)


def rms_norm(x: torch.Tensor, weight: torch.Tensor, eps: float = 1e-6) -> torch.Tensor:
    """Return each row of `x` [M, N] over its root mean square, times `weight` [N]."""
    if x.stride(1) != 1:
        x = x.contiguous()
    rows, width = x.shape
    y = torch.empty((rows, width), dtype=x.dtype, device=x.device)
    block = triton.next_power_of_2(width)
    rms_norm_kernel[(rows,)](
        x, weight.contiguous(), y, x.stride(0), y.stride(0), width, eps, BLOCK=block
    )
    return y
