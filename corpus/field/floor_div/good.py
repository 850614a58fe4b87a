"""Floor division of integers by positive ones: one program a block of elements."""

import torch
import triton
import triton.language as tl

BLOCK = 1024


@triton.jit
def floor_div_kernel(a_ptr, b_ptr, y_ptr, n, BLOCK: tl.constexpr):
    place = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = place < n
    a = tl.load(a_ptr + place, mask=mask, other=0)
    b = tl.load(b_ptr + place, mask=mask, other=1)
    q = a // b  # truncates towards zero, as in C
    q = tl.where((a < 0) & (q * b != a), q - 1, q)
    tl.store(y_ptr + place, q, mask=mask)


def floor_div(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Return the floor of a / b, elementwise, for integers `a` and positive integers `b`."""
    a, b = a.contiguous(), b.contiguous()
    y = torch.empty_like(a)
    n = a.numel()
    floor_div_kernel[(triton.cdiv(n, BLOCK),)](a, b, y, n, BLOCK=BLOCK)
    return y
