"""Truth for `add_rms_norm`."""

import torch


def add_rms_norm(x, residual, weight, eps):
    """Return (RMS norm of the sum times weight, the sum)."""
    total = x + residual
    return total * torch.rsqrt((total * total).mean(-1, keepdim=True) + eps) * weight, total
