"""Truth for `quantize_rows`, given the scales that the kernel chose."""

import torch


def quantize_rows(x, s):
    """Return (values at the given scales, the scales that they should be)."""
    largest = x.abs().amax(-1)
    scales = torch.where(largest < 1e-30, torch.ones_like(largest), largest / 127)
    return torch.floor(x / s[:, None] + 0.5).to(torch.int8), scales
