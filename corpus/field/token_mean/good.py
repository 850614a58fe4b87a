"""Mean over tokens: one program a block of features, a loop over blocks of tokens."""

import torch
import triton
import triton.language as tl

BLOCK_S = 64
BLOCK_D = 64


@triton.jit
def token_mean_kernel(
    x_ptr,
    y_ptr,
    stride_b,
    stride_s,
    stride_d,
    S,
    D,
    BLOCK_S: tl.constexpr,
    BLOCK_D: tl.constexpr,
):
    pid = tl.program_id(0)
    blocks = tl.cdiv(D, BLOCK_D)
    batch = (pid // blocks).to(tl.int64)
    dims = (pid % blocks).to(tl.int64) * BLOCK_D + tl.arange(0, BLOCK_D)
    acc = tl.zeros((BLOCK_S, BLOCK_D), dtype=tl.float32)
    for step in range(0, tl.cdiv(S, BLOCK_S)):
        rows = step * BLOCK_S + tl.arange(0, BLOCK_S).to(tl.int64)
        mask = (rows[:, None] < S) & (dims[None, :] < D)
        place = batch * stride_b + rows[:, None] * stride_s + dims[None, :] * stride_d
        acc += tl.load(x_ptr + place, mask=mask, other=0.0).to(tl.float32)
    mean = tl.sum(acc, axis=0) / S
    tl.store(y_ptr + batch * D + dims, mean.to(y_ptr.dtype.element_ty), mask=dims < D)


def token_mean(x: torch.Tensor) -> torch.Tensor:
    """Return the mean over the tokens of `x` [B, S, D]."""
    B, S, D = x.shape
    y = torch.empty((B, D), dtype=x.dtype, device=x.device)
    token_mean_kernel[(B * triton.cdiv(D, BLOCK_D),)](
        x, y, *x.stride(), S, D, BLOCK_S=BLOCK_S, BLOCK_D=BLOCK_D
    )
    return y
