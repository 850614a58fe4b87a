"""Truth for `group_quant`, given the scales that the kernel chose."""

import torch


def group_quant(x, group, s):
    """Return (values at the given scales, the scales that they should be)."""
    tiles = x.reshape(x.shape[0], -1, group)
    largest = tiles.abs().amax(-1)
    scales = torch.where(largest < 1e-30, torch.ones_like(largest), largest / 127)
    q = torch.floor(tiles / s[..., None] + 0.5)
    return q.reshape(x.shape).to(torch.int8), scales
