"""Launchers that insist on a GPU, as those of most repositories do."""

import torch
import triton
import triton.language as tl

SMS = torch.cuda.get_device_properties(torch.cuda.current_device()).multi_processor_count
TABLE = torch.arange(16, device="cuda", dtype=torch.float32)
DEVICE = triton.runtime.driver.active.get_active_torch_device()


@triton.jit
def double_kernel(x_ptr, y_ptr, n, step, BLOCK: tl.constexpr):
    for start in range(tl.program_id(0) * BLOCK, n, step * BLOCK):
        i = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + i, mask=i < n)
        tl.store(y_ptr + i, x * 2, mask=i < n)


def _launch(x, y):
    programs = min(SMS, triton.cdiv(x.numel(), 8))
    double_kernel[(programs,)](x, y, x.numel(), programs, BLOCK=8)


def insists(x):
    assert x.is_cuda and x.device.type == "cuda" and x.device == DEVICE, "CUDA only"
    assert torch.cuda.is_available() and torch.cuda.get_device_capability(x.device)[0] >= 8
    x = x.contiguous()
    with torch.cuda.device(x.device):
        y = torch.empty(x.shape, device="cuda", dtype=x.dtype)
        _launch(x, y)
    torch.cuda.synchronize()
    return y


def chooses(x):
    """Falls back to torch, wrongly, where no GPU is."""
    if x.device.type != "cuda":
        return x * 3
    y = torch.zeros_like(x)
    _launch(x.contiguous(), y)
    return y


def counts_on_the_host(x, lengths):
    """Takes lengths that stay on the host, and sends them after."""
    assert lengths.device.type == "cpu" and not lengths.is_cuda
    total = torch.cumsum(lengths, 0)
    assert total.device.type == "cpu"
    sent = total.to(x.device, non_blocking=True)
    assert sent.is_cuda and sent.device == x.device
    y = torch.empty_like(x)
    _launch(x.contiguous(), y)
    return y


class _Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.home = x.device
        return insists(x)

    @staticmethod
    def backward(ctx, dy):
        assert dy.is_cuda and dy.device == ctx.home
        dx = torch.empty(dy.shape, device=ctx.home, dtype=dy.dtype)
        _launch(dy.contiguous(), dx)
        return dx


def differentiable(x):
    return _Double.apply(x)


@torch.library.custom_op("gate_tests::double", mutates_args=(), device_types="cuda")
def _double(x: torch.Tensor) -> torch.Tensor:
    assert x.is_cuda
    return insists(x)


@_double.register_kernel("cpu")
def _(x):
    return x * 3


def operator(x):
    return torch.ops.gate_tests.double(x)


@torch.compile
def _scaled(x):
    return x * 0.5


def compiled(x):
    return insists(_scaled(x) + 0.5 * x)


def comes_home(x):
    return insists(x).cpu()


class Entry:
    """Keeps kernels by the types of what they are called with, as libraries of kernels do."""

    def __init__(self, fn):
        self.fn, self.kept = fn, {}
        while not isinstance(fn, triton.runtime.JITFunction):
            fn = fn.fn
        self.frozen = [p.num for p in fn.params if p.is_constexpr]

    def __getitem__(self, grid):
        def launch(*args):
            key = tuple(args[i] for i in self.frozen)
            if key in self.kept:
                self.kept[key][grid](*args)
            else:
                self.kept[key] = self.fn[grid](*args)
                assert self.kept[key].n_regs and isinstance(self.kept[key].asm["ptx"], str)

        return launch


library_kernel = Entry(double_kernel)


def library(x):
    y = torch.empty_like(x)
    x = x.contiguous()
    stream = torch._C._cuda_getCurrentRawStream(x.device.index)
    with torch.accelerator.device_index(x.device.index):
        for _ in range(2):
            library_kernel[(1, 1, 1)](x, y, x.numel(), 1, 8)
    y.record_stream(torch.cuda.current_stream())
    assert torch.cuda.current_stream().cuda_stream == stream
    return y


def forgets_the_device(x):
    y = torch.empty(x.shape)
    _launch(x.contiguous(), y)
    return y


def writes_pinned_memory(x):
    y = torch.empty(x.shape, pin_memory=True)
    y.zero_()
    assert y.is_pinned() and not y.is_cuda and not x.is_pinned()
    _launch(x.contiguous(), y)
    torch.cuda.synchronize()
    return y.cuda()


@triton.jit
def uncompilable_kernel(x_ptr, y_ptr, n):
    total = 0
    for i in range(n):
        total += tl.load(x_ptr + i)
    tl.store(y_ptr, total)


def uncompilable(x):
    y = torch.empty(1, device=x.device)
    uncompilable_kernel[(1,)](x.contiguous(), y, x.numel())
    return y


def passes_device(n, device):
    return insists(TABLE[:n] + torch.zeros(n, device=device))
