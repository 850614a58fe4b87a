"""Cross entropy that stores its gradient over the logits, as large vocabularies demand.

The forward pass leaves softmax(logits) - onehot(labels) in the logits' memory; the backward pass
scales each row by what comes in for its loss.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def cross_entropy_kernel(
    x_ptr, labels_ptr, loss_ptr, x_row_stride, labels_stride, V, BLOCK: tl.constexpr
):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    inside = cols < V
    label = tl.load(labels_ptr + row * labels_stride)
    x_row = x_ptr + row * x_row_stride
    x = tl.load(x_row + cols, mask=inside, other=float("-inf")).to(tl.float32)
    top = tl.max(x, axis=0)
    exps = tl.exp(x - top)
    total = tl.sum(exps, axis=0)
    target = tl.sum(tl.where(cols == label, x, 0.0), axis=0)
    tl.store(loss_ptr + row, tl.log(total) - (target - top))
    tl.store(x_row + cols, exps / total - tl.where(cols == label, 1.0, 0.0), mask=inside)


@triton.jit
def scale_rows_kernel(x_ptr, dloss_ptr, x_row_stride, dloss_stride, V, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    inside = cols < V
    scale = tl.load(dloss_ptr + row * dloss_stride)
    x_row = x_ptr + row * x_row_stride
    x = tl.load(x_row + cols, mask=inside, other=0.0)
    tl.store(x_row + cols, x * scale, mask=inside)


class CrossEntropy(torch.autograd.Function):
    """The loss of each row of `logits` [M, V] against `labels` [M], in float32."""

    @staticmethod
    def forward(ctx, logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        M, V = logits.shape
        # Rows that share memory cannot each hold a gradient.
        if logits.stride(1) != 1 or logits.stride(0) < V:
            logits = logits.contiguous()
        loss = torch.empty((M,), dtype=torch.float32, device=logits.device)
        cross_entropy_kernel[(M,)](
            logits, labels, loss, logits.stride(0), labels.stride(0), V,
            BLOCK=triton.next_power_of_2(V),
        )  # fmt: skip
        ctx.save_for_backward(logits.detach())
        return loss

    @staticmethod
    def backward(ctx, dloss: torch.Tensor):
        (grad,) = ctx.saved_tensors
        M, V = grad.shape
        scale_rows_kernel[(M,)](
            grad, dloss, grad.stride(0), dloss.stride(0), V, BLOCK=triton.next_power_of_2(V)
        )
        return grad, None
