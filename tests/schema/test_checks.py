"""Every rule that an op schema must keep beyond its form, with the message for breaking it."""

from __future__ import annotations

import pytest
from schema_texts import BASE, DATA, changed, data_schemas, load, problems


def test_the_schema_that_the_tests_change_has_no_problem() -> None:
    assert load(BASE).op == "base"


def _rules() -> list[tuple[str, str]]:
    """Return (text, words) of each rule of `data/rules.txt`."""
    made = []
    for block in (DATA / "rules.txt").read_text("utf-8").split("\n\n")[1:]:
        lines = BASE.splitlines()
        words = ""
        for row in block.strip().splitlines():
            if row.startswith("! "):
                words = row[2:]
                continue
            number, _, line = row.partition("|")
            lines[int(number) - 1 : int(number)] = [line]
        made.append(("\n".join(line for line in lines if line) + "\n", words))
    return made


RULES = _rules()


@pytest.mark.parametrize(("text", "words"), RULES, ids=[words[:40] for _, words in RULES])
def test_a_broken_rule_is_named_at_its_line_with_what_would_be_right(text: str, words: str) -> None:
    found = problems(text)
    assert any(words in line for line in found), found


@pytest.mark.parametrize(("text", "words"), RULES, ids=[words[:40] for _, words in RULES])
def test_one_broken_rule_gives_few_messages(text: str, words: str) -> None:
    assert len(problems(text)) <= 4


def test_problems_come_sorted_by_line_whatever_found_them() -> None:
    text = changed("M: 1..64", "M: 9..1") + "benchmark: {M: 65, Z: 1}\nwhere: Q > 1\n"
    lines = [int(line.split(":")[1].split()[0]) for line in problems(text)]
    assert lines == sorted(lines)
    assert len(lines) == 3


def test_an_entry_that_cannot_be_read_does_not_hide_the_other_problems() -> None:
    found = problems(changed("entry: k.py::base(x, w, ids, n, flag, kind)", "entry: base")
                     + "benchmark: {M: 65}\n")  # fmt: skip
    assert any("$.entry: 'base' is not a call" in line for line in found)
    assert any("$.benchmark.M: 65 is outside of 1..64" in line for line in found)
    assert not any("nowhere" in line for line in found)


def test_a_dim_that_cannot_be_read_is_reported_once_and_not_where_it_is_used() -> None:
    found = problems(changed("M: 1..64", "M: 1...64") + "benchmark: {M: 7}\n")
    assert found == ["a.op.yaml:5  $.dims.M: 1...64 has three dots; write 1..64"]


def test_a_cut_expression_is_quoted_whole_in_lists_and_in_maps() -> None:
    text = changed("N: 1..128", "N: 1..min(M, 3)").replace(
        "[M, N], dtype: T}\n  w", "[cdiv(M, 2), N], dtype: T}\n  w"
    )
    assert problems(text) == [
        "a.op.yaml:5  $.dims.N: '1..min(M' is half an expression; quote it: \"1..min(M, 3)\"",
        "a.op.yaml:8  $.args.x.tensor[0]: 'cdiv(M' is half an expression; quote it: \"cdiv(M, 2)\"",
    ]


def test_texts_with_brackets_that_are_quoted_are_left_alone() -> None:
    schema = load(changed("values: [mean, sum]", "values: ['(', ')', '[']"))
    assert schema.arg("kind").values.choices == ("(", ")", "[")


def test_two_extents_that_are_meant_are_written_the_larger_first() -> None:
    schema = load(changed("M: 1..64", "M: [4096, 1]"))
    assert schema.dims[0].choices == (4096, 1)
    assert load(changed("M: 1..64", "M: [1, 128]")).dims[0].choices == (1, 128)


def test_every_sample_keeps_every_rule() -> None:
    assert len(data_schemas()) == 24


@pytest.mark.parametrize(
    "stated",
    ["equal(y, y) and close(y, y)", "N > 1 or close(y, y)", "[equal(y, y), close(y, y)]",
     "close(y, y) if N > 1 else equal(y, y)", "N == 1 or (op(x=2 * x) != y).any()"],
)  # fmt: skip
def test_a_property_may_state_a_comparison_wherever_it_must_hold(stated: str) -> None:
    schema = load(BASE.rstrip("\n") + f'\nproperties: ["{stated}"]\n')
    assert schema.properties[0].text == stated
