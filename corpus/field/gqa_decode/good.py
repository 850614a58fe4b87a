"""Grouped-query attention of one new token: one program a query head, online softmax."""

import torch
import triton
import triton.language as tl

BLOCK_N = 64


@triton.jit
def gqa_decode_kernel(
    q_ptr,
    k_ptr,
    v_ptr,
    o_ptr,
    stride_qb,
    stride_qh,
    stride_qd,
    stride_kb,
    stride_kh,
    stride_kn,
    stride_kd,
    stride_vb,
    stride_vh,
    stride_vn,
    stride_vd,
    stride_ob,
    stride_oh,
    stride_od,
    q_heads,
    kv_heads,
    n_keys,
    head_dim,
    scale,
    BLOCK_N: tl.constexpr,
    BLOCK_D: tl.constexpr,
):
    pid = tl.program_id(0).to(tl.int64)
    batch = pid // q_heads
    head = pid % q_heads
    kv_head = head // (q_heads // kv_heads)
    dims = tl.arange(0, BLOCK_D).to(tl.int64)
    d_mask = dims < head_dim
    q_row = q_ptr + batch * stride_qb + head * stride_qh
    k_base = k_ptr + batch * stride_kb + kv_head * stride_kh
    v_base = v_ptr + batch * stride_vb + kv_head * stride_vh
    q = tl.load(q_row + dims * stride_qd, mask=d_mask, other=0.0).to(tl.float32)

    top = float("-inf")
    total = 0.0
    acc = tl.zeros((BLOCK_D,), dtype=tl.float32)
    for start in range(0, n_keys, BLOCK_N):
        keys = start + tl.arange(0, BLOCK_N).to(tl.int64)
        mask = (keys[:, None] < n_keys) & d_mask[None, :]
        k_block = k_base + keys[:, None] * stride_kn + dims[None, :] * stride_kd
        v_block = v_base + keys[:, None] * stride_vn + dims[None, :] * stride_vd
        k = tl.load(k_block, mask=mask, other=0.0).to(tl.float32)
        v = tl.load(v_block, mask=mask, other=0.0).to(tl.float32)
        scores = tl.sum(k * q[None, :], axis=1) * scale
        scores = tl.where(keys < n_keys, scores, float("-inf"))
        new_top = tl.maximum(top, tl.max(scores, axis=0))
        shift = tl.where(new_top == float("-inf"), 0.0, new_top)
        rescale = tl.exp(top - shift)
        p = tl.exp(scores - shift)
        total = total * rescale + tl.sum(p, axis=0)
        acc = acc * rescale + tl.sum(p[:, None] * v, axis=0)
        top = new_top

    o_row = o_ptr + batch * stride_ob + head * stride_oh
    tl.store(o_row + dims * stride_od, (acc / total).to(o_ptr.dtype.element_ty), mask=d_mask)


def gqa_decode(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """Return attention of `q` [B, Hq, D] over `k`, `v` [B, Hkv, N, D]; Hkv divides Hq."""
    B, Hq, D = q.shape
    Hkv, N = k.shape[1], k.shape[2]
    o = torch.empty((B, Hq, D), dtype=q.dtype, device=q.device)
    gqa_decode_kernel[(B * Hq,)](
        q,
        k,
        v,
        o,
        *q.stride(),
        *k.stride(),
        *v.stride(),
        *o.stride(),
        Hq,
        Hkv,
        N,
        D,
        D**-0.5,
        BLOCK_N=BLOCK_N,
        BLOCK_D=triton.next_power_of_2(D),
    )
    return o
