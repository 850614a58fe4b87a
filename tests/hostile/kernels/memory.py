"""Kernels that touch memory outside their tensors."""

import torch
import triton
import triton.language as tl


@triton.jit
def _copy(src, dst, n, shift, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    tl.store(dst + at + shift, tl.load(src + at, mask=inside), mask=inside)


@triton.jit
def _far(src, dst, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    inside = at < n
    far = at.to(tl.int64) + 8589934592
    tl.store(dst + far, tl.load(src + at, mask=inside), mask=inside)


@triton.jit
def _spin(src, dst, BLOCK: tl.constexpr):
    """Waits for a value that nobody writes."""
    at = tl.arange(0, BLOCK)
    while tl.load(src, volatile=True) > 0.0:
        pass
    tl.store(dst + at, tl.load(src + at))


def spin_on_the_device(x, out):
    _spin[(1,)](x, out, BLOCK=8)


@triton.jit
def _ahead(src, dst, n, ahead, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    values = tl.load(src + at + ahead)
    tl.store(dst + at, values, mask=at < n)


def reads_past_the_end(x, out):
    _ahead[(1,)](x, out, x.numel(), 8, BLOCK=16)


def _launch(x, out, shift):
    flat = x.contiguous()
    _copy[(1,)](flat, out, flat.numel(), shift, BLOCK=triton.next_power_of_2(flat.numel()))
    return out


def in_bounds(x):
    return _launch(x, torch.empty(x.shape, device=x.device), 0)


def one_past_the_end(x, out):
    _launch(x, out, 1)


def one_before_the_start(x, out):
    _launch(x, out, -1)


def into_the_gap(x, out):
    _copy[(1,)](x, out, 5, 3, BLOCK=8)


def far_away(x, out):
    _far[(1,)](x, out, x.numel(), BLOCK=16)


def far_away_from_python(x, out):
    """The same without a kernel, so that nothing checks it: the process dies."""
    import ctypes

    ctypes.memset(out.data_ptr() + 2**45, 0, 8)
