"""Truth for `adamw_step`: Loshchilov and Hutter, "Decoupled weight decay regularization", 2019."""


def adamw_step(p, g, m, v, step, lr, wd, beta1=0.9, beta2=0.999, eps=1e-8):
    """Return the new (p, m, v)."""
    m = beta1 * m + (1 - beta1) * g
    v = beta2 * v + (1 - beta2) * g * g
    update = m / (1 - beta1**step) / ((v / (1 - beta2**step)).sqrt() + eps)
    return p * (1 - lr * wd) - lr * update, m, v
