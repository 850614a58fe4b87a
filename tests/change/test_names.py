"""How names resolve: odd corners of imports, scopes, classes and branches."""

import pytest
from change_repo import difference, reasons, scan_text

JIT = "import triton\nimport triton.language as tl\n"
K = "@triton.jit\ndef k(x):\n    tl.store(x, {})\n"


def parts(files: dict[str, str], kernel: str = "a.py::k") -> set[str]:
    """Parts of a kernel but itself, `role name` each."""
    index = scan_text(files)
    return {f"{p.role.value} {p.key}" for p in index.kernels[kernel].parts[1:]}


@pytest.mark.parametrize(
    ("files", "path"),
    [
        ({"a.py": "from b import C", "b.py": "C = 1"}, "b.py"),
        ({"p/a.py": "from .b import C", "p/b.py": "C = 1"}, "p/b.py"),
        ({"p/q/a.py": "from ..b import C", "p/b.py": "C = 1"}, "p/b.py"),
        ({"p/q/a.py": "from .. import C", "p/__init__.py": "C = 1"}, "p/__init__.py"),
        ({"p/a.py": "from p.b import C", "p/__init__.py": "", "p/b.py": "C = 1"}, "p/b.py"),
        ({"src/p/a.py": "from p.b import C", "src/p/b.py": "C = 1"}, "src/p/b.py"),
        ({"x/y/a.py": "from p.b import C", "python/p/b.py": "C = 1"}, "python/p/b.py"),
        ({"a.py": "from . import C", "__init__.py": "C = 1"}, "__init__.py"),
        ({"a.py": "from p import C", "p/__init__.py": "from .b import *", "p/b.py": "C=1"}, "p/b.py"),  # noqa: E501
        (
            {"p/a.py": "from b import C", "p/__init__.py": "", "b.py": "C = 1", "p/b.py": "C = 2"},
            "b.py",
        ),
        ({"p/a.py": "from b import C", "b.py": "C = 1", "p/b.py": "C = 2"}, "p/b.py"),
    ],
)  # fmt: skip
def test_imports_find_their_file(files: dict[str, str], path: str) -> None:
    kernel = next(name for name in files if name.endswith("a.py"))
    files = {**files, kernel: JIT + files[kernel] + "\n" + K.format("C")}
    assert parts(files, f"{kernel}::k") == {f"constant {path}::C"}


@pytest.mark.parametrize(
    "statement",
    [
        "from .... import C", "from ...b import C", "from nowhere import C", "import nowhere as C",
        "from . import nothing as C", "from .a import C", "from os import C", "import types as C",
    ],
)  # fmt: skip
def test_imports_that_lead_nowhere_are_no_parts(statement: str) -> None:
    assert parts({"a.py": JIT + statement + "\n" + K.format("C"), "types.py": ""}) <= set()


def test_both_branches_of_a_guarded_import_are_parts() -> None:
    text = JIT + "try:\n    from b import C\nexcept ImportError as e:\n    C = 1\n" + K.format("C")
    assert parts({"a.py": text, "b.py": "C = 2\n"}) == {"constant a.py::C", "constant b.py::C"}


def test_names_that_statements_of_a_module_bind_are_constants() -> None:
    text = JIT + """
A, (B, *C) = 1, (2, 3)
for D in (1, 2):
    E = D
with open("x") as F:
    pass
match 3:
    case int():
        G = 1
while not D:
    H: tl.constexpr = 1
if __name__ == "__main__":
    I = 1
J: int
""" + K.format("A, B, C, D, E, F, G, H, I, J")  # fmt: skip
    assert parts({"a.py": text}) == {f"constant a.py::{name}" for name in "ABCDEFGH"}


def test_names_that_the_body_binds_are_its_own() -> None:
    body = """
@triton.jit
def k(x, A, *B, C=3, **D):
    E = 1
    for F in range(3):
        G += F
    (H := 2)
    import I
    from b import I2 as J
    K: tl.constexpr = 1
    try:
        pass
    except ValueError as L:
        pass
    match x:
        case [M, *N]:
            pass
        case {"a": O, **P}:
            pass
        case int() as Q:
            pass
    with x as R:
        pass
    [S for S in x]
    (lambda T, U=V: T)(W)
    A, B, C, D, E, F, G, H, I, K, L, M, N, O, P, Q, R
"""
    names = "ABCDEFGHIJKLMNOPQRSTUVW"
    constants = "".join(f"{name} = 1\n" for name in names)
    assert parts({"a.py": JIT + constants + body}) == {"constant a.py::V", "constant a.py::W"}


