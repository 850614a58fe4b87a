"""One of the foreign kernels: its mistake is told in test_foreign_diagnosis.py."""

import torch
import triton
import triton.language as tl


@triton.jit
def scatadd_kernel(x_ptr, i_ptr, w_ptr, o_ptr, sx, sw, T, D, BT: tl.constexpr, BD: tl.constexpr):
    t = tl.program_id(0) * BT + tl.arange(0, BT)
    d = tl.program_id(1) * BD + tl.arange(0, BD)
    idx = tl.load(i_ptr + t, mask=t < T, other=-1)
    w = tl.load(w_ptr + t * sw, mask=t < T, other=0.0).to(tl.float32)
    keep = (t < T)[:, None] & (d < D)[None, :]
    x = tl.load(x_ptr + t[:, None].to(tl.int64) * sx + d[None, :], mask=keep, other=0.0).to(
        tl.float32
    )
    tl.atomic_add(
        o_ptr + tl.maximum(idx, 0)[:, None].to(tl.int64) * D + d[None, :], x * w[:, None], mask=keep
    )


def scatadd(x, index, w, E):
    if x.stride(1) != 1:
        x = x.contiguous()
    T, D = x.shape
    out = torch.zeros((E, D), dtype=torch.float32, device=x.device)
    if T == 0:
        return out
    scatadd_kernel[(triton.cdiv(T, 16), triton.cdiv(D, 32))](
        x, index.contiguous(), w, out, x.stride(0), w.stride(0), T, D, BT=16, BD=32
    )
    return out
