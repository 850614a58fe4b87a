"""Flash attention: one program a block of queries, one pass over the keys, online softmax."""

import torch
import triton
import triton.language as tl

BLOCK_M = 32
BLOCK_N = 32


@triton.jit
def flash_attention_kernel(
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
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_D: tl.constexpr,
):
    pid = tl.program_id(0)
    blocks = tl.cdiv(n_queries, BLOCK_M)
    group = (pid // blocks).to(tl.int64)
    batch = group // heads
    head = group % heads
    rows = (pid % blocks).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
    block = tl.arange(0, BLOCK_N).to(tl.int64)
    dims = tl.arange(0, BLOCK_D).to(tl.int64)
    q_base = q_ptr + batch * stride_qb + head * stride_qh
    k_base = k_ptr + batch * stride_kb + head * stride_kh
    v_base = v_ptr + batch * stride_vb + head * stride_vh
    o_base = o_ptr + batch * stride_ob + head * stride_oh
    q_mask = (rows[:, None] < n_queries) & (dims[None, :] < head_dim)
    q_block = q_base + rows[:, None] * stride_qm + dims[None, :] * stride_qd
    q = tl.load(q_block, mask=q_mask, other=0.0)

    top = tl.full((BLOCK_M,), float("-inf"), dtype=tl.float32)
    total = tl.zeros((BLOCK_M,), dtype=tl.float32)
    acc = tl.zeros((BLOCK_M, BLOCK_D), dtype=tl.float32)
    for start in range(0, n_keys, BLOCK_N):
        keys = start + block
        kv_mask = (keys[:, None] < n_keys) & (dims[None, :] < head_dim)
        k_block = k_base + keys[:, None] * stride_kn + dims[None, :] * stride_kd
        v_block = v_base + keys[:, None] * stride_vn + dims[None, :] * stride_vd
        k = tl.load(k_block, mask=kv_mask, other=0.0)
        v = tl.load(v_block, mask=kv_mask, other=0.0)
        s = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
        s = tl.where(keys[None, :] < n_keys, s, float("-inf"))
        new_top = tl.maximum(top, tl.max(s, axis=1))
        # A row of -inf so far: subtract 0, since -inf - -inf would poison the blocks to come.
        shift = tl.where(new_top == float("-inf"), 0.0, new_top)
        rescale = tl.exp(top - shift)
        p = tl.exp(s - shift[:, None])
        total = total * rescale + tl.sum(p, axis=1)
        acc = acc * rescale[:, None]
        acc = tl.dot(p.to(v.dtype), v, acc, input_precision="ieee")
        top = new_top

    o_block = o_base + rows[:, None] * stride_om + dims[None, :] * stride_od
    o = acc / total[:, None]
    tl.store(o_block, o.to(o_ptr.dtype.element_ty), mask=q_mask)


def flash_attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """Return softmax(q k^T / sqrt(D)) v for `q` [B, H, M, D] and `k`, `v` [B, H, N, D]."""
    B, H, M, D = q.shape
    N = k.shape[2]
    o = torch.empty((B, H, M, D), dtype=q.dtype, device=q.device)
    flash_attention_kernel[(triton.cdiv(M, BLOCK_M) * B * H,)](
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
        1.0 / D**0.5,
        BLOCK_M=BLOCK_M,
        BLOCK_N=BLOCK_N,
        BLOCK_D=max(16, triton.next_power_of_2(D)),
        num_stages=1,  # head dimension 128 in float32 then fits small shared memories
    )
    return o
