"""ReLU, elementwise."""

import torch
import triton
import triton.language as tl

BLOCK = 1024


@triton.jit
def relu_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
    y = tl.where(x < 0, 0.0, x)  # keeps NaN, as a maximum with 0 would not
    tl.store(y_ptr + offsets, y.to(y_ptr.dtype.element_ty), mask=mask)


def relu(x: torch.Tensor) -> torch.Tensor:
    """Return `x` with its negative elements replaced by 0; NaN stays NaN."""
    x = x.contiguous()
    y = torch.empty_like(x)
    n = x.numel()
    relu_kernel[(triton.cdiv(n, BLOCK),)](x, y, n, BLOCK=BLOCK)
    return y
