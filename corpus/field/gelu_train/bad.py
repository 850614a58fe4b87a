"""GELU, exact and by tanh, with its backward: flat blocks of a contiguous copy."""

import torch
import triton
import triton.language as tl


@triton.jit
def tanh(x):
    # By exp of a negative number only: it cannot overflow.
    e = tl.exp(-2.0 * tl.abs(x))
    return tl.where(x < 0, -1.0, 1.0) * (1.0 - e) / (1.0 + e)


@triton.jit
def gelu_kernel(x_ptr, y_ptr, count, APPROXIMATE: tl.constexpr, BLOCK: tl.constexpr):
    place = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = place < count
    x = tl.load(x_ptr + place, mask=inside, other=0.0).to(tl.float32)
    if APPROXIMATE:
        y = 0.5 * x * (1.0 + tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)))
    else:
        y = 0.5 * x * (1.0 + tl.erf(x * 0.7071067811865476))
    tl.store(y_ptr + place, y, mask=inside)


@triton.jit
def gelu_backward_kernel(
    dy_ptr, x_ptr, dx_ptr, count, APPROXIMATE: tl.constexpr, BLOCK: tl.constexpr
):
    place = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = place < count
    dy = tl.load(dy_ptr + place, mask=inside, other=0.0).to(tl.float32)
    x = tl.load(x_ptr + place, mask=inside, other=0.0).to(tl.float32)
    if APPROXIMATE:
        t = tanh(0.7978845608028654 * (x + 0.044715 * x * x * x))
        inner = 0.7978845608028654 * (1.0 + 0.044715 * x * x)
        slope = 0.5 * (1.0 + t) + 0.5 * x * (1.0 - t * t) * inner
    else:
        density = 0.3989422804014327 * tl.exp(-0.5 * x * x)
        slope = 0.5 * (1.0 + tl.erf(x * 0.7071067811865476)) + x * density
    tl.store(dx_ptr + place, dy * slope, mask=inside)


class Gelu(torch.autograd.Function):
    """GELU of a contiguous tensor."""

    @staticmethod
    def forward(ctx, x: torch.Tensor, approximate: bool) -> torch.Tensor:
        y = torch.empty_like(x)
        count = x.numel()
        gelu_kernel[(triton.cdiv(count, 256),)](x, y, count, APPROXIMATE=approximate, BLOCK=256)
        ctx.save_for_backward(x)
        ctx.approximate = approximate
        return y

    @staticmethod
    def backward(ctx, dy: torch.Tensor):
        (x,) = ctx.saved_tensors
        dx = torch.empty_like(x)
        count = x.numel()
        gelu_backward_kernel[(triton.cdiv(count, 256),)](
            dy.contiguous(), x, dx, count, APPROXIMATE=ctx.approximate, BLOCK=256
        )
        return dx, None


def gelu(x: torch.Tensor, approximate: bool) -> torch.Tensor:
    """Return GELU of `x`, by tanh when `approximate`."""
    return Gelu.apply(x.contiguous(), approximate)
