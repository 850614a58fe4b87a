"""Mean cross entropy with ignored labels: one program a row, then a sum of the rows."""

import torch
import triton
import triton.language as tl

IGNORED = -100


@triton.jit
def cross_entropy_mean_kernel(
    x_ptr,
    labels_ptr,
    loss_ptr,
    x_row_stride,
    labels_stride,
    n_classes,
    IGNORED: tl.constexpr,
    BLOCK: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    label = tl.load(labels_ptr + row * labels_stride)
    if label == IGNORED:
        tl.store(loss_ptr + row, 0.0)
    else:
        cols = tl.arange(0, BLOCK)
        x_row = x_ptr + row * x_row_stride
        x = tl.load(x_row + cols, mask=cols < n_classes, other=float("-inf")).to(tl.float32)
        target = tl.load(x_row + label).to(tl.float32)
        top = tl.max(x, axis=0)
        total = tl.sum(tl.exp(x - top), axis=0)
        tl.store(loss_ptr + row, tl.log(total) - (target - top))


def cross_entropy_mean(logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """Return the mean loss of the rows of `logits` [M, V] whose label [M] is not -100."""
    if logits.stride(1) != 1:
        logits = logits.contiguous()
    M, V = logits.shape
    loss = torch.empty((M,), dtype=torch.float32, device=logits.device)
    cross_entropy_mean_kernel[(M,)](
        logits,
        labels,
        loss,
        logits.stride(0),
        labels.stride(0),
        V,
        IGNORED=IGNORED,
        BLOCK=triton.next_power_of_2(V),
    )
    return loss.sum() / M