def test_a_global_statement_makes_a_name_the_modules_again() -> None:
    text = JIT + "A = 1\n@triton.jit\ndef k(x):\n    global A\n    A = x\n    tl.store(x, A)\n"
    assert parts({"a.py": text}) == {"constant a.py::A"}


def test_a_parameter_does_not_hide_a_name_in_its_own_default_or_annotation() -> None:
    text = JIT + "A = 1\nB = int\n@triton.jit\ndef k(x, A=A, B: B = 2):\n    tl.store(x, A)\n"
    assert parts({"a.py": text}) == {"constant a.py::A", "constant a.py::B"}


def test_a_class_is_seen_from_its_headers_and_not_from_its_methods() -> None:
    text = JIT + """
A = 1
CONFIGS = []

class Ops(Base, metaclass=Meta):
    A = 2
    CONFIGS = [A]
    if A:
        B = 3
    print(A)

    @staticmethod
    @triton.autotune(configs=CONFIGS, key=["x"])
    @triton.jit
    def k(x):
        tl.store(x, A)
"""  # fmt: skip
    assert parts({"a.py": text}, "a.py::Ops.k") == {
        "constant a.py::A",
        "constant a.py::Ops.A",
        "constant a.py::Ops.CONFIGS",
    }


def test_attributes_of_instances_and_of_base_classes_are_followed() -> None:
    files = {
        "base.py": "class Base:\n    SIZE = 4\n    def block(self):\n        return self.SIZE\n",
        "a.py": JIT
        + "from base import Base\n"
        + K.format(1)
        + """
class Op(Base):
    def __init__(self, flag):
        self.kernel: object = k
        self.flag = flag

    def __call__(self, x):
        self.kernel[(1,)](x, self.block(), self.flag, self.unknown, self)
""",
    }
    assert parts(files) == {
        "launcher a.py::Op.__init__",
        "launcher a.py::Op.__call__",
        "launcher a.py::Op.kernel",
        "helper base.py::Base.block",
        "constant base.py::Base.SIZE",
    }


def test_classes_and_values_that_device_code_uses_are_parts() -> None:
    files = {
        "a.py": JIT + "import consts\nfrom shapes import Tile as T\n"
        + K.format("consts.LIMITS['a'] + T.size + (x if x else consts).y"),
        "consts.py": "LIMITS = {'a': 1}\nLIMITS['b'] = 2\nLIMITS.x = 3\n",
        "shapes.py": "class Tile:\n    size = 3\n    def area(self):\n        return helper(self)\n"
        "def helper(t):\n    return t\n",
    }  # fmt: skip
    assert parts(files) == {"constant consts.py::LIMITS", "constant shapes.py::Tile.size"}
    changed = {**files, "consts.py": files["consts.py"].replace("= 2", "= 5")}
    assert reasons(difference(files, changed)) == {"a.py::k": ["constant `LIMITS` in consts.py"]}


def test_host_code_is_followed_two_steps_outside_the_kernels_file_and_device_code_to_its_end() -> (
    None
):
    hops = 6
    files = {
        "a.py": JIT + "import h0, d0\n" + K.format("d0.f(x)") + "def f(x):\n    k[h0.g(1)](x)\n"
    }
    for i in range(hops):
        files[f"h{i}.py"] = f"import h{i + 1}\ndef g(n):\n    return h{i + 1}.g(n)\n"
        files[f"d{i}.py"] = (
            f"import triton, d{i + 1}\n@triton.jit\ndef f(x):\n    return d{i + 1}.f(x)\n"
        )
    found = parts(files)
    assert {f"helper d{i}.py::f" for i in range(hops)} <= found
    assert {name for name in found if "::g" in name} == {"helper h0.py::g", "helper h1.py::g"}


def test_other_kernels_of_a_shared_launcher_are_not_parts() -> None:
    text = JIT + """
@triton.jit
def k(x):
    tl.store(x, 1)

@triton.jit
def other(x):
    tl.store(x, 2)

def launch_other(x):
    other[(1,)](x)

def f(x):
    k[(1,)](x)
    launch_other(x)
"""  # fmt: skip
    assert parts({"a.py": text}) == {"launcher a.py::f"}
    assert parts({"a.py": text}, "a.py::other") == {
        "launcher a.py::launch_other",
        "launcher a.py::f",
    }
