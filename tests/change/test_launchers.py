import pytest
from change_repo import scan_text

HEAD = """
import functools
import torch
import triton
import triton.language as tl

@triton.jit
def k(x, BLOCK: tl.constexpr):
    tl.store(x + tl.arange(0, BLOCK), 0.0)
"""


def launchers(text: str, others: dict[str, str] | None = None) -> list[str]:
    """Launchers of the one kernel of `ops/a.py`, without the file when it is that one."""
    index = scan_text({"ops/a.py": HEAD + text, **(others or {})})
    (kernel,) = index.kernels.values()
    return [id.removeprefix("ops/a.py::") for id in kernel.launchers]


DIRECT = {
    "by index": "def f(x):\n    k[(1,)](x, BLOCK=64)\n",
    "by run": "def f(x):\n    k.run(x, grid=(1,), warmup=False)\n",
    "through a variable": "def f(x):\n    g = k\n    g[(1,)](x)\n",
    "by condition": "def f(x):\n    (k if x else None)[(1,)](x)\n",
    "through partial": "def f(x):\n    functools.partial(k, BLOCK=64)[(1,)](x)\n",
    "through a module partial": "p = functools.partial(k, BLOCK=64)\ndef f(x):\n    p[(1,)](x)\n",
    "through a dict": "D = {'k': k}\ndef f(x):\n    D['k'][(1,)](x)\n",
    "through a list that grows": "L = []\nL.append(k)\ndef f(x):\n    L[0][(1,)](x)\n",
    "through an alias": "a = k\nb = a\ndef f(x):\n    b[(1,)](x)\n",
    "in a lambda": "def f(x):\n    return (lambda grid: k[grid](x))((1,))\n",
    "in a comprehension": "def f(x):\n    return [g[(1,)](x) for g in (k,)]\n",
    "given to a runner": "def f(x):\n    run(k, x)\n",
    "in a default": "def f(x, g=k):\n    g[(1,)](x)\n",
    "in a with": "def f(x):\n    with torch.cuda.device(0):\n        k[(1,)](x)\n",
}


@pytest.mark.parametrize("form", DIRECT)
def test_a_launch_is_found_in_every_form(form: str) -> None:
    assert launchers(DIRECT[form]) == ["f"]


def test_a_parameter_or_variable_of_the_same_name_is_no_launch() -> None:
    text = """
def given(k, x):
    k[(1,)](x)

def made(x):
    k = make()
    k[(1,)](x)

def looped(ks):
    for k in ks:
        k[(1,)](ks)

def inner(x):
    return [k for k in x] + [(lambda k: k)(x)]
"""
    assert launchers(text) == []


def test_launchers_of_launchers_are_found_up_to_the_public_entry() -> None:
    text = """
def _launch(x):
    k[(1,)](x)

class _F(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        _launch(x)

    @staticmethod
    def backward(ctx, dx):
        return dx

f = _F.apply

def public(x):
    return f(x)

def unrelated(x):
    return torch.relu(x)
"""
    assert launchers(text) == ["_launch", "_F.forward", "public"]


def test_callers_in_other_files_count_when_they_call() -> None:
    found = launchers(
        "def f(x):\n    k[(1,)](x)\n",
        {
            "ops/deep.py": "from .a import f as g\ndef two(x):\n    return g(x)\n",
            "api.py": "from ops import deep\ndef three(x):\n    return deep.two(x)\n",
            "api2.py": "import ops.deep\ndef four(x):\n    return ops.deep.two(x)\n",
            "register.py": "from ops.a import f\nOPS = {1: f}\ndef on():\n    set([f])\n",
            "dispatch.py": "from register import OPS\ndef five(x):\n    return OPS[1](x)\n",
        },
    )
    assert found == [
        "f", "dispatch.py::five", "ops/deep.py::two", "api.py::three", "api2.py::four",
    ]  # fmt: skip


def test_callers_through_reexports_are_found() -> None:
    found = launchers(
        "def f(x):\n    k[(1,)](x)\n",
        {
            "ops/__init__.py": "from .a import f\n",
            "pkg/__init__.py": "from .names import *\n",
            "pkg/names.py": "from ops import (  # the names\n    f as renamed,\n)\n",
            "user.py": "from pkg import renamed\ndef entry(x):\n    return renamed(x)\n",
            "lazy.py": "def entry(x):\n    from pkg import \\\n        renamed as r\n    r(x)\n",
        },
    )
    assert found == ["f", "lazy.py::entry", "user.py::entry"]


