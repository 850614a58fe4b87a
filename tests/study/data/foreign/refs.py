"""References of the foreign kernels that are more than an expression."""

import torch


def segsum(x, cu):
    """Return the sum of each segment's rows."""
    return torch.stack([x[cu[i] : cu[i + 1]].sum(0) for i in range(cu.shape[0] - 1)])


def scatadd(x, index, w, E):
    """Return the rows added up by index; those of -1 are left out."""
    out = torch.zeros((E, x.shape[1]), dtype=x.dtype)
    keep = index >= 0
    return out.index_add(0, index[keep].long(), x[keep] * w[keep][:, None])
