"""One of the foreign kernels: its mistake is told in test_foreign_diagnosis.py."""

import torch
import triton
import triton.language as tl


@triton.jit
def softmax2_kernel(x_ptr, y_ptr, sx, sy, M, N, scale, BM: tl.constexpr, BN: tl.constexpr):
    rows = tl.program_id(0).to(tl.int64) * BM + tl.arange(0, BM)
    cols = tl.arange(0, BN)
    keep = (rows < M)[:, None] & (cols < N)[None, :]
    x = tl.load(x_ptr + rows[:, None] * sx + cols[None, :], mask=keep, other=float("-inf")).to(
        tl.float32
    )
    x = tl.where((rows < M)[:, None], x * scale, 0.0)
    x = x - tl.max(x, axis=1)[:, None]
    e = tl.exp(x)
    y = e / tl.sum(e, axis=1)[:, None]
    tl.store(y_ptr + rows[:, None] * sy + cols[None, :], y.to(y_ptr.dtype.element_ty), mask=keep)


def softmax2(x, scale=1.0):
    if x.stride(1) != 1:
        x = x.contiguous()
    M, N = x.shape
    y = torch.empty((M, N), dtype=x.dtype, device=x.device)
    softmax2_kernel[(max(M // 4, 1),)](
        x, y, x.stride(0), y.stride(0), M, N, scale, BM=4, BN=triton.next_power_of_2(N)
    )
    return y
