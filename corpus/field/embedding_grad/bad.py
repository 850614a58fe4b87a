"""Gradient of an embedding table: one program a token, added atomically into float32 rows."""

import torch
import triton
import triton.language as tl

BLOCK = 512


@triton.jit
def embedding_grad_kernel(
    ids_ptr, dy_ptr, dw_ptr, ids_stride, row_stride, col_stride, dim, BLOCK: tl.constexpr
):
    token = tl.program_id(0).to(tl.int64)
    row = tl.load(ids_ptr + token * ids_stride).to(tl.int64)
    for start in range(0, dim, BLOCK):
        cols = start + tl.arange(0, BLOCK).to(tl.int64)
        mask = cols < dim
        place = dy_ptr + token * row_stride + cols * col_stride
        dy = tl.load(place, mask=mask, other=0.0).to(tl.float32)
        target = dw_ptr + row * dim + cols
        tl.store(target, tl.load(target, mask=mask, other=0.0) + dy, mask=mask)


def embedding_grad(dy: torch.Tensor, ids: torch.Tensor, rows: int) -> torch.Tensor:
    """Return the sum of the rows of `dy` [T, D] by their `ids` [T], as float32 [rows, D]."""
    T, D = dy.shape
    dw = torch.zeros((rows, D), dtype=torch.float32, device=dy.device)
    embedding_grad_kernel[(T,)](ids, dy, dw, ids.stride(0), *dy.stride(), D, BLOCK=BLOCK)
    return dw
