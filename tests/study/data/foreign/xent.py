"""One of the foreign kernels: its mistake is told in test_foreign_diagnosis.py."""

import torch
import triton
import triton.language as tl


@triton.jit
def xent_kernel(x_ptr, lab_ptr, loss_ptr, sx, V, ignore, smooth, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    label = tl.load(lab_ptr + row)
    if label == -1:
        tl.store(loss_ptr + row, 0.0)
    else:
        m = float("-inf")
        d = 0.0
        total = 0.0
        for start in range(0, V, BLOCK):
            cols = start + tl.arange(0, BLOCK)
            keep = cols < V
            x = tl.load(x_ptr + row * sx + cols, mask=keep, other=float("-inf")).to(tl.float32)
            new = tl.maximum(m, tl.max(x, axis=0))
            d = d * tl.exp(m - new) + tl.sum(tl.exp(x - new), axis=0)
            m = new
            total += tl.sum(tl.where(keep, x, 0.0), axis=0)
        lse = m + tl.log(d)
        picked = tl.load(x_ptr + row * sx + tl.maximum(label, 0)).to(tl.float32)
        loss = (1.0 - smooth) * (lse - picked) + smooth * (lse - total / V)
        tl.store(loss_ptr + row, loss)


def xent(logits, labels, smooth=0.0):
    if logits.stride(1) != 1:
        logits = logits.contiguous()
    M, V = logits.shape
    loss = torch.empty((M,), dtype=torch.float32, device=logits.device)
    xent_kernel[(M,)](
        logits, labels.contiguous(), loss, logits.stride(0), V, -100, smooth, BLOCK=256
    )
    return loss
