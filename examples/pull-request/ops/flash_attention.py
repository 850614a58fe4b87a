"""Flash attention for prefill: one pass over the keys, nothing of size S x S in memory."""

import torch
import triton
import triton.language as tl

from .softmax_state import absorb

BLOCK_M = 64
BLOCK_N = 64


@triton.jit
def flash_attention_kernel(
    q_ptr,
    k_ptr,
    v_ptr,
    o_ptr,
    stride_qb,
    stride_qh,
    stride_qs,
    stride_qd,
    stride_kb,
    stride_kh,
    stride_ks,
    stride_kd,
    stride_vb,
    stride_vh,
    stride_vs,
    stride_vd,
    stride_ob,
    stride_oh,
    stride_os,
    stride_od,
    heads,
    seq_len,
    scale,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    HEAD_DIM: tl.constexpr,
):
    pid = tl.program_id(0)
    blocks = tl.cdiv(seq_len, BLOCK_M)
    group = (pid // blocks).to(tl.int64)
    batch = group // heads
    head = group % heads
    rows = (pid % blocks).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
    block = tl.arange(0, BLOCK_N).to(tl.int64)
    dims = tl.arange(0, HEAD_DIM).to(tl.int64)
    row_mask = rows[:, None] < seq_len

    q_rows = q_ptr + batch * stride_qb + head * stride_qh + rows[:, None] * stride_qs
    q = tl.load(q_rows + dims[None, :] * stride_qd, mask=row_mask, other=0.0)
    k_head = k_ptr + batch * stride_kb + head * stride_kh + dims[None, :] * stride_kd
    v_head = v_ptr + batch * stride_vb + head * stride_vh + dims[None, :] * stride_vd

    top = tl.full((BLOCK_M,), float("-inf"), dtype=tl.float32)
    total = tl.zeros((BLOCK_M,), dtype=tl.float32)
    acc = tl.zeros((BLOCK_M, HEAD_DIM), dtype=tl.float32)
    # Full blocks of keys need no mask; only the last block may be partial.
    full = seq_len // BLOCK_N * BLOCK_N
    for start in range(0, full, BLOCK_N):
        keys = start + block
        k = tl.load(k_head + keys[:, None] * stride_ks)
        v = tl.load(v_head + keys[:, None] * stride_vs)
        scores = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
        top, total, acc = absorb(scores, v, top, total, acc)
    if full < seq_len:
        keys = full + block
        key_mask = keys[:, None] < seq_len
        k = tl.load(k_head + keys[:, None] * stride_ks, mask=key_mask, other=0.0)
        v = tl.load(v_head + keys[:, None] * stride_vs, mask=key_mask, other=0.0)
        scores = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
        top, total, acc = absorb(scores, v, top, total, acc)

    o_rows = o_ptr + batch * stride_ob + head * stride_oh + rows[:, None] * stride_os
    o = acc / total[:, None]
    tl.store(o_rows + dims[None, :] * stride_od, o.to(o_ptr.dtype.element_ty), mask=row_mask)


def flash_attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """Return softmax(q k^T / sqrt(D)) v for `q`, `k`, `v` [B, H, S, D]; D is a power of two."""
    B, H, S, D = q.shape
    o = torch.empty((B, H, S, D), dtype=q.dtype, device=q.device)
    flash_attention_kernel[(triton.cdiv(S, BLOCK_M) * B * H,)](
        q,
        k,
        v,
        o,
        *q.stride(),
        *k.stride(),
        *v.stride(),
        *o.stride(),
        H,
        S,
        D**-0.5,
        BLOCK_M=BLOCK_M,
        BLOCK_N=BLOCK_N,
        HEAD_DIM=D,
        num_stages=2,
    )
    return o
