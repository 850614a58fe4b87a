"""Causal depthwise convolution of a chunk, with the state that links it to the one before."""

import torch
import triton
import triton.language as tl

BLOCK = 64


@triton.jit
def causal_conv_kernel(
    x_ptr,
    w_ptr,
    state_ptr,
    y_ptr,
    new_ptr,
    stride_xb,
    stride_xd,
    stride_xl,
    stride_wd,
    stride_ww,
    stride_sb,
    stride_sd,
    stride_ss,
    channels,
    length,
    WIDTH: tl.constexpr,
    BLOCK: tl.constexpr,
):
    pid = tl.program_id(0).to(tl.int64)
    batch = pid // channels
    channel = pid % channels
    x_row = x_ptr + batch * stride_xb + channel * stride_xd
    s_row = state_ptr + batch * stride_sb + channel * stride_sd
    for start in range(0, length, BLOCK):
        place = start + tl.arange(0, BLOCK).to(tl.int64)
        acc = tl.zeros((BLOCK,), dtype=tl.float32)
        for tap in range(0, WIDTH):
            # Position of the input under this tap; negative ones lie in the state.
            source = place - (WIDTH - 1) + tap
            now = (source >= 0) & (source < length)
            before = (source < 0) & (place < length)
            x = tl.load(x_row + source * stride_xl, mask=now, other=0.0).to(tl.float32)
            old = s_row + (source + WIDTH - 1) * stride_ss
            s = tl.load(old, mask=before, other=0.0).to(tl.float32)
            w = tl.load(w_ptr + channel * stride_wd + tap * stride_ww).to(tl.float32)
            acc += tl.where(source < 0, s, x) * w
        y = acc.to(y_ptr.dtype.element_ty)
        tl.store(y_ptr + pid * length + place, y, mask=place < length)
    for slot in range(0, WIDTH - 1):
        source = length - (WIDTH - 1) + slot
        if source >= 0:
            last = tl.load(x_row + source * stride_xl)
        else:
            last = tl.load(s_row + (source + WIDTH - 1) * stride_ss)
        tl.store(new_ptr + pid * (WIDTH - 1) + slot, last)


def causal_conv(
    x: torch.Tensor, w: torch.Tensor, state: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return (y, new state) for `x` [B, C, L], taps `w` [C, W] and `state` [B, C, W - 1]."""
    B, C, L = x.shape
    W = w.shape[1]
    y = torch.empty((B, C, L), dtype=x.dtype, device=x.device)
    new = torch.empty((B, C, W - 1), dtype=x.dtype, device=x.device)
    causal_conv_kernel[(B * C,)](
        x, w, state, y, new, *x.stride(), *w.stride(), *state.stride(), C, L, WIDTH=W, BLOCK=BLOCK
    )
    return y, new
