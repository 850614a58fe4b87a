"""One AdamW step in place: one program a block of parameters."""

import torch
import triton
import triton.language as tl

BLOCK = 1024


@triton.jit
def adamw_step_kernel(
    p_ptr,
    g_ptr,
    m_ptr,
    v_ptr,
    p_stride,
    g_stride,
    m_stride,
    v_stride,
    n,
    lr,
    beta1,
    rest1,
    beta2,
    rest2,
    eps,
    weight_decay,
    correction1,
    correction2,
    BLOCK: tl.constexpr,
):
    place = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = place < n
    p = tl.load(p_ptr + place * p_stride, mask=mask, other=0.0).to(tl.float32)
    g = tl.load(g_ptr + place * g_stride, mask=mask, other=0.0).to(tl.float32)
    m = tl.load(m_ptr + place * m_stride, mask=mask, other=0.0)
    v = tl.load(v_ptr + place * v_stride, mask=mask, other=0.0)
    g = g + weight_decay * p
    m = beta1 * m + rest1 * g
    v = beta2 * v + rest2 * g * g
    p = p - lr * (m / correction1) / (tl.sqrt(v / correction2) + eps)
    tl.store(p_ptr + place * p_stride, p.to(p_ptr.dtype.element_ty), mask=mask)
    tl.store(m_ptr + place * m_stride, m, mask=mask)
    tl.store(v_ptr + place * v_stride, v, mask=mask)


def adamw_step(
    p: torch.Tensor,
    g: torch.Tensor,
    m: torch.Tensor,
    v: torch.Tensor,
    step: int,
    lr: float,
    wd: float,
    beta1: float = 0.9,
    beta2: float = 0.999,
    eps: float = 1e-8,
) -> None:
    """Update `p`, `m` and `v` [N] in place with gradient `g` [N]; the moments are float32."""
    n = p.numel()
    adamw_step_kernel[(triton.cdiv(n, BLOCK),)](
        p,
        g,
        m,
        v,
        p.stride(0),
        g.stride(0),
        m.stride(0),
        v.stride(0),
        n,
        lr,
        beta1,
        1.0 - beta1,
        beta2,
        1.0 - beta2,
        eps,
        wd,
        1.0 - beta1**step,
        1.0 - beta2**step,
        BLOCK=BLOCK,
    )
