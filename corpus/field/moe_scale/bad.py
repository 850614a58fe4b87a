"""Scale each token by its expert's weights; tokens that were dropped give zeros."""

import torch
import triton
import triton.language as tl


@triton.jit
def moe_scale_kernel(
    x_ptr,
    expert_ptr,
    scale_ptr,
    y_ptr,
    stride_xt,
    stride_xd,
    expert_stride,
    stride_se,
    stride_sd,
    dim,
    BLOCK: tl.constexpr,
):
    token = tl.program_id(0).to(tl.int64)
    expert = tl.load(expert_ptr + token * expert_stride).to(tl.int64)
    cols = tl.arange(0, BLOCK).to(tl.int64)
    mask = cols < dim
    x = tl.load(x_ptr + token * stride_xt + cols * stride_xd, mask=mask, other=0.0)
    scale = tl.load(scale_ptr + expert * stride_se + cols * stride_sd, mask=mask, other=0.0)
    y = x.to(tl.float32) * scale.to(tl.float32)
    tl.store(y_ptr + token * dim + cols, y.to(y_ptr.dtype.element_ty), mask=mask)


def moe_scale(x: torch.Tensor, expert: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    """Return `x` [T, D] times the row of `scale` [E, D] of its expert [T]; -1 gives zeros."""
    T, D = x.shape
    y = torch.empty((T, D), dtype=x.dtype, device=x.device)
    moe_scale_kernel[(T,)](
        x,
        expert,
        scale,
        y,
        *x.stride(),
        expert.stride(0),
        *scale.stride(),
        D,
        BLOCK=triton.next_power_of_2(D),
    )
    return y
