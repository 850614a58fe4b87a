"""The interpreter's memory, integer, race and compile checks against planted faults."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).resolve().parent
LINES = (HERE / "planted.py").read_text(encoding="utf-8").splitlines()

pytestmark = pytest.mark.triton


def marked(name: str) -> int:
    """Return the line that carries a mark."""
    return next(n for n, text in enumerate(LINES, 1) if text.endswith(f"# mark: {name}"))


PLANTED = {
    "read_past": ("oob_read", "x", [2, 0, 0], "1 element past the end of `x` (3 of 8 lanes)"),
    "write_past": ("oob_write", "y", [2, 0, 0], "1 element past the end of `y` (3 of 8 lanes)"),
    "write_far": ("oob_write", "y", [0, 0, 0], "8589934585 elements past the end of `y`"),
    "read_before": ("oob_read", "x", [0, 0, 0], "1 element before the start of `x`"),
    "reach_other": ("oob_read", "x", [0, 0, 0], "of `x` (8 of 8 lanes)"),
    "rows_dense": ("oob_read", "x", [1, 0, 0], "the gap between elements of `x`"),
    "add_to_unset": ("uninitialised", "y", [0, 0, 0], "which nothing has written (6 of 8 lanes)"),
    "index_past": ("oob_read", "index", [2, 0, 0], "1 element past the end of `index`"),
    "wrap_row": ("int_wrap", "x", [0, 0, 0], "left the int32 range on its way to the address"),
    "race_write": ("race", "y", [1, 0, 0], "which program (0, 0, 0) writes at line"),
    "race_read": ("race", "x", [1, 0, 0], "which program (0, 0, 0) reads at line"),
    "race_sum": ("race", "y", [1, 0, 0], "which program (0, 0, 0) writes at line"),
}


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_fault_is_named_with_its_line(name: str, seen: dict[str, Any]) -> None:
    kind, tensor, program, words = PLANTED[name]
    report = seen[name]
    assert report["error"] == ""
    assert [fault["kind"] for fault in report["faults"]] == [kind]
    fault = report["faults"][0]
    assert fault["line"] == marked(name)
    assert fault["tensor"] == tensor
    assert fault["program"] == program
    assert fault["kernel"] == f"planted.py::{name}"
    assert words in fault["message"]


def test_a_store_past_the_end_is_told_beside_a_read_past_the_end(seen: dict[str, Any]) -> None:
    faults = seen["count_past_and_write_past"]["faults"]
    assert [fault["kind"] for fault in faults] == ["oob_read", "oob_write"]


def test_rows_far_apart_are_checked_without_a_map_of_what_lies_between(
    seen: dict[str, Any],
) -> None:
    kinds = {fault["kind"]: fault for fault in seen["far_rows"]["faults"]}
    assert set(kinds) == {"int_wrap", "oob_read"}
    assert kinds["int_wrap"]["line"] == marked("far_rows")
    assert kinds["int_wrap"]["program"] == [2, 0, 0]
    assert seen["far_rows_wide_is_clean"]["out"] == [float(n) for n in range(15)]


def test_correct_kernels_trip_no_check(seen: dict[str, Any]) -> None:
    clean = [name for name in seen if name.endswith("_is_clean")]
    assert len(clean) >= 12
    for name in clean:
        assert seen[name]["error"] == "", name
        assert seen[name]["faults"] == [], name


def test_clean_kernels_compute_what_they_should(seen: dict[str, Any]) -> None:
    assert seen["copy_is_clean"]["out"] == [float(n) for n in range(1, 22)]
    assert seen["rows_strided_is_clean"]["out"] == [float(n) for n in range(1, 16)]
    for name in ("atomic_sum_is_clean", "locked_sum_is_clean", "last_sum_is_clean"):
        assert seen[name]["out"] == [528.0], name


def test_a_far_write_is_not_performed_even_without_checks(seen: dict[str, Any]) -> None:
    report = seen["write_far_unchecked"]
    assert [fault["kind"] for fault in report["faults"]] == ["oob_write"]
    assert report["out"] == [0.0] * 8


def test_programs_run_in_the_order_that_is_asked_for(seen: dict[str, Any]) -> None:
    assert seen["forward_order"]["out"] == [4.0, 4.0]
    assert seen["reversed_order"]["out"] == [10.0, 10.0]


def test_addresses_read_from_memory_reach_live_tensors_only(seen: dict[str, Any]) -> None:
    good = seen["pointers_are_followed"]
    assert good["faults"] == []
    assert good["out"] == [1.0, 2, 3, 4, 5, 6, 0, 0, 10, 20, 30, 40, 50, 60, 0, 0]
    bad = seen["pointers_past_the_end"]
    assert {fault["kind"] for fault in bad["faults"]} == {"oob_read"}


def test_a_program_that_waits_for_a_later_one_is_unsupported(seen: dict[str, Any]) -> None:
    assert seen["wait_for_other"]["error"].startswith("Unsupported: the program waits")
    assert seen["wait_for_other_reversed"]["error"] == ""


def test_a_grid_that_cuda_refuses_is_a_fault_and_an_empty_one_is_not(seen: dict[str, Any]) -> None:
    assert [fault["kind"] for fault in seen["grid_too_large"]["faults"]] == ["grid"]
    assert "axis 1" in seen["grid_too_large"]["faults"][0]["message"]
    assert seen["empty_grid"]["faults"] == []


def test_inline_assembly_is_unsupported_and_no_fault_of_the_kernel(seen: dict[str, Any]) -> None:
    assert seen["assembly"]["error"].startswith("Unsupported: inline assembly")


def test_what_does_not_compile_is_the_kernels_own_error(seen: dict[str, Any]) -> None:
    for name, mark, words in (
        ("to_on_int_of_one", "to_on_int", "'int' object has no attribute 'to'"),
        ("shallow_dot", "shallow_dot", "K >= 8"),
        ("misaligned", "misaligned", "misaligned address: an access of 4 bytes"),
        ("unknown_name", "unknown_name", "'undefined_factor' is not defined"),
    ):
        error = seen[name]["error"]
        assert error.startswith("KernelFailed: "), name
        assert words in error
        assert error.endswith(f"(line {marked(mark)})")
    assert seen["to_on_int_of_two"]["error"] == ""


def test_a_specialisation_that_does_not_compile_is_a_compile_fault(seen: dict[str, Any]) -> None:
    assert seen["copy_compiles"]["faults"] == []
    fault = seen["loop_changes_type"]["faults"][0]
    assert (fault["kind"], fault["line"]) == ("compile", marked("ragged_block") - 1)
    assert "does not compile for sm_90" in fault["message"]
    assert "Loop-carried variable acc" in fault["message"]
    fault = seen["to_on_int_of_one_does_not_compile"]["faults"][0]
    assert (fault["kind"], fault["line"]) == ("compile", marked("to_on_int"))


def test_what_the_assembler_refuses_is_told_in_its_words(seen: dict[str, Any]) -> None:
    fault = seen["volatile_cached_does_not_assemble"]["faults"][0]
    assert fault["kind"] == "compile"
    assert fault["message"].endswith(
        "the assembler refuses it: Modifier '.volatile' cannot be combined with modifier '.cg'"
    )


def test_what_cannot_be_compiled_apart_is_noted_and_no_fault(seen: dict[str, Any]) -> None:
    report = seen["kernel_without_a_name_is_not_compiled"]
    assert report["faults"] == []
    assert any("made_in_a_function.inner has no text form" in note for note in report["notes"])
