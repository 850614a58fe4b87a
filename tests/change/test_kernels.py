import subprocess
import sys

import pytest
from change_repo import KERNEL, scan_text

BODY = "(x, BLOCK: tl.constexpr):\n    tl.store(x + tl.arange(0, BLOCK), 0.0)\n"

SPELLINGS = {
    "the usual": "import triton\n@triton.jit\ndef k",
    "called": "import triton\n@triton.jit(do_not_specialize=['x'])\ndef k",
    "module alias": "import triton as tr\n@tr.jit\ndef k",
    "name": "from triton import jit\n@jit\ndef k",
    "name alias": "from triton import jit as j\n@j\ndef k",
    "name alias called": "from triton import jit as j\n@j(noinline=True)\ndef k",
    "deep module": "import triton.runtime.jit\n@triton.runtime.jit.jit\ndef k",
    "deep name": "from triton.runtime.jit import jit as jj\n@jj\ndef k",
    "runtime": "from triton.runtime import jit\n@jit\ndef k",
    "star": "from triton import *\n@jit\ndef k",
    "assigned module": "import triton\ntt = triton\n@tt.jit\ndef k",
    "assigned name": "import triton\nkernel = triton.jit\n@kernel\ndef k",
    "configured": "import triton\nfast = triton.jit(noinline=True)\n@fast\ndef k",
    "partial": "import triton\nfrom functools import partial\n@partial(triton.jit, debug=1)\ndef k",
    "assigned partial": (
        "import triton, functools\nj = functools.partial(triton.jit, debug=True)\n@j\ndef k"
    ),
    "wrapper": "import triton\ndef mine(f):\n    return triton.jit(f, debug=True)\n@mine\ndef k",
    "wrapper factory": (
        "import triton\ndef mine(**options):\n"
        "    def wrap(f):\n        return triton.jit(f, **options)\n"
        "    return wrap\n@mine(debug=True)\ndef k"
    ),
    "autotune": (
        "import triton\n@triton.autotune(configs=[triton.Config({'BLOCK': 64})], key=['x'])\n"
        "@triton.jit\ndef k"
    ),
    "heuristics": (
        "import triton\n@triton.heuristics({'BLOCK': lambda a: 64})\n@triton.jit\ndef k"
    ),
    "foreign decorator": (
        "import triton\nfrom lib import libentry\n@libentry()\n@triton.jit\ndef k"
    ),
    "gluon": "from triton.experimental import gluon\n@gluon.jit\ndef k",
    "other package": "from vllm.triton_utils import triton\n@triton.jit\ndef k",
    "guarded import": (
        "try:\n    import triton\nexcept ImportError:\n    triton = None\n@triton.jit\ndef k"
    ),
    "placeholder": (
        "try:\n    from triton import jit\nexcept ImportError:\n    def jit(f):\n"
        "        return f\n@jit\ndef k"
    ),
    "local import": "if True:\n    import triton as t\n    @t.jit\n    def k",
}


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_jit_is_found_in_every_spelling(spelling: str) -> None:
    start = SPELLINGS[spelling]
    body = BODY.replace("\n    ", "\n        ") if spelling == "local import" else BODY
    text = "import triton.language as tl\n" + start + body
    index = scan_text({"a.py": text})
    assert list(index.kernels) == ["a.py::k"]
    assert index.kernels["a.py::k"].line == text[: text.index("def k")].count("\n") + 1
    assert index.kernels["a.py::k"].params == ("x", "BLOCK")


CALLS = {
    "plain": "k = triton.jit(_k)\n",
    "same name": "_k = triton.jit(_k)\n",
    "configured": "k = triton.jit(noinline=True)(_k)\n",
    "keyword": "k = triton.jit(fn=_k)\n",
    "under autotune": "k = triton.autotune(configs=[], key=[])(triton.jit(_k))\n",
    "in two steps": "j = triton.jit(_k)\nk = triton.autotune(configs=[], key=[])(j)\n",
    "in a condition": "if FAST:\n    k = triton.jit(_k)\nelse:\n    k = None\n",
    "in a class": "class Ops:\n    k = triton.jit(_k)\n",
    "in a function": "def make():\n    return triton.jit(_k)\n",
    "in a dict": "TABLE = {'k': triton.jit(_k)}\n",
    "through a name": "g = _k\nk = triton.jit(g)\n",
}


