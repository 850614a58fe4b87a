"""Sum of the rows of each segment: one program a segment."""

import torch
import triton
import triton.language as tl


@triton.jit
def segment_sum_kernel(
    x_ptr, cu_ptr, y_ptr, stride_xt, stride_xd, cu_stride, dim, BLOCK: tl.constexpr
):
    segment = tl.program_id(0).to(tl.int64)
    first = tl.load(cu_ptr + segment * cu_stride)
    last = tl.load(cu_ptr + (segment + 1) * cu_stride)
    if first == last:
        return
    cols = tl.arange(0, BLOCK).to(tl.int64)
    mask = cols < dim
    acc = tl.zeros((BLOCK,), dtype=tl.float32)
    place = x_ptr + first.to(tl.int64) * stride_xt + cols * stride_xd
    for _ in range(first, last):
        acc += tl.load(place, mask=mask, other=0.0).to(tl.float32)
        place += stride_xt
    tl.store(y_ptr + segment * dim + cols, acc.to(y_ptr.dtype.element_ty), mask=mask)


def segment_sum(x: torch.Tensor, cu: torch.Tensor) -> torch.Tensor:
    """Return the sums of rows cu[i] .. cu[i + 1] - 1 of `x` [T, D], for `cu` [segments + 1]."""
    segments, D = cu.shape[0] - 1, x.shape[1]
    y = torch.empty((segments, D), dtype=x.dtype, device=x.device)
    segment_sum_kernel[(segments,)](
        x, cu, y, *x.stride(), cu.stride(0), D, BLOCK=triton.next_power_of_2(D)
    )
    return y
