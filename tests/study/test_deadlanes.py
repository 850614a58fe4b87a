"""The proof that what masked lanes hold reaches no store: where it holds, and where it must not."""

import pytest

from gate.study.deadlanes import lanes_are_dead
from gate.study.operators import mutants_of

HEAD = """\
import triton
import triton.language as tl


def plain(x):
    return x


@triton.jit
def twice(u):
    v = u + u
    return tl.exp(v)


@triton.jit
def total(u):
    return tl.sum(u, axis=0)


@triton.jit
def kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    cols = tl.arange(0, BLOCK)
    mask = cols < n
"""
LOAD = "x = tl.load(x_ptr + cols, mask=mask, other=0.0)"
INLINE = "x = tl.load(x_ptr + cols, mask=cols < n, other=0.0)"
STORE = "tl.store(y_ptr + cols, x, mask=mask)"


def dead(*body: str) -> bool:
    """Whether the first load of a kernel with this body is proven dead."""
    source = HEAD + "".join(f"    {line}\n" for line in body)
    first = next(m for m in mutants_of(source) if m.operator == "other changed")
    return lanes_are_dead(source, first)


@pytest.mark.parametrize(
    "body",
    [
        (LOAD, STORE),
        (LOAD, "x = twice(-x).to(tl.float32) * 2.0", STORE),
        (LOAD, "tl.store(y_ptr + cols, tl.where(x > 0, x, 0.0), mask=mask & (cols > 3))"),
        (LOAD, "z = tl.sum(tl.where(mask, x, 0.0), axis=0)", "tl.store(y_ptr + cols, z)"),
        (LOAD, "z = tl.load(y_ptr + x, mask=mask, other=0)", "tl.store(y_ptr + z, z, mask=mask)"),
        ("for i in range(n):", f"    {LOAD}", f"    {STORE}"),
        ("w = tl.sum(cols, axis=0)", LOAD, "x = x * w", STORE),
        (INLINE, "tl.store(y_ptr + cols, x, mask=cols < n)"),
        (INLINE, "both = mask & (cols > 3)", "tl.store(y_ptr + cols, x, mask=both)"),
        ("y = cols * 2", "if n > 3:", f"    {LOAD}", "    y += x", "else:", "    y = -y",
         "tl.store(y_ptr + cols, y, mask=mask)"),
        ("for i in range(n):", "    at = cols + i",
         "    x = tl.load(x_ptr + at, mask=at < n, other=0.0)",
         "    z = tl.sum(tl.where(at < n, x, 0.0), axis=0)", "    tl.store(y_ptr, z)"),
        ("x = tl.load(x_ptr + cols, mask=mask & (cols > 3), other=0.0)",
         "tl.store(y_ptr + cols, x, mask=(cols > 3) & mask)"),
        ("tl.store(y_ptr, tl.load(x_ptr + cols, mask=cols < n, other=0.0), mask=cols < n)",),
    ],
)  # fmt: skip
def test_lanes_that_are_left_out_of_every_store_are_dead(body: tuple[str, ...]) -> None:
    assert dead(*body)


@pytest.mark.parametrize(
    "body",
    [
        (LOAD, "tl.store(y_ptr + cols, x)"),
        (LOAD, "tl.store(y_ptr + cols, x, mask=cols < 9)"),
        (LOAD, "tl.store(y_ptr + cols, x, mask=mask | (cols < 9))"),
        (LOAD, "tl.store(y_ptr + cols, x, mask=mask & (x > 0))", "tl.store(y_ptr, tl.max(x, 0))"),
        (LOAD, "z = tl.sum(x, axis=0)", "tl.store(y_ptr + cols, z, mask=mask)"),
        (LOAD, "z = total(x)", "tl.store(y_ptr + cols, z, mask=mask)"),
        (LOAD, "z = plain(x)[None, :]", "tl.store(y_ptr + cols, z, mask=mask)"),
        (LOAD, "z = tl.where(mask, 0.0, x)", "tl.store(y_ptr + cols, tl.sum(z, axis=0))"),
        (LOAD, "z = tl.load(y_ptr + x)", "tl.store(y_ptr + cols, z, mask=mask)"),
        (LOAD, "if n > 3:", "    tl.store(y_ptr + cols, x)"),
        (LOAD, "mask = cols < 9", STORE),
        ("for i in range(n):", f"    {LOAD}", STORE),
        ("acc = cols", "for i in range(n):", f"    {LOAD}", "    acc = acc + x",
         "    tl.store(y_ptr + cols, acc, mask=mask)"),
        ("acc = cols", "for i in range(n):", f"    {LOAD}", "    acc += x",
         "    tl.store(y_ptr + cols, acc, mask=mask)"),
        ("acc = cols", "for i in range(n):", "    tl.store(y_ptr + cols, acc)", f"    {LOAD}",
         "    acc = x"),
        ("tl.store(y_ptr, tl.sum(tl.load(x_ptr + cols, mask=mask, other=0.0), axis=0))",),
        ("y = cols", "for i in range(n):", "    if i > 3:", f"        {LOAD}",
         "        y = x", "    tl.store(y_ptr + cols, y, mask=mask)"),
        ("if n > 3:", "    for i in range(n):", f"        {LOAD}",
         "    tl.store(y_ptr, tl.sum(x, axis=0))"),
        (LOAD, "if tl.max(x, axis=0) > 0:", "    tl.store(y_ptr + cols, x, mask=mask)"),
        (INLINE, "both = mask | (cols > 3)", "tl.store(y_ptr + cols, x, mask=both)"),
        (INLINE, "cols = cols + 1", "tl.store(y_ptr + cols, x, mask=cols < n)"),
        (INLINE, "tl.store(y_ptr + cols, x, mask=cols < n + 1)"),
        ("x = tl.load(x_ptr + cols, mask=mask & (cols > 3), other=0.0)", STORE),
        ("acc = cols", "for i in range(n):", "    m = cols < i",
         "    tl.store(y_ptr + cols, acc, mask=m)",
         "    acc = tl.load(x_ptr + cols, mask=m, other=0.0)"),
    ],
)  # fmt: skip
def test_lanes_that_may_reach_a_store_are_not(body: tuple[str, ...]) -> None:
    assert not dead(*body)
