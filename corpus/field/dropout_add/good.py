"""Dropout with a given mask, scaling and residual addition: one program a block of elements."""

import torch
import triton
import triton.language as tl

BLOCK = 1024


@triton.jit
def dropout_add_kernel(
    x_ptr, keep_ptr, r_ptr, y_ptr, n, scale, DROPS: tl.constexpr, BLOCK: tl.constexpr
):
    place = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = place < n
    x = tl.load(x_ptr + place, mask=mask, other=0.0).to(tl.float32)
    r = tl.load(r_ptr + place, mask=mask, other=0.0).to(tl.float32)
    if DROPS:
        keep = tl.load(keep_ptr + place, mask=mask, other=0) != 0
        y = tl.where(keep, x * scale, 0.0) + r
    else:
        y = x + r
    tl.store(y_ptr + place, y.to(y_ptr.dtype.element_ty), mask=mask)


def dropout_add(
    x: torch.Tensor, keep: torch.Tensor, residual: torch.Tensor, p: float
) -> torch.Tensor:
    """Return x / (1 - p) where `keep`, else 0, plus the residual; with p = 0 all is kept."""
    x, keep, residual = x.contiguous(), keep.contiguous(), residual.contiguous()
    y = torch.empty_like(x)
    n = x.numel()
    dropout_add_kernel[(triton.cdiv(n, BLOCK),)](
        x, keep, residual, y, n, 1.0 / (1.0 - p), DROPS=p > 0, BLOCK=BLOCK
    )
    return y
