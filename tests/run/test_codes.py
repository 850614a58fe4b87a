"""Whether two files become the same machine code of a kernel, as the compiler says."""

import json
from pathlib import Path

import pytest

from gate.run.codes import CodeComparer
from gate.run.faithful.samecode import without_places

KERNEL = """\
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, y_ptr, n, stride, BLOCK: tl.constexpr):
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + cols * stride, mask=cols < n, other=0.0)
    tl.store(y_ptr + cols, (x * 2.0).to(y_ptr.dtype.element_ty), mask=cols < n)
"""


def specialisation(file: Path, **changes: object) -> str:
    described: dict[str, object] = {
        "path": [], "module": "codes_kernel", "file": str(file), "function": "kernel",
        "signature": {
            "x_ptr": "*fp16", "y_ptr": "*fp16", "n": "i32", "stride": "i32", "BLOCK": "constexpr",
        },
        "constants": {"BLOCK": 64}, "aligned": ["x_ptr"], "options": {},
    }  # fmt: skip
    return json.dumps({**described, **changes})


@pytest.mark.triton
def test_a_change_that_the_compiler_undoes_is_the_same_code_and_others_are_not(
    tmp_path: Path,
) -> None:
    file = tmp_path / "original.py"
    file.write_text(KERNEL)
    made = [specialisation(file)]
    others = {
        "cast": KERNEL.replace(".to(y_ptr.dtype.element_ty)", ""),
        "late": KERNEL.replace("(x * 2.0)", "(x + x * 1.0)"),
        "stride": KERNEL.replace(" * stride", ""),
        "mask": KERNEL.replace("cols < n)", "cols <= n)"),
        "broken": KERNEL.replace("tl.store", "tl.stare"),
    }
    with CodeComparer() as comparer:
        found = {}
        for name, text in others.items():
            other = tmp_path / f"{name}.py"
            other.write_text(text)
            found[name] = tuple(
                comparer.same(made, file, other, to_the_end=whole) for whole in (False, True)
            )
        assert comparer.compiles(made, file, tmp_path / "mask.py")
        assert not comparer.compiles(made, file, tmp_path / "broken.py")
        one = specialisation(
            file,
            constants={"BLOCK": 64, "stride": 1},
            signature={
                "x_ptr": "*fp16", "y_ptr": "*fp16", "n": "i32", "stride": "constexpr",
                "BLOCK": "constexpr",
            },
        )  # fmt: skip
        stride = tmp_path / "stride.py"
        assert comparer.same([one], file, stride, to_the_end=False)
        assert not comparer.same([one, *made], file, stride, to_the_end=True)
        assert not comparer.same([one, ""], file, stride, to_the_end=True)
        assert not comparer.same([], file, stride, to_the_end=True)
        assert not comparer.same([one], stride, stride, to_the_end=True)
    assert found["cast"] == (True, True)
    assert found["stride"] == found["mask"] == found["broken"] == (False, False)
    assert found["late"] == (False, True)


@pytest.mark.triton
def test_an_answer_that_does_not_come_leaves_the_question_open(tmp_path: Path) -> None:
    file = tmp_path / "slow.py"
    file.write_text("import time\ntime.sleep(600)\n" + KERNEL)
    with CodeComparer(seconds=0.5) as comparer:
        assert not comparer.same([specialisation(file)], file, file, to_the_end=False)


def test_places_of_the_source_are_no_part_of_the_code() -> None:
    first = '#loc1 = loc("a.py":3:1)\n%0 = tt.load %x : f32 loc(#loc1)\n%1 = add %0 loc("y"(#loc2))'
    assert without_places(first) == "%0 = tt.load %x : f32\n%1 = add %0"
