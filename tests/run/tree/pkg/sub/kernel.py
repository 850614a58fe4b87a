from ..common import FACTOR  # noqa: TID252 - relative on purpose


def scale(x):
    return x * FACTOR
