"""Truth for `layer_norm_backward`, by the chain rule with the saved statistics."""


def layer_norm_backward(dy, x, weight, mean, rstd):
    """Return dx, given the mean and reciprocal deviation that the forward saved."""
    normal = (x - mean[:, None]) * rstd[:, None]
    wdy = weight * dy
    along = (wdy * normal).mean(-1, keepdim=True)
    return (wdy - wdy.mean(-1, keepdim=True) - normal * along) * rstd[:, None]
