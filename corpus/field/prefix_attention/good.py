"""Causal attention after a cached prefix: one program a query row, online softmax."""

import torch
import triton
import triton.language as tl

BLOCK_N = 32


@triton.jit
def prefix_attention_kernel(
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
    pid = tl.program_id(0).to(tl.int64)
    query = pid % n_queries
    head = pid // n_queries % heads
    batch = pid // n_queries // heads
    dims = tl.arange(0, BLOCK_D).to(tl.int64)
    d_mask = dims < head_dim
    q_row = q_ptr + batch * stride_qb + head * stride_qh + query * stride_qm
    k_base = k_ptr + batch * stride_kb + head * stride_kh
    v_base = v_ptr + batch * stride_vb + head * stride_vh
    q = tl.load(q_row + dims * stride_qd, mask=d_mask, other=0.0).to(tl.float32)
    last = query + n_keys - n_queries

    top = float("-inf")
    total = 0.0
    acc = tl.zeros((BLOCK_D,), dtype=tl.float32)
    for start in range(0, n_keys, BLOCK_N):
        keys = start + tl.arange(0, BLOCK_N).to(tl.int64)
        live = keys <= last
        mask = live[:, None] & d_mask[None, :]
        k_block = k_base + keys[:, None] * stride_kn + dims[None, :] * stride_kd
        v_block = v_base + keys[:, None] * stride_vn + dims[None, :] * stride_vd
        k = tl.load(k_block, mask=mask, other=0.0).to(tl.float32)
        v = tl.load(v_block, mask=mask, other=0.0).to(tl.float32)
        scores = tl.sum(k * q[None, :], axis=1) * scale
        scores = tl.where(live, scores, float("-inf"))
        new_top = tl.maximum(top, tl.max(scores, axis=0))
        # Nothing live so far: subtract 0, since -inf - -inf would poison the blocks to come.
        shift = tl.where(new_top == float("-inf"), 0.0, new_top)
        rescale = tl.exp(top - shift)
        p = tl.exp(scores - shift)
        total = total * rescale + tl.sum(p, axis=0)
        acc = acc * rescale + tl.sum(p[:, None] * v, axis=0)
        top = new_top

    o_row = o_ptr + batch * stride_ob + head * stride_oh + query * stride_om
    tl.store(o_row + dims * stride_od, (acc / total).to(o_ptr.dtype.element_ty), mask=d_mask)


def prefix_attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """Return causal attention of `q` [B, H, M, D], the last M of N keys; `k`, `v` [B, H, N, D]."""
    B, H, M, D = q.shape
    N = k.shape[2]
    o = torch.empty((B, H, M, D), dtype=q.dtype, device=q.device)
    prefix_attention_kernel[(B * H * M,)](
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
        D**-0.5,
        BLOCK_N=BLOCK_N,
        BLOCK_D=triton.next_power_of_2(D),
    )
    return o
