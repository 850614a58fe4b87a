"""RMS norm with its backward: one program a row; the weight's gradient is summed afterwards."""

import torch
import triton
import triton.language as tl


@triton.jit
def rms_norm_kernel(
    x_ptr, w_ptr, y_ptr, rstd_ptr, x_row_stride, w_stride, N, eps, BLOCK: tl.constexpr
):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    inside = cols < N
    x = tl.load(x_ptr + row * x_row_stride + cols, mask=inside, other=0.0).to(tl.float32)
    w = tl.load(w_ptr + cols * w_stride, mask=inside, other=0.0).to(tl.float32)
    rstd = tl.rsqrt(tl.sum(x * x, axis=0) / N + eps)
    tl.store(rstd_ptr + row, rstd)
    tl.store(y_ptr + row * N + cols, x * rstd * w, mask=inside)


@triton.jit
def rms_norm_backward_kernel(
    dy_ptr, x_ptr, w_ptr, rstd_ptr, dx_ptr, dw_ptr,
    dy_row_stride, x_row_stride, w_stride, N, BLOCK: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    inside = cols < N
    dy = tl.load(dy_ptr + row * dy_row_stride + cols, mask=inside, other=0.0).to(tl.float32)
    x = tl.load(x_ptr + row * x_row_stride + cols, mask=inside, other=0.0).to(tl.float32)
    w = tl.load(w_ptr + cols * w_stride, mask=inside, other=0.0).to(tl.float32)
    rstd = tl.load(rstd_ptr + row)
    scaled = x * rstd
    flow = dy * w
    mean = tl.sum(flow * scaled, axis=0) / N
    tl.store(dx_ptr + row * N + cols, (flow - scaled * mean) * rstd, mask=inside)
    tl.store(dw_ptr + row * N + cols, dy * scaled, mask=inside)


class RmsNorm(torch.autograd.Function):
    """RMS norm over the last axis of `x` [M, N], times `weight` [N]."""

    @staticmethod
    def forward(ctx, x: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
        if x.stride(1) != 1:
            x = x.contiguous()
        M, N = x.shape
        y = torch.empty((M, N), dtype=x.dtype, device=x.device)
        rstd = torch.empty((M,), dtype=torch.float32, device=x.device)
        block = triton.next_power_of_2(N)
        rms_norm_kernel[(M,)](
            x, weight, y, rstd, x.stride(0), weight.stride(0), N, eps, BLOCK=block
        )
        ctx.save_for_backward(x, weight, rstd)
        return y

    @staticmethod
    def backward(ctx, dy: torch.Tensor):
        x, weight, rstd = ctx.saved_tensors
        if dy.stride(1) != 1:
            dy = dy.contiguous()
        M, N = x.shape
        dx = torch.empty((M, N), dtype=x.dtype, device=x.device)
        parts = torch.empty((M, N), dtype=torch.float32, device=x.device)
        rms_norm_backward_kernel[(M,)](
            dy, x, weight, rstd, dx, parts, dy.stride(0), x.stride(0), weight.stride(0), N,
            BLOCK=triton.next_power_of_2(N),
        )  # fmt: skip
        return dx, parts.sum(0).to(weight.dtype), None
