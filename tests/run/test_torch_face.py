"""Launchers that ask for a GPU get an answer from the interpreter, and their kernels run."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from test_kernel_worker import X, request, tensor

from gate.run.argwire import GradWire, ScalarWire
from gate.run.faithful.torchface import TorchFace, faced, mark_host
from gate.run.protocol import Outcome

pytestmark = pytest.mark.triton

OPS = "src/ops/on_gpu.py::"


def ran(worker, entry, *args, home="cpu", **more):
    seen = worker.run(request(OPS + entry, *args, **more))
    assert seen.outcome is Outcome.RETURNED, seen.error
    assert {launch.kernel for launch in seen.launches} == {OPS + "double_kernel"}
    assert {fact.device for fact in seen.outputs} == {home}
    return seen


@pytest.mark.parametrize(
    "entry", ["insists", "chooses", "operator", "compiled", "library", "writes_pinned_memory"]
)
def test_a_launcher_that_asks_for_a_gpu_launches(kernel_worker, entry):
    seen = ran(kernel_worker, entry)
    assert np.array_equal(seen.outputs[0].data, 2 * X)
    assert seen.faults == () and seen.touched == ()


def test_what_the_schema_keeps_on_the_host_is_there_for_the_launcher(kernel_worker):
    lengths = tensor("lengths", np.array([2, 3], np.int32), on_cpu=True)
    seen = ran(kernel_worker, "counts_on_the_host", tensor(), lengths)
    assert np.array_equal(seen.outputs[0].data, 2 * X)


def test_a_backward_sees_the_gpu_that_its_forward_saw(kernel_worker):
    incoming = tensor("grad_y", np.full_like(X, 3))
    grad = GradWire(args=("x",), through=("y",), incoming=(incoming,))
    seen = ran(kernel_worker, "differentiable", grad=grad)
    assert [launch.backward for launch in seen.launches] == [False, True]
    assert np.array_equal(seen.outputs[1].data, np.full_like(X, 6))


def test_the_device_of_a_call_is_the_one_that_tensors_lie_on(kernel_worker):
    seen = ran(kernel_worker, "passes_device(n, device)", ScalarWire(name="n", value=5))
    assert seen.outputs[0].data.tolist() == [0, 2, 4, 6, 8]


def test_a_result_that_the_launcher_sends_to_the_host_is_told(kernel_worker):
    ran(kernel_worker, "comes_home", home="host")


def test_a_kernel_that_is_given_host_memory_is_not_run(kernel_worker):
    seen = kernel_worker.run(request(OPS + "forgets_the_device"))
    assert seen.outcome is Outcome.UNSUPPORTED and "device=x.device" in seen.error.message


def test_a_module_that_asks_for_a_gpu_is_compiled_too(kernel_worker):
    load = request(OPS + "uncompilable", checks=("compile",))
    (fault,) = kernel_worker.run(load).faults
    assert fault.kind == "compile" and "total" in fault.message
    assert kernel_worker.run(request(OPS + "insists", checks=("compile",))).notes == ()


def _homes():
    """Expressions of `x` (of the call) and `h` (on the host), and where what they make lies."""
    gpu = """
        x; x[1:]; x + 1; x.t(); x.half(); x.to(torch.float16); x.to("cuda"); x.to(x.device)
        x.clone(); x + torch.tensor(1.0); x.new_empty(3); torch.empty_like(x); torch.cat([x, x])
        x.split(1)[0]; x.flatten()
        torch.empty(3, device="cuda"); torch.zeros(3, device=x.device); torch.ones(3, device=0)
        torch.arange(3, device="cuda:0"); torch.tensor([1.0], device=torch.device("cuda"))
        h.to("cuda"); h.cuda(); h.to(x); h.to(0); h.to(device="cuda", dtype=torch.float16)
        h.to("cuda", torch.float64); x.type(torch.float16); x.type("torch.cuda.HalfTensor")
        torch.nn.functional.layer_norm(x, (5,)); x.cpu().cuda(); torch.as_tensor(h, device="cuda")
    """
    host = """
        h; h[1:]; h + 1; h.half(); h.to(torch.float16); h.to("cpu"); h.cpu(); h.type(torch.float16)
        x.cpu(); x.to("cpu"); x.to("cpu", torch.float16); x.to(h); x.to(device="cpu"); h.clone()
        torch.empty(3); torch.arange(3); torch.tensor([1.0]); torch.cat([h, h]); h.pin_memory()
        x.new_zeros(3, device="cpu"); torch.zeros_like(x, device="cpu"); torch.empty_like(h)
    """
    for text, home in ((gpu, "cuda"), (host, "cpu")):
        for line in text.strip().splitlines():
            yield from ((code.strip(), home) for code in line.split(";"))


@pytest.mark.parametrize(("code", "home"), list(_homes()))
def test_what_is_made_lies_where_a_gpu_has_it(code, home):
    names = {"x": torch.ones(3, 5), "h": mark_host(torch.ones(3, 5)), "torch": torch}
    with TorchFace():
        made = eval(code, names)
        assert made.device.type == home and made.is_cuda == (home == "cuda")
        assert made.is_cpu == (home == "cpu") and (made.get_device() == 0) == made.is_cuda
        assert made.type().startswith("torch.cuda.") == made.is_cuda
    assert made.device.type == "cpu"


def test_a_copy_to_another_device_is_a_copy_and_one_to_the_same_is_none():
    x, h = torch.ones(3), mark_host(torch.ones(3))
    with TorchFace():
        assert x.to("cuda") is x and x.to(x.device) is x and x.cuda() is x and h.to("cpu") is h
        for one, other in ((x, x.cpu()), (x, x.to("cpu")), (h, h.cuda()), (h, h.to("cuda"))):
            other += 1
            assert one.eq(1).all()
        assert x.to("cuda", copy=True) is not x


def test_a_default_device_of_the_gpu_is_where_things_are_made():
    with TorchFace(), torch.device("cuda"):
        assert torch.empty(3).is_cuda and torch.tensor([1.0]).is_cuda
        assert not torch.empty(3, device="cpu").is_cuda
    with TorchFace():
        assert not torch.empty(3).is_cuda


def test_a_meta_tensor_stays_one():
    with TorchFace():
        assert torch.empty(3, device="meta").device.type == "meta"
        assert torch.ones(3).to("meta").device.type == "meta"


def test_code_that_the_dispatcher_calls_sees_the_gpu_again():
    def inside(x):
        return x.is_cuda

    with TorchFace():
        assert faced(inside)(torch.ones(3).cuda())
    assert faced(inside)(torch.ones(3))
    assert not inside(torch.ones(3))
