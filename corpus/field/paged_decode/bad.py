"""Paged attention of one new token: one program a head, keys looked up through a page table."""

import torch
import triton
import triton.language as tl


@triton.jit
def paged_decode_kernel(
    q_ptr,
    k_ptr,
    v_ptr,
    table_ptr,
    lens_ptr,
    o_ptr,
    stride_qb,
    stride_qh,
    stride_qd,
    stride_kp,
    stride_ks,
    stride_kh,
    stride_kd,
    stride_vp,
    stride_vs,
    stride_vh,
    stride_vd,
    stride_tb,
    stride_tp,
    stride_lb,
    stride_ob,
    stride_oh,
    stride_od,
    heads,
    page_size,
    head_dim,
    scale,
    BLOCK_P: tl.constexpr,
    BLOCK_D: tl.constexpr,
):
    pid = tl.program_id(0).to(tl.int64)
    batch = pid // heads
    head = pid % heads
    dims = tl.arange(0, BLOCK_D).to(tl.int64)
    slots = tl.arange(0, BLOCK_P).to(tl.int64)
    d_mask = dims < head_dim
    length = tl.load(lens_ptr + batch * stride_lb)
    q_row = q_ptr + batch * stride_qb + head * stride_qh
    q = tl.load(q_row + dims * stride_qd, mask=d_mask, other=0.0).to(tl.float32)

    top = float("-inf")
    total = 0.0
    acc = tl.zeros((BLOCK_D,), dtype=tl.float32)
    for index in range(0, tl.cdiv(length, page_size)):
        page = tl.load(table_ptr + batch * stride_tb + index * stride_tp).to(tl.int64)
        live = slots < page_size
        mask = live[:, None] & d_mask[None, :]
        k_page = k_ptr + page * stride_kp + head * stride_kh
        v_page = v_ptr + page * stride_vp + head * stride_vh
        k_block = k_page + slots[:, None] * stride_ks + dims[None, :] * stride_kd
        v_block = v_page + slots[:, None] * stride_vs + dims[None, :] * stride_vd
        k = tl.load(k_block, mask=mask, other=0.0).to(tl.float32)
        v = tl.load(v_block, mask=mask, other=0.0).to(tl.float32)
        scores = tl.sum(k * q[None, :], axis=1) * scale
        scores = tl.where(live, scores, float("-inf"))
        new_top = tl.maximum(top, tl.max(scores, axis=0))
        shift = tl.where(new_top == float("-inf"), 0.0, new_top)
        rescale = tl.exp(top - shift)
        p = tl.exp(scores - shift)
        total = total * rescale + tl.sum(p, axis=0)
        acc = acc * rescale + tl.sum(p[:, None] * v, axis=0)
        top = new_top

    o_row = o_ptr + batch * stride_ob + head * stride_oh
    tl.store(o_row + dims * stride_od, (acc / total).to(o_ptr.dtype.element_ty), mask=d_mask)


def paged_decode(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, table: torch.Tensor, lens: torch.Tensor
) -> torch.Tensor:
    """Return attention of `q` [B, H, D] over the first `lens[b]` keys of each sequence.

    k, v   [pages, page size, H, D]
    table  [B, pages of a sequence]: which page holds which part of the sequence
    """
    B, H, D = q.shape
    page_size = k.shape[1]
    o = torch.empty((B, H, D), dtype=q.dtype, device=q.device)
    paged_decode_kernel[(B * H,)](
        q,
        k,
        v,
        table,
        lens,
        o,
        *q.stride(),
        *k.stride(),
        *v.stride(),
        *table.stride(),
        *lens.stride(),
        *o.stride(),
        H,
        page_size,
        D,
        D**-0.5,
        BLOCK_P=triton.next_power_of_2(page_size),
        BLOCK_D=triton.next_power_of_2(D),
    )
    return o
