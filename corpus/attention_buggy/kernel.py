"""Attention in two passes: one program a query row, which sees the keys block by block."""

import torch
import triton
import triton.language as tl

BLOCK_N = 64


@triton.jit
def _scores(q, k_ptr, keys, dims, n_keys, head_dim, stride_n, stride_d, scale):
    mask = (keys[:, None] < n_keys) & (dims[None, :] < head_dim)
    k = tl.load(k_ptr + keys[:, None] * stride_n + dims[None, :] * stride_d, mask=mask, other=0.0)
    scores = tl.sum(k.to(tl.float32) * q[None, :], axis=1) * scale
    return tl.where(keys < n_keys, scores, float("-inf"))


@triton.jit
def attention_kernel(
    q_ptr,
    k_ptr,
    v_ptr,
    o_ptr,
    stride_qb,
    stride_qh,
    stride_qm,
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
    stride_om,
    stride_od,
    heads,
    n_queries,
    n_keys,
    head_dim,
    scale,
    BLOCK_N: tl.constexpr,
    BLOCK_D: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    query = row % n_queries
    head = row // n_queries % heads
    batch = row // n_queries // heads
    dims = tl.arange(0, BLOCK_D).to(tl.int64)
    block = tl.arange(0, BLOCK_N).to(tl.int64)
    d_mask = dims < head_dim
    q_row = q_ptr + batch * stride_qb + head * stride_qh + query * stride_qm
    k_base = k_ptr + batch * stride_kb + head * stride_kh
    v_base = v_ptr + batch * stride_vb + head * stride_vh
    q = tl.load(q_row + dims * stride_qd, mask=d_mask, other=0.0).to(tl.float32)

    top = float("-inf")
    for start in range(0, n_keys, BLOCK_N):
        s = _scores(q, k_base, start + block, dims, n_keys, head_dim, stride_kn, stride_kd, scale)
        top = tl.maximum(top, tl.max(s, axis=0))

    total = 0.0
    acc = tl.zeros((BLOCK_D,), dtype=tl.float32)
    for start in range(0, n_keys, BLOCK_N):
        keys = start + block
        s = _scores(q, k_base, keys, dims, n_keys, head_dim, stride_kn, stride_kd, scale)
        p = tl.where(keys < n_keys, tl.exp(s - top), 0.0)
        v_mask = (keys[:, None] < n_keys) & d_mask[None, :]
        v_block = v_base + keys[:, None] * stride_vn + dims[None, :] * stride_vd
        v = tl.load(v_block, mask=v_mask, other=0.0).to(tl.float32)
        total += tl.sum(p, axis=0)
        acc += tl.sum(p[:, None] * v, axis=0)

    o_row = o_ptr + batch * stride_ob + head * stride_oh + query * stride_om
    tl.store(o_row + dims * stride_od, (acc / total).to(o_ptr.dtype.element_ty), mask=d_mask)


def attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """Return softmax(q k^T / sqrt(D)) v for `q` [B, H, M, D] and `k`, `v` [B, H, N, D]."""
    B, H, M, D = q.shape
    N = k.shape[2]
    o = torch.empty((B, H, M, D), dtype=q.dtype, device=q.device)
    attention_kernel[(B * H * M,)](
        q,
        k,
        v,
        o,
        *q.stride(),
        *k.stride(),
        *v.stride(),
        *o.stride(),
        H,
        M,
        N,
        D,
        1.0,
        BLOCK_N=BLOCK_N,
        BLOCK_D=triton.next_power_of_2(D),
    )
    return o
