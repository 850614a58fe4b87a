"""Running sum along rows: one program a row, a carry from block to block."""

import torch
import triton
import triton.language as tl

BLOCK = 128


@triton.jit
def cumsum_kernel(x_ptr, y_ptr, stride_m, stride_n, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    carry = 0.0
    for start in range(0, n_cols, BLOCK):
        cols = start + tl.arange(0, BLOCK).to(tl.int64)
        mask = cols < n_cols
        place = x_ptr + row * stride_m + cols * stride_n
        x = tl.load(place, mask=mask, other=0.0).to(tl.float32)
        y = tl.cumsum(x, axis=0) + carry
        tl.store(y_ptr + row * n_cols + cols, y.to(y_ptr.dtype.element_ty), mask=mask)
        carry = tl.sum(x, axis=0)


def cumsum(x: torch.Tensor) -> torch.Tensor:
    """Return the running sums of the rows of `x` [M, N], added up in float32."""
    M, N = x.shape
    y = torch.empty((M, N), dtype=x.dtype, device=x.device)
    cumsum_kernel[(M,)](x, y, *x.stride(), N, BLOCK=BLOCK)
    return y
