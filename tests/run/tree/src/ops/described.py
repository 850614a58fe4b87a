"""A kernel that takes tensor descriptors, and one of them that does not compile."""

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor


@triton.jit
def copy_kernel(source, target, BLOCK: tl.constexpr, LOOSE: tl.constexpr):
    total = 0
    for row in range(0, 32, BLOCK):
        block = source.load([row, 0])
        target.store([row, 0], block)
        if LOOSE:
            total += tl.sum(block)


def copy(x, loose=False):
    y = torch.zeros_like(x)
    given, made = (TensorDescriptor.from_tensor(t, [16, 32]) for t in (x, y))
    copy_kernel[(1,)](given, made, 16, loose)
    return y
