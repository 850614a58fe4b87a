from constants import FACTOR


def scale(x):
    return x * FACTOR
