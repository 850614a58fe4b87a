"""Quantise rows to int8 with a scale for each group of columns: one program a tile of groups."""

import torch
import triton
import triton.language as tl

TILE = 128


@triton.jit
def group_quant_kernel(
    x_ptr,
    q_ptr,
    s_ptr,
    stride_m,
    stride_n,
    width,
    GROUP: tl.constexpr,
    TILE: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    for start in range(0, width, TILE):
        groups = start // GROUP + tl.arange(0, TILE // GROUP)[:, None]
        cols = groups.to(tl.int64) * GROUP + tl.arange(0, GROUP)[None, :]
        mask = cols < width
        x = tl.load(x_ptr + row * stride_m + cols * stride_n, mask=mask, other=0.0).to(tl.float32)
        largest = tl.max(tl.max(tl.abs(x), axis=1), axis=0)
        scale = tl.where(largest < 1e-30, 1.0, largest / 127.0)
        q = tl.floor(x / scale + 0.5)
        tl.store(q_ptr + row * width + cols, q.to(tl.int8), mask=mask)
        s_mask = groups * GROUP < width
        tl.store(s_ptr + row * (width // GROUP) + groups, scale, mask=s_mask)


def group_quant(x: torch.Tensor, group: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return (int8 values, float32 scales) of `x` [M, N]; `group` divides 128 and N."""
    M, N = x.shape
    q = torch.empty((M, N), dtype=torch.int8, device=x.device)
    s = torch.empty((M, N // group), dtype=torch.float32, device=x.device)
    group_quant_kernel[(M,)](x, q, s, *x.stride(), N, GROUP=group, TILE=TILE)
    return q, s
