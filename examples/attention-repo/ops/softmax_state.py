"""Online softmax: what every attention kernel here carries from one block of keys to the next."""

import triton
import triton.language as tl


@triton.jit
def absorb(scores, v, top, total, acc):
    """Take one block of `scores` [M, N] and values `v` [N, D] into the running state.

    top, total [M] are the maximum and the sum of exponentials so far, acc [M, D] the weighted
    sum of values. Lanes that are no key must hold a score of -inf.
    """
    new_top = tl.maximum(top, tl.max(scores, axis=1))
    # A row of -inf so far: subtract 0, since -inf - -inf would poison the blocks to come.
    shift = tl.where(new_top == float("-inf"), 0.0, new_top)
    rescale = tl.exp(top - shift)
    p = tl.exp(scores - shift[:, None])
    total = total * rescale + tl.sum(p, axis=1)
    acc = tl.dot(p.to(v.dtype), v, acc * rescale[:, None], input_precision="ieee")
    return new_top, total, acc
