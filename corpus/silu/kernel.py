"""SiLU (swish), elementwise."""

import torch
import triton
import triton.language as tl

BLOCK = 1024


@triton.jit
def _sigmoid(x):
    # exp of a negative number cannot overflow, whichever the sign of x.
    decay = tl.exp(-tl.abs(x))
    return tl.where(x < 0, decay, 1.0) / (1.0 + decay)


@triton.jit
def silu_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
    y = x * _sigmoid(x)
    tl.store(y_ptr + offsets, y.to(y_ptr.dtype.element_ty), mask=mask)


def silu(x: torch.Tensor) -> torch.Tensor:
    """Return the SiLU of `x`, computed in float32."""
    x = x.contiguous()
    y = torch.empty_like(x)
    n = x.numel()
    silu_kernel[(triton.cdiv(n, BLOCK),)](x, y, n, BLOCK=BLOCK)
    return y
