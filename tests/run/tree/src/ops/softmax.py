"""A softmax, its launcher, and entries around it."""

import collections
import dataclasses

import torch
import triton
import triton.language as tl

from ops import helper


@triton.jit
def softmax_kernel(x, y, n, step, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    inside = at < n
    v = tl.load(x + row * step + at, mask=inside, other=-float("inf")).to(tl.float32)
    e = tl.exp(v - tl.max(v, 0))
    tl.store(y + row * n + at, e / tl.sum(e, 0), mask=inside)


def softmax(x):
    y = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    block = triton.next_power_of_2(x.shape[1])
    softmax_kernel[(x.shape[0],)](x, y, x.shape[1], x.stride(0), BLOCK=block, num_warps=2)
    return y


def softmax_twice(x):
    return helper.twice(softmax(x))


def quietly_torch(x):
    return torch.softmax(x, -1)


def pair(x, eps, flag=True):
    return softmax(x), x.sum(-1) if flag else None


def as_dict(x):
    return {"s": x.sum(-1), "y": softmax(x)}


Named = collections.namedtuple("Named", "y s")


def as_named(x):
    return Named(s=x.sum(-1), y=softmax(x))


@dataclasses.dataclass
class Record:
    s: torch.Tensor
    y: torch.Tensor


def as_record(x):
    return Record(s=x.sum(-1), y=softmax(x))


def as_list(x):
    return [x + 1, x + 2]


def fresh(x):
    return torch.empty_like(x), x.new_empty(2, dtype=torch.int32), torch.empty(3, dtype=torch.bool)


def unrepeatable(x, _state=[0]):  # noqa: B006
    _state[0] += 1
    return x + _state[0]


def random(x):
    return torch.rand_like(x)


class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2


class Holder:
    @staticmethod
    def method(x, dtype):
        return x.to(dtype)


def raises_before(x):
    raise ValueError("only squares")


def raises_after(x):
    softmax(x)
    raise ValueError("too late")


def wrong_arguments(x):
    softmax_kernel[(1,)](x)


def too_wide(x):
    softmax_kernel[(1, 65536)](x, x.clone(), 0, 0, BLOCK=2)
    return x.clone()


@triton.jit
def _broken(x, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(x + at, undefined_name)  # noqa: F821


def does_not_compile(x):
    _broken[(1,)](x, BLOCK=4)


@triton.autotune(
    configs=[triton.Config({"BLOCK": b}, num_warps=w) for b, w in ((2, 1), (4, 2), (8, 4))],
    key=["n"],
)
@triton.jit
def tuned_kernel(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    tl.store(y + at, tl.load(x + at, mask=inside) + BLOCK, mask=inside)


def tuned(x):
    y = torch.empty_like(x)
    n = x.numel()
    tuned_kernel[lambda meta: (triton.cdiv(n, meta["BLOCK"]),)](x, y, n)
    return y


@triton.autotune(configs=[triton.Config({"BLOCK": b}) for b in (8, 16)], key=["n"])
@triton.jit
def _growing(x, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    tl.store(x + at, tl.load(x + at, mask=inside) + 1, mask=inside)


def grow(x):
    n = x.numel()
    _growing[lambda meta: (triton.cdiv(n, meta["BLOCK"]),)](x, n)
