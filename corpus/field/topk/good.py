"""The K largest of each row with their positions: one program a row; NaN ranks highest."""

import torch
import triton
import triton.language as tl


@triton.jit
def topk_kernel(x_ptr, v_ptr, i_ptr, stride_m, stride_n, n_cols, k, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    place = x_ptr + row * stride_m + cols.to(tl.int64) * stride_n
    x = tl.load(place, mask=cols < n_cols, other=0.0).to(tl.float32)
    odd = x != x
    left = cols < n_cols
    for rank in range(0, k):
        top = tl.max(tl.where(left & (x == x), x, float("-inf")), axis=0)
        odd_left = tl.max((left & odd).to(tl.int32), axis=0) != 0
        best = left & tl.where(odd_left, odd, x == top)
        index = tl.min(tl.where(best, cols, BLOCK), axis=0)
        value = tl.where(odd_left, float("nan"), top)
        tl.store(v_ptr + row * k + rank, value.to(v_ptr.dtype.element_ty))
        tl.store(i_ptr + row * k + rank, index.to(tl.int64))
        left = left & (cols != index)


def topk(x: torch.Tensor, k: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return (values, positions) of the `k` largest of each row of `x` [M, N], largest first."""
    M, N = x.shape
    values = torch.empty((M, k), dtype=x.dtype, device=x.device)
    index = torch.empty((M, k), dtype=torch.int64, device=x.device)
    topk_kernel[(M,)](x, values, index, *x.stride(), N, k, BLOCK=triton.next_power_of_2(N))
    return values, index
