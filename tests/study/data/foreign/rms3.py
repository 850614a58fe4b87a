"""One of the foreign kernels: its mistake is told in test_foreign_diagnosis.py."""

import torch
import triton
import triton.language as tl


@triton.jit
def rms3_kernel(x_ptr, w_ptr, y_ptr, sxb, sxs, sxh, sw, syb, sys, S, H, eps, BLOCK: tl.constexpr):
    b = tl.program_id(0)
    s = tl.program_id(1)
    x_row = x_ptr + b.to(tl.int64) * sxb + s.to(tl.int64) * sxs
    y_row = y_ptr + (b.to(tl.int64) * S + s) * sys
    acc = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, H, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_row + cols * sxh, mask=cols < H, other=1.0).to(tl.float32)
        acc += x * x
    rstd = 1.0 / tl.sqrt(tl.sum(acc, axis=0) / H + eps)
    for start in range(0, H, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        keep = cols < H
        x = tl.load(x_row + cols * sxh, mask=keep, other=0.0).to(tl.float32)
        w = tl.load(w_ptr + cols * sw, mask=keep, other=0.0).to(tl.float32)
        tl.store(y_row + cols, (x * rstd * w).to(y_ptr.dtype.element_ty), mask=keep)


def rms3(x, w, eps=1e-6):
    B, S, H = x.shape
    y = torch.empty((B, S, H), dtype=x.dtype, device=x.device)
    rms3_kernel[(B, S)](
        x, w, y, x.stride(0), x.stride(1), x.stride(2), w.stride(0), S * H, H, S, H, eps, BLOCK=128
    )
    return y
