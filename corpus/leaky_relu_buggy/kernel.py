"""Leaky ReLU, elementwise."""

import torch
import triton
import triton.language as tl

BLOCK = 1024


@triton.jit
def leaky_relu_kernel(x_ptr, y_ptr, n, alpha, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
    y = tl.where(x < 0, x * alpha, x)
    tl.store(y_ptr + offsets, y.to(y_ptr.dtype.element_ty), mask=mask)


def leaky_relu(x: torch.Tensor, alpha: float = 0.1) -> torch.Tensor:
    """Return `x` with its negative elements multiplied by `alpha`, computed in float32."""
    x = x.contiguous()
    y = torch.empty_like(x)
    n = x.numel()
    leaky_relu_kernel[(triton.cdiv(n, BLOCK),)](x, y, n, alpha, BLOCK=BLOCK)
    return y