def test_callers_through_modules_that_are_passed_on_are_found() -> None:
    found = launchers(
        "def f(x):\n    k[(1,)](x)\n",
        {
            "ops/__init__.py": "",
            "pkg/__init__.py": "from ops import a as kernels\nimport ops.a as other\n",
            "one.py": "from pkg import kernels\ndef one(x):\n    kernels.f(x)\n",
            "two.py": "import pkg\ndef two(x):\n    pkg.other.f(x)\n",
            "three.py": "import ops.a, pkg as p\ndef three(x):\n    p.kernels.f(ops)\n",
        },
    )
    assert found == ["f", "one.py::one", "three.py::three", "two.py::two"]


def test_methods_that_need_an_instance_end_the_way_except_in_the_same_file() -> None:
    found = launchers(
        """
class Norm(torch.nn.Module):
    kernel = k

    def __init__(self):
        self.launch = functools.partial(k, BLOCK=64)

    def forward(self, x):
        return self._run(x)

    def _run(self, x):
        self.launch[(1,)](x)

class Sub(Norm):
    def other(self, x):
        self.kernel[(1,)](x)

def entry(x):
    return Norm()(x)
""",
        {
            "model.py": (
                "from ops.a import Norm, entry\nclass Block:\n    def __init__(self):\n"
                "        self.norm = Norm()\n    def forward(self, x):\n        return entry(x)\n"
                "def outside(x):\n    return Norm()(x)\n"
            ),
        },
    )
    assert found == ["Norm.__init__", "Norm._run", "Sub.other", "entry", "Norm.forward"]


def test_static_and_class_methods_are_launchers_to_other_files() -> None:
    found = launchers(
        """
class Ops:
    @staticmethod
    def one(x):
        k[(1,)](x)

    @classmethod
    def two(cls, x):
        cls.one(x)
""",
        {
            "api.py": "from ops.a import Ops\ndef three(x):\n    Ops.two(x)\n",
        },
    )
    assert found == ["Ops.one", "Ops.two", "api.py::three"]


def test_tests_benchmarks_and_examples_are_no_launchers() -> None:
    call = "from ops.a import f\ndef {}(x):\n    return f(x)\n"
    found = launchers(
        "def f(x):\n    k[(1,)](x)\ndef test_f():\n    f(0)\ndef benchmark():\n    f(0)\n",
        {
            "tests/test_a.py": call.format("check"),
            "benchmarks/run.py": call.format("run"),
            "test_b.py": call.format("check"),
            "examples/demo.py": "from ops.a import k\ndef show(x):\n    k[(1,)](x)\n",
        },
    )
    assert found == ["f"]


def test_a_kernel_that_lives_among_tests_is_launched_there() -> None:
    index = scan_text(
        {
            "tests/kernels.py": HEAD,
            "tests/running.py": "from kernels import k\ndef run(x):\n    k[(1,)](x)\n",
            "tests/test_x.py": "from running import run\ndef test_x():\n    run(0)\n",
        }
    )
    assert index.kernels["tests/kernels.py::k"].launchers == ("tests/running.py::run",)


def test_names_are_looked_up_as_python_does() -> None:
    """The nearest definition wins; a class's names are not seen from its methods."""
    text = """
def k2(x):
    k[(1,)](x)

class C:
    def k2(self):
        return 1

    def method(self, x):
        return k2(x)

def outer(x):
    def k2(y):
        return y
    return k2(x)
"""
    assert launchers(text) == ["k2", "C.method"]


def test_star_imports_and_packages_without_init_resolve() -> None:
    found = launchers(
        "def f(x):\n    k[(1,)](x)\n",
        {
            "plain/sub/one.py": "from ops.a import *\ndef one(x):\n    return f(x)\n",
            "two.py": "import plain.sub.one as m\ndef two(x):\n    return m.one(x)\n",
            "three.py": "from plain.sub import one\ndef three(x):\n    return one.one(x)\n",
        },
    )
    assert found == ["f", "plain/sub/one.py::one", "three.py::three", "two.py::two"]


def test_a_folder_named_like_a_library_does_not_hide_the_library() -> None:
    index = scan_text(
        {
            "ops/triton/__init__.py": "",
            "ops/triton/a.py": HEAD,
            "ops/torch/__init__.py": "",
            "ops/types.py": "x = 1\n",
            "ops/triton/b.py": "import types\nfrom .a import k\ndef f(x):\n    k[(1,)](types)\n",
        }
    )
    assert index.kernels["ops/triton/a.py::k"].launchers == ("ops/triton/b.py::f",)
