"""Which functions a launch runs."""

from gate.study.reached import is_reached

SOURCE = """\
def inner(u):
    return u


def helper(u):
    return inner(u)


def kernel(x):
    y = helper(x)
    return y


def other(x):
    return x
"""


def test_a_launched_kernel_and_its_helpers_are_reached_and_others_are_not() -> None:
    lines = {line for line in range(1, 16) if is_reached(SOURCE, line, ["kernel", "elsewhere"])}
    assert lines == {1, 2, 5, 6, 9, 10, 11}
    assert not is_reached(SOURCE, 10, [])
