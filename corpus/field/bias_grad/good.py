"""Bias gradient: the sum of each column, one program a block of columns."""

import torch
import triton
import triton.language as tl

BLOCK_M = 16
BLOCK_N = 128


@triton.jit
def bias_grad_kernel(
    dy_ptr, db_ptr, stride_m, stride_n, M, N, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr
):
    cols = tl.program_id(0).to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for start in range(0, M, BLOCK_M):
        rows = start + tl.arange(0, BLOCK_M).to(tl.int64)
        mask = (rows[:, None] < M) & (cols[None, :] < N)
        place = dy_ptr + rows[:, None] * stride_m + cols[None, :] * stride_n
        acc += tl.load(place, mask=mask, other=0.0)
    total = tl.sum(acc.to(tl.float32), axis=0)
    tl.store(db_ptr + cols, total.to(db_ptr.dtype.element_ty), mask=cols < N)


def bias_grad(dy: torch.Tensor) -> torch.Tensor:
    """Return the column sums of `dy` [M, N]."""
    M, N = dy.shape
    db = torch.empty((N,), dtype=dy.dtype, device=dy.device)
    bias_grad_kernel[(triton.cdiv(N, BLOCK_N),)](
        dy, db, *dy.stride(), M, N, BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N
    )
    return db
