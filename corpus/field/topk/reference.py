"""Truth for `topk`."""

import torch


def topk(x, k):
    """Return (values, positions), largest first."""
    values, index = torch.topk(x, k, dim=-1)
    return values, index
