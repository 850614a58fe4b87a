"""GELU in its tanh form, elementwise."""

import torch
import triton
import triton.language as tl

BLOCK = 1024


@triton.jit
def _one_plus_tanh(u):
    # 1 + tanh(u) = 2 / (1 + exp(-2u)), with no cancellation at negative u and no overflow.
    decay = tl.exp(-2.0 * tl.abs(u))
    return tl.where(u < 0, decay, 1.0) * 2.0 / (1.0 + decay)


@triton.jit
def gelu_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
    inner = 0.7978845608028654 * (x + 0.044715 * x * x * x)
    y = x * _one_plus_tanh(inner)
    tl.store(y_ptr + offsets, y.to(y_ptr.dtype.element_ty), mask=mask)


def gelu(x: torch.Tensor) -> torch.Tensor:
    """Return the GELU of `x` (tanh form), computed in float32."""
    x = x.contiguous()
    y = torch.empty_like(x)
    n = x.numel()
    gelu_kernel[(triton.cdiv(n, BLOCK),)](x, y, n, BLOCK=BLOCK)
    return y
