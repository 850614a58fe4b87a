"""Matrix transpose into a dense result: one program a square tile."""

import torch
import triton
import triton.language as tl

BLOCK = 32


@triton.jit
def transpose_kernel(x_ptr, y_ptr, stride_m, stride_n, M, N, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    tiles = tl.cdiv(N, BLOCK)
    rows = (pid // tiles).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    cols = (pid % tiles).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = (rows[:, None] < M) & (cols[None, :] < N)
    place = x_ptr + rows[:, None] * stride_m + cols[None, :] * stride_n
    x = tl.load(place, mask=mask, other=0.0)
    tl.store(y_ptr + cols[None, :] * M + rows[:, None], x, mask=mask)


def transpose(x: torch.Tensor) -> torch.Tensor:
    """Return the transpose of `x` [M, N] as a dense [N, M] tensor."""
    M, N = x.shape
    y = torch.empty((N, M), dtype=x.dtype, device=x.device)
    tiles = triton.cdiv(M, BLOCK) * triton.cdiv(N, BLOCK)
    transpose_kernel[(tiles,)](x, y, *x.stride(), M, N, BLOCK=BLOCK)
    return y
