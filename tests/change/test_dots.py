import pytest
from change_repo import scan_text

from gate.change.dots import may_dot

HEAD = "import triton\nimport triton.language as tl\n{more}\n\n"
KERNEL = "@triton.jit\ndef k(x):\n    tl.store(x, {body})\n\ndef f(x):\n    k[(1,)](x)\n"
HELPER = "@triton.jit\ndef product(a):\n    return {body}\n\n"


@pytest.mark.parametrize(
    ("text", "dots"),
    [
        (KERNEL.format(body="tl.load(x)"), False),
        (KERNEL.format(body="tl.dot(tl.load(x), tl.load(x))"), True),
        (KERNEL.format(body="tl.dot(x, x, input_precision='ieee')"), False),
        (KERNEL.format(body="tl.dot(x, x, allow_tf32=False)"), False),
        (KERNEL.format(body="tl.dot(x, x, input_precision='tf32x3', allow_tf32=False)"), True),
        (KERNEL.format(body="tl.dot(x, x, allow_tf32=x)"), True),
        (KERNEL.format(body="tl.dot(tl.dot(x, x), x, input_precision='ieee')"), True),
        (KERNEL.format(body="tl.dot_scaled(x, x, 'e5m2', x, x, 'e5m2')"), True),
        (HELPER.format(body="tl.dot(a, a)") + KERNEL.format(body="product(tl.load(x))"), True),
        (HELPER.format(body="tl.exp(a)") + KERNEL.format(body="product(tl.load(x))"), False),
        ("times = tl.dot\n" + KERNEL.format(body="times(x, x)"), True),
        (HELPER.format(body="tl.dot(a, a)") + KERNEL.format(body="1"), False),
        ("def g(a):\n    return a.dot(a)\n\n" + KERNEL.format(body="1") + "    g(x)\n", False),
    ],
)
def test_a_dot_counts_where_the_kernel_reaches_it(text: str, dots: bool) -> None:
    assert may_dot(scan_text({"a.py": HEAD.format(more="") + text}), "a.py::k") is dots


def test_device_code_of_another_package_may_hold_one() -> None:
    text = HEAD.format(more="from tiles import mm") + KERNEL.format(body="mm(x)")
    assert may_dot(scan_text({"a.py": text}), "a.py::k")
    helper = HEAD.format(more="") + "@triton.jit\ndef mm(x):\n    return tl.exp(x)\n"
    assert not may_dot(scan_text({"a.py": text, "tiles.py": helper}), "a.py::k")
