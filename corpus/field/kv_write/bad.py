"""Scatter new keys into the slots of a cache: one program a token."""

import torch
import triton
import triton.language as tl


@triton.jit
def kv_write_kernel(
    k_ptr,
    cache_ptr,
    slots_ptr,
    stride_kt,
    stride_kh,
    stride_kd,
    slots_stride,
    heads,
    head_dim,
    BLOCK: tl.constexpr,
):
    token = tl.program_id(0).to(tl.int64)
    slot = tl.load(slots_ptr + token * slots_stride).to(tl.int64)
    place = tl.arange(0, BLOCK).to(tl.int64)
    head = place // head_dim
    dim = place % head_dim
    mask = head < heads
    k = tl.load(k_ptr + token * stride_kt + head * stride_kh + dim * stride_kd, mask=mask, other=0)
    tl.store(cache_ptr + slot * heads * head_dim + place, k, mask=mask)


def kv_write(k: torch.Tensor, cache: torch.Tensor, slots: torch.Tensor) -> None:
    """Write `k` [T, H, D] into `cache` [S, H, D] at `slots` [T], in place."""
    T, H, D = k.shape
    kv_write_kernel[(T,)](
        k,
        cache,
        slots,
        *k.stride(),
        slots.stride(0),
        H,
        D,
        BLOCK=triton.next_power_of_2(H * D),
    )
