def scale(x):
    return x * SET_UP  # noqa: F821
