"""Linear layer x w^T: one program a tile of the output, a loop over tiles of features."""

import torch
import triton
import triton.language as tl

BLOCK = 32


@triton.jit
def linear_kernel(
    x_ptr,
    w_ptr,
    y_ptr,
    M,
    N,
    K,
    stride_xm,
    stride_xk,
    stride_wn,
    stride_wk,
    BLOCK: tl.constexpr,
):
    pid = tl.program_id(0)
    tiles = tl.cdiv(N, BLOCK)
    rows = (pid // tiles).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    cols = (pid % tiles).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    acc = tl.zeros((BLOCK, BLOCK), dtype=tl.float32)
    for start in range(0, K, BLOCK):
        k = start + tl.arange(0, BLOCK).to(tl.int64)
        x_mask = (rows[:, None] < M) & (k[None, :] < K)
        w_mask = (k[:, None] < K) & (cols[None, :] < N)
        x_tile = x_ptr + rows[:, None] * stride_xm + k[None, :] * stride_xk
        w_tile = w_ptr + k[:, None] * stride_wk + cols[None, :] * stride_wn
        x = tl.load(x_tile, mask=x_mask, other=0.0)
        w = tl.load(w_tile, mask=w_mask, other=0.0)
        acc = tl.dot(x, w, acc)
    y_tile = y_ptr + rows[:, None] * N + cols[None, :]
    y_mask = (rows[:, None] < M) & (cols[None, :] < N)
    tl.store(y_tile, acc.to(y_ptr.dtype.element_ty), mask=y_mask)


def linear(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    """Return `x` [M, K] times the transpose of `w` [N, K], accumulated in float32."""
    M, K = x.shape
    N = w.shape[0]
    y = torch.empty((M, N), dtype=x.dtype, device=x.device)
    tiles = triton.cdiv(M, BLOCK) * triton.cdiv(N, BLOCK)
    linear_kernel[(tiles,)](x, w, y, M, N, K, *x.stride(), *w.stride(), BLOCK=BLOCK)
    return y