@pytest.mark.parametrize("call", CALLS)
def test_a_function_that_a_call_makes_a_kernel_is_found(call: str) -> None:
    text = "import triton\nimport triton.language as tl\nFAST = 1\ndef _k" + BODY + CALLS[call]
    assert list(scan_text({"a.py": text}).kernels) == ["a.py::_k"]


def test_a_kernel_made_by_a_call_is_known_by_its_new_name_too() -> None:
    text = (
        "import triton\nimport triton.language as tl\nC = []\ndef _k" + BODY
        + "j = triton.jit(_k)\nk = triton.autotune(configs=C, key=[])(j)\n"
    )  # fmt: skip
    index = scan_text({"a.py": text, "b.py": "from a import k as tuned\nagain = tuned\n"})
    kernel = index.kernels["a.py::_k"]
    assert kernel.aliases == ("a.py::j", "a.py::k", "b.py::again")
    assert [f"{part.role.value} {part.key.name}" for part in kernel.parts] == [
        "kernel _k",
        "kernel j",
        "kernel k",
        "constant C",
    ]


@pytest.mark.parametrize(
    "text",
    [
        "import torch\n@torch.jit.script\ndef k(x):\n    return x\n",
        "from numba import jit\n@jit\ndef k(x):\n    return x\n",
        "import jax\n@jax.jit\ndef k(x):\n    return x\n",
        "from mine import jit\n@jit\ndef k(x):\n    return x\n",
        "def jit(f):\n    return f\n@jit\ndef k(x):\n    pass\n",
        "import triton\n@triton.autotune(configs=[], key=[])\ndef k(x):\n    pass\n",
        "import triton\ndef k(x):\n    return triton.cdiv(x, 2)\n",
        "TEXT = '''\n@triton.jit\ndef k(x):\n    pass\n'''\n",
        "jit = 3\n@jit\ndef k(x):\n    pass\n",
    ],
)
def test_what_only_looks_like_a_kernel_is_none(text: str) -> None:
    index = scan_text({"a.py": text})
    assert not index.kernels and not index.helpers and not index.problems


def test_kernels_lie_in_classes_functions_and_branches() -> None:
    index = scan_text(
        {
            "a.py": """
            import triton
            import triton.language as tl

            class Ops:
                class Inner:
                    @staticmethod
                    @triton.jit
                    def deep(x):
                        tl.store(x, 0)

            def make(size):
                @triton.jit
                def made(x):
                    tl.store(x, size)
                return made

            if tl:
                @triton.jit
                def branch(x):
                    tl.store(x, 1)
            else:
                @triton.jit
                def branch(x):
                    tl.store(x, 2)

            for _ in range(1):
                with open("x"):
                    while True:
                        match 3:
                            case _:
                                try:
                                    pass
                                finally:
                                    @triton.jit
                                    def nested(x):
                                        tl.store(x, 3)
            """
        }
    )
    assert list(index.kernels) == [
        "a.py::Ops.Inner.deep",
        "a.py::branch",
        "a.py::make.made",
        "a.py::nested",
    ]
    assert len(index.kernels["a.py::branch"].parts) == 1
    assert index.kernels["a.py::make.made"].launchers == ("a.py::make",)


def test_helpers_are_told_from_kernels() -> None:
    index = scan_text(
        {
            "a.py": """
            import triton
            import triton.language as tl

            @triton.jit
            def gives_value(x):
                return x + 1

            @triton.jit
            def never_used_but_gives_value(x):
                return x + 1

            @triton.jit
            def stores(p, x):
                tl.store(p, x)

            @triton.jit
            def both(p):
                tl.store(p, 0)

            @triton.jit
            def main(p, n, ACT: tl.constexpr):
                stores(p, ACT(gives_value(n)))
                both(p)
                return

            @triton.jit
            def activation(x):
                return x * 2

            @triton.jit
            def lonely(p):
                tl.store(p, 0)

            @triton.jit
            def other(p):
                tl.store(p, 1)
                return None

            def launch(p):
                main[(1,)](p, 3, ACT=activation)
                both[(1,)](p)
            """
        }
    )
    assert [id.partition("::")[2] for id in index.kernels] == ["both", "lonely", "main", "other"]
    assert [id.partition("::")[2] for id in index.helpers] == [
        "activation",
        "gives_value",
        "never_used_but_gives_value",
        "stores",
    ]


