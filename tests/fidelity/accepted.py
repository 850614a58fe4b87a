"""Kernels and launchers in forms that the compiler accepts and plain Python would not run."""

from collections.abc import Callable
from typing import Any

import torch
import triton
import triton.language as tl
from triton.language import exp2
from triton.language.extra.libdevice import tanh

FACTOR = tl.constexpr(3)


@triton.jit
def words(x, y, n, BLOCK: tl.constexpr):
    """`and`, `or`, `not` and a chain on blocks."""
    i = tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < n, other=0.0)
    inside = (v > 2) and (v < 6)
    outside = (v < 2) or (v > 6)
    tl.store(y + i, inside.to(tl.float32) + 10 * outside.to(tl.float32))
    chain = 2 < v < 6
    tl.store(y + BLOCK + i, chain.to(tl.float32) + 2 * (not chain).to(tl.float32))


@triton.jit
def imported(x, y, BLOCK: tl.constexpr):
    """Functions imported by name, and a constant of the module."""
    i = tl.arange(0, BLOCK)
    v = tl.load(x + i)
    tl.store(y + i, exp2(v) + tanh(v) * 0 + FACTOR)


@triton.jit
def extras(x, y, BLOCK: tl.constexpr):
    """The device library through the language."""
    i = tl.arange(0, BLOCK)
    v = tl.load(x + i)
    tl.store(y + i, tl.extra.cuda.libdevice.rint(v + 0.25))


@triton.jit
def sizes(BLOCK: tl.constexpr, MORE: tl.constexpr = 2):
    return BLOCK * MORE


@triton.jit
def constants(x, y, KIND: tl.constexpr, TO: tl.constexpr, BLOCK: tl.constexpr = 8):
    """Strings, dtypes and defaults as constants; static branches and assertions."""
    tl.static_assert(BLOCK.value == 8, "a block of 8")
    half: tl.constexpr = BLOCK // 2
    i = tl.arange(0, half * 2)
    v = tl.load(x + i).to(TO)
    if KIND == "double":
        v = v * 2
    elif KIND is None:
        v = v * 0
    for k in tl.static_range(0, 3):
        v += k
    assert BLOCK > 1000, "an assertion is for debugging only"
    tl.store(y + i, v)


@triton.jit
def control(x, y, n, BLOCK: tl.constexpr):
    """Early return, loops of the language, ternary, Python's min and max, walrus."""
    pid = tl.program_id(0)
    if pid >= n:
        return
    i = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for k in tl.range(0, n, num_stages=2):
        total += tl.load(x + k * BLOCK + i)
    low = min(pid, 1)
    high = max(pid, 2)
    scale = 2.0 if pid == 0 else 3.0
    width: tl.constexpr = max(BLOCK, 4)
    if (left := n - pid) > 1:
        total += left
    tl.store(y + pid * BLOCK + i, total * scale + low + high + width)


@triton.jit
def narrow(x, y, k, BLOCK: tl.constexpr):
    """A loop counter is an int32 scalar and widens a narrow block."""
    i = tl.arange(0, BLOCK)
    v = tl.load(x + i)
    for step in range(k):
        w = v + step
        tl.store(y + step * BLOCK + i, w.to(tl.int64))


@triton.jit
def _branchy(a, b):
    if a > b:
        return a
    else:
        return b + 0.0


@triton.jit
def branchy_reduce(x, y, BLOCK: tl.constexpr):
    """A combine function that decides on its values."""
    i = tl.arange(0, BLOCK)
    tl.store(y, tl.reduce(tl.load(x + i), 0, _branchy))


@triton.jit
def shapes(x, y, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    v = tl.load(x + i)
    m = tl.reshape(v, (2, BLOCK // 2)).T
    m = tl.permute(m, (1, 0))
    m = tl.broadcast_to(tl.expand_dims(m, 0), (2, 2, BLOCK // 2))
    flat = tl.sum(m, 0).reshape(BLOCK)
    tl.store(y + i, tl.cat(flat, flat, can_reorder=True).reshape(2, BLOCK).sum(0))


@triton.jit
def hints(x, y, n, BLOCK: tl.constexpr):
    tl.assume(n > 0)
    i = tl.max_contiguous(tl.multiple_of(tl.arange(0, BLOCK), BLOCK), BLOCK)
    tl.device_assert(n > 1000, "debugging only")
    tl.debug_barrier()
    tl.store(y + i, tl.load(x + i, mask=i < n, other=-1.0, eviction_policy="evict_last"))


@triton.jit
def spoken(x, y, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    v = tl.load(x + i)
    tl.device_print("value", v)
    print("again", v)
    tl.static_print("static", BLOCK)
    tl.store(y + i, v)


@triton.jit
def tuples(pair, y, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(y + i, tl.load(pair[0] + i) * pair[1])


@triton.jit
def float8_roundtrip(x, y, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(y + i, (tl.load(x + i).to(tl.float32) * 2).to(y.dtype.element_ty))


@triton.jit
def hosted(desc, y, N: tl.constexpr):
    i = tl.arange(0, 8)[:, None] * N + tl.arange(0, N)[None, :]
    tl.store(y + i, desc.load([0, 0]))


@triton.jit
def undefined_lanes(x, y, n, BLOCK: tl.constexpr):
    """Masked lanes without `other` are not zero."""
    i = tl.arange(0, BLOCK)
    tl.store(y + i, tl.load(x + i, mask=i < n))


@triton.jit
def unknown_device_function(x, y, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(y + i, tl.extra.cuda.libdevice.j0(tl.load(x + i)))


CONFIGS = [
    triton.Config({"BLOCK": 4, "TAG": 4}, num_warps=2),
    triton.Config({"BLOCK": 8, "TAG": 8}, num_warps=4),
]


@triton.autotune(configs=CONFIGS, key=["n"])
@triton.heuristics({"EVEN": lambda args: args["n"] % args["BLOCK"] == 0})
@triton.jit
def tuned(x, y, n, BLOCK: tl.constexpr, TAG: tl.constexpr, EVEN: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, tl.load(x + i, mask=i < n) + TAG * 100 + EVEN, mask=i < n)


@triton.autotune(configs=CONFIGS, key=["n"])
@triton.jit
def tuned_add(x, y, n, BLOCK: tl.constexpr, TAG: tl.constexpr):
    """Adds in place: running it twice shows."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, tl.load(y + i, mask=i < n) + 1, mask=i < n)


@triton.autotune(configs=CONFIGS, key=["n"], restore_value=["y"])
@triton.jit
def tuned_restored(x, y, n, BLOCK: tl.constexpr, TAG: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, tl.load(y + i, mask=i < n) + 1, mask=i < n)


def made_in_a_function(scale: float) -> Callable[..., Any]:
    """Return a kernel that reads a variable of the function around it."""
    FROM_OUTSIDE = tl.constexpr(scale)

    @triton.jit
    def inner(x, y, BLOCK: tl.constexpr):
        i = tl.arange(0, BLOCK)
        tl.store(y + i, tl.load(x + i) * FROM_OUTSIDE)

    return inner


def warmed(x: torch.Tensor, y: torch.Tensor) -> None:
    """Ask the driver and the compiled kernel for resources, as persistent kernels do."""
    device = triton.runtime.driver.active.get_current_device()
    properties = triton.runtime.driver.active.utils.get_device_properties(device)
    kernel = extras.warmup(x, y, BLOCK=8, num_warps=4, grid=(1,))
    kernel._init_handles()
    programs = min(properties["multiprocessor_count"], 1 + kernel.metadata.shared)
    assert kernel.n_regs > 0
    kernel[(programs, 1, 1)](x, y, BLOCK=8)
