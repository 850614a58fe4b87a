"""One of the foreign kernels: its mistake is told in test_foreign_diagnosis.py."""

import torch
import triton
import triton.language as tl


@triton.jit
def segsum_kernel(x_ptr, cu_ptr, y_ptr, sx, D, BT: tl.constexpr, BD: tl.constexpr):
    seg = tl.program_id(0)
    d = tl.program_id(1) * BD + tl.arange(0, BD)
    begin = tl.load(cu_ptr + seg)
    end = tl.load(cu_ptr + seg + 1)
    acc = tl.zeros((BD,), dtype=tl.float32)
    for start in range(begin, end - 1, BT):
        t = start + tl.arange(0, BT)
        keep = (t < end)[:, None] & (d < D)[None, :]
        x = tl.load(x_ptr + t[:, None].to(tl.int64) * sx + d[None, :], mask=keep, other=0.0).to(
            tl.float32
        )
        acc += tl.sum(x, axis=0)
    tl.store(y_ptr + seg.to(tl.int64) * D + d, acc.to(y_ptr.dtype.element_ty), mask=d < D)


def segsum(x, cu):
    if x.stride(1) != 1:
        x = x.contiguous()
    D = x.shape[1]
    NS = cu.shape[0] - 1
    y = torch.empty((NS, D), dtype=x.dtype, device=x.device)
    segsum_kernel[(NS, triton.cdiv(D, 64))](x, cu.contiguous(), y, x.stride(0), D, BT=16, BD=64)
    return y