def test_a_scalar_function_under_a_generating_decorator_is_a_kernel_when_the_host_calls_it() -> (
    None
):
    index = scan_text(
        {
            "a.py": """
            import triton
            from gen.pointwise import pointwise_dynamic

            @pointwise_dynamic(promotion_methods=[(0, 1, "DEFAULT")])
            @triton.jit
            def add_func(x, y):
                return x + y

            def add(a, b):
                return add_func(a, b)
            """
        }
    )
    assert list(index.kernels) == ["a.py::add_func"]
    assert index.kernels["a.py::add_func"].launchers == ("a.py::add",)


def test_a_kernel_that_a_launcher_of_the_same_name_shadows_is_found() -> None:
    index = scan_text(
        {
            "a.py": """
            import triton
            import triton.language as tl

            @triton.jit
            def relu_(x, n, BLOCK: tl.constexpr):
                tl.store(x + tl.arange(0, BLOCK), 0.0)

            relu_kernel = relu_

            def relu_(x):
                relu_kernel[(1,)](x, x.numel(), BLOCK=256)
                return x
            """
        }
    )
    kernel = index.kernels["a.py::relu_"]
    assert (kernel.name, kernel.line) == ("relu_", 6)
    assert kernel.launchers == ("a.py::relu_",)
    assert kernel.params == ("x", "n", "BLOCK")
    assert not index.helpers


def test_two_kernels_of_one_name_in_one_file_make_one_id_with_the_parts_of_both() -> None:
    text = "import triton\nimport triton.language as tl\nA = 1\nB = 2\n"
    for name in ("A", "B"):
        text += f"@triton.jit\ndef k(x):\n    tl.store(x, {name})\nk[(1,)](0)\n"
    index = scan_text({"a.py": text})
    assert list(index.kernels) == ["a.py::k"]
    names = {part.key.plain for part in index.kernels["a.py::k"].parts}
    assert names == {"k", "A", "B"}


def test_imports_that_go_in_circles_end() -> None:
    index = scan_text(
        {
            "p/__init__.py": "from .a import *\nfrom .b import *\n",
            "p/a.py": "from .b import x, jit\nfrom . import *\ny = x\n",
            "p/b.py": "from .a import y, jit\nfrom . import *\nx = y\n",
            "p/c.py": "from . import jit, x\n@jit\ndef k(p):\n    x\n",
            "p/d.py": "a = b\nb = a\n@a\n@b.c\ndef k(p):\n    a.jit(k)\n",
            "p/e.py": "class C(D):\n  pass\nclass D(C):\n  pass\n@C.jit\ndef k(p):\n  D.x\n",
        }
    )
    assert not index.kernels


def test_modules_are_found_by_their_dotted_name() -> None:
    index = scan_text({"src/pkg/ops/__init__.py": "", "src/pkg/ops/norm.py": KERNEL})
    assert index.file_of_module("pkg.ops.norm") == "src/pkg/ops/norm.py"
    assert index.file_of_module("pkg.ops") == "src/pkg/ops/__init__.py"
    assert index.file_of_module("pkg.nothing") == ""
    assert index.in_file("src/pkg/ops/norm.py") == ("src/pkg/ops/norm.py::add_kernel",)


def test_listing_kernels_loads_neither_torch_nor_triton_nor_numpy() -> None:
    code = (
        "import sys; from gate.change.kernels import scan; from gate.change.tree import DirTree\n"
        "import gate.change.changed, gate.change.tiles\n"
        "scan(DirTree('corpus'))\n"
        "print(sorted({'torch', 'triton', 'numpy'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
