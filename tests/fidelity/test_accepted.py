"""What the compiler accepts runs in the interpreter, with the compiler's meaning."""

from __future__ import annotations

from typing import Any

import pytest

pytestmark = pytest.mark.triton

OUTPUTS: dict[str, list[float]] = {
    "accepted_words": [10, 0, 1, 1, 1, 0, 10, 10, 2, 2, 1, 1, 1, 2, 2, 2],
    "accepted_imported": [2.0**n + 3 for n in range(1, 9)],
    "accepted_extras": [1, 2, 3, 4, 5, 6, 7, 8],
    "accepted_constants": [2.0 * n + 3 for n in range(1, 9)],
    "accepted_narrow": [127, -128, 5, 0, 128, -127, 6, 1],
    "accepted_branchy_reduce": [8],
    "accepted_shapes": [4.0 * n for n in range(1, 9)],
    "accepted_hints": [1, 2, 3, 4, 5, -1, -1, -1],
    "accepted_spoken": [1, 2, 3, 4],
    "accepted_closure": [4.0 * n for n in range(1, 9)],
    "accepted_tuples": [5.0 * n for n in range(1, 9)],
    "accepted_float8": [2.0 * n for n in range(1, 9)],
    "accepted_descriptor_of_the_host": [float(n) for n in range(1, 97)] + [0.0] * 32,
    "accepted_warmed": [1, 2, 3, 4, 5, 6, 7, 8],
    "tuned_by_itself": [400.0 + n + 1 for n in range(1, 9)],
    "tuned_second_config": [800.0 + n + 1 for n in range(1, 9)],
}


@pytest.mark.parametrize("name", OUTPUTS)
def test_a_form_that_compiles_runs_and_means_the_same(name: str, seen: dict[str, Any]) -> None:
    report = seen[name]
    assert report["error"] == ""
    assert report["faults"] == []
    assert report["out"] == OUTPUTS[name]


def test_control_flow_follows_the_compiler(seen: dict[str, Any]) -> None:
    total = [1.0 + 9 + 17 + 3 * i for i in range(8)]
    want = [(one + 3) * 2 + 0 + 2 + 8 for one in total]
    want += [(one + 2) * 3 + 1 + 2 + 8 for one in total]
    want += [one * 3 + 1 + 2 + 8 for one in total]
    assert seen["accepted_control"]["out"] == want
    assert seen["accepted_control"]["faults"] == []


def test_what_a_kernel_prints_is_printed(seen: dict[str, Any]) -> None:
    spoken = seen["accepted_spoken"]["spoken"]
    assert "pid (0, 0, 0) value: [1. 2. 3. 4.]" in spoken
    assert "again" in spoken
    assert "static 4" in spoken


def test_masked_lanes_without_other_are_poisoned(seen: dict[str, Any]) -> None:
    assert seen["undefined_lanes"]["out"] == ["1.0", "2.0", "3.0", "4.0", "5.0", *["nan"] * 3]


def test_a_device_function_that_is_not_emulated_is_unsupported(seen: dict[str, Any]) -> None:
    error = seen["unknown_device_function"]["error"]
    assert error == "Unsupported: the device function `__nv_j0f` is not emulated in the interpreter"


def test_tuning_runs_the_kernel_once_more_as_on_a_gpu(seen: dict[str, Any]) -> None:
    assert seen["tuned_in_place"]["out"] == [3.0] * 8
    assert seen["tuned_in_place_restored"]["out"] == [1.0] * 8
    assert seen["tuned_in_place"]["configs"] == 2


def test_a_forced_config_is_not_tried_first(seen: dict[str, Any]) -> None:
    assert seen["tuned_in_place_forced"]["out"] == [2.0] * 8
