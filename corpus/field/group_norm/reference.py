"""Truth for `group_norm`: centre, divide by the deviation, then weight and bias, in that order."""


def group_norm(x, groups, weight, bias, eps):
    """Return the group norm of `x` [B, C, S]."""
    tiles = x.reshape(x.shape[0], groups, -1)
    centred = tiles - tiles.mean(-1, keepdim=True)
    normal = centred / ((centred * centred).mean(-1, keepdim=True) + eps).sqrt()
    return normal.reshape(x.shape) * weight[:, None] + bias[:, None]
