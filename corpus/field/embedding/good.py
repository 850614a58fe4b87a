"""Embedding lookup: one program a token, a loop over blocks of features."""

import torch
import triton
import triton.language as tl

BLOCK = 512


@triton.jit
def embedding_kernel(
    ids_ptr, table_ptr, y_ptr, ids_stride, row_stride, col_stride, dim, BLOCK: tl.constexpr
):
    token = tl.program_id(0).to(tl.int64)
    row = tl.load(ids_ptr + token * ids_stride).to(tl.int64)
    for start in range(0, dim, BLOCK):
        cols = start + tl.arange(0, BLOCK).to(tl.int64)
        mask = cols < dim
        x = tl.load(table_ptr + row * row_stride + cols * col_stride, mask=mask, other=0.0)
        tl.store(y_ptr + token * dim + cols, x, mask=mask)


def embedding(ids: torch.Tensor, table: torch.Tensor) -> torch.Tensor:
    """Return the rows `ids` [T] of `table` [V, D]."""
    T, D = ids.shape[0], table.shape[1]
    y = torch.empty((T, D), dtype=table.dtype, device=table.device)
    embedding_kernel[(T,)](ids, table, y, ids.stride(0), *table.stride(), D, BLOCK=BLOCK)
    return y
