"""One of the foreign kernels: its mistake is told in test_foreign_diagnosis.py."""

import torch
import triton
import triton.language as tl


@triton.jit
def lnres_kernel(x_ptr, r_ptr, w_ptr, b_ptr, y_ptr, sx, sr, sy, N, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, N, BLOCK):
        c = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * sx + c, mask=c < N, other=0.0).to(tl.float32)
        r = tl.load(r_ptr + row * sr + c, mask=c < N, other=0.0).to(tl.float32)
        total += x + r
    mean = tl.sum(total, axis=0) / N
    sq = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, N, BLOCK):
        c = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * sx + c, mask=c < N, other=0.0).to(tl.float32)
        r = tl.load(r_ptr + row * sr + c, mask=c < N, other=0.0).to(tl.float32)
        diff = tl.where(c < N, x + r - mean, 0.0)
        sq += diff * diff
    rstd = 1.0 / tl.sqrt(tl.sum(sq, axis=0) / N + eps)
    for start in range(0, N, BLOCK):
        c = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * sx + c, mask=c < N, other=0.0).to(tl.float32)
        r = tl.load(r_ptr + row * sr + c, mask=c < N, other=0.0).to(tl.float32)
        w = tl.load(w_ptr + c, mask=c < N, other=0.0).to(tl.float32)
        b = tl.load(b_ptr + c, mask=c < N, other=0.0).to(tl.float32)
        tl.store(
            y_ptr + row * sy + c,
            ((x + r - mean) * rstd * w + b).to(y_ptr.dtype.element_ty),
            mask=c < N,
        )


def lnres(x, r, w, b, eps=1e-5):
    x = x if x.stride(1) == 1 else x.contiguous()
    r = r if r.stride(1) == 1 else r.contiguous()
    w, b = w.contiguous(), b.contiguous()
    M, N = x.shape
    y = torch.empty((M, N), dtype=x.dtype, device=x.device)
    lnres_kernel[(M,)](x, r, w, b, y, x.stride(0), x.stride(0), y.stride(0), N, eps, BLOCK=256)
    return y
