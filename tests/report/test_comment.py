import re
from dataclasses import replace

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from markdown_oracle import CODE, columns, strays, tokens
from report_examples import (
    COMPARISON,
    EXAMPLES,
    SOFTMAX,
    SOFTMAX_OP,
    WRONG,
    illusion,
    kernel,
    result,
)
from report_hostile import SENTINEL, hostile_results, hostile_text, poisoned

from gate.errors import UsageError
from gate.judge.model import Verdict
from gate.report.comment import LIMIT, comment, marker
from gate.report.markdown import CUT_NOTE, cut_markdown
from gate.report.summary import summary
from gate.report.text import cell, code_block, code_span
from gate.result import Diagnosis, RunResult


@given(hostile_text())
def test_a_code_span_holds_any_text_and_nothing_gets_out(text: str) -> None:
    inside = [t for t in tokens(f"see {code_span(text)} here") if t.type == "code_inline"]
    assert len(inside) == 1
    assert strays(f"see {code_span(text)} here") == []


@given(hostile_text())
def test_a_code_block_holds_any_text_and_nothing_gets_out(text: str) -> None:
    made = f"before\n\n{code_block(text)}\n\nafter"
    assert [t.type for t in tokens(made)].count("fence") == 1
    assert strays(made) == []
    assert list(tokens(made))[-2].content == "after"


@pytest.mark.parametrize("ticks", [1, 3, 4, 9])
def test_no_run_of_backticks_closes_the_block_that_it_stands_in(ticks: int) -> None:
    inside = f"a\n{'`' * ticks}\n<b>\n{'`' * ticks}text\n@c"
    held = [token for token in tokens(code_block(inside)) if token.type == "fence"]
    assert [token.content for token in held] == [f"{inside}\n"]


@given(hostile_text(), hostile_text())
def test_a_table_cell_stays_one_cell(one: str, other: str) -> None:
    table = f"| a | b |\n|---|---|\n| {cell(one)} | {cell(other)} |"
    assert columns(table) == [2, 2]
    assert strays(table) == []
    assert not re.search(r"\\\\\|", table)


@settings(max_examples=150, deadline=None)
@given(hostile_results())
def test_text_of_others_stands_in_code_only(made: RunResult) -> None:
    text = comment(made, tag="x", run_id="7.2")
    assert strays(text) == []
    assert set(columns(text)) <= {5}
    assert text.startswith("<!-- kernel-gate v1 tag=x -->\n<!-- run=7.2 head=")
    assert text.count("<!-- run=") == 1 or SENTINEL in text


@settings(max_examples=40, deadline=None)
@given(hostile_results())
def test_the_summary_keeps_text_of_others_in_code_too(made: RunResult) -> None:
    assert strays(summary(made)) == []


@settings(max_examples=60, deadline=None)
@example(poisoned(EXAMPLES["crash"](), ["Zq7@org/teamZq7", "Zq7\n```\n<details>"]), 874)
@given(hostile_results(), st.integers(min_value=700, max_value=6000))
def test_a_cut_comment_keeps_to_its_bytes_closes_everything_and_says_so(
    made: RunResult, limit: int
) -> None:
    text = comment(made, limit=limit)
    assert len(text.encode()) <= limit
    assert strays(text) == []
    cut = text.endswith(CUT_NOTE)
    assert cut or SENTINEL in text or len(text) < limit
    if cut:
        last = [token for token in tokens(text) if token.type == "inline"][-1]
        assert last.content == CUT_NOTE.strip()
    folds = [token.content for token in tokens(text) if token.type == "html_block"]
    opened = sum(fold.startswith("<details>") for fold in folds)
    assert opened == sum(fold.startswith("</details>") for fold in folds)


def many_findings(count: int) -> RunResult:
    findings = tuple(
        replace(WRONG, fingerprint=f"{WRONG.fingerprint}{i}", trace="line\n" * 3000)
        for i in range(count)
    )
    op = replace(SOFTMAX_OP, findings=findings)
    return result(kernel(SOFTMAX, Verdict.ILLUSION, "softmax"), ops=(op,))


def test_folded_details_go_first_when_a_comment_is_too_long() -> None:
    text = comment(many_findings(16))
    assert len(text.encode()) <= LIMIT
    assert "<details>" not in text
    assert CUT_NOTE not in text
    assert text.count("kernel-gate replay ") == 16
    assert "Error map" in text


def test_error_maps_go_next_and_then_the_last_findings() -> None:
    text = comment(many_findings(60))
    assert "Error map" not in text
    assert text.count("kernel-gate replay ") == 60
    text = comment(many_findings(100))
    assert len(text.encode()) <= LIMIT
    assert text.endswith(CUT_NOTE)
    assert text.count("kernel-gate replay ") > 30


def test_a_text_is_cut_on_a_line_end_and_its_fence_closed() -> None:
    lines = "\n".join(f"line {i}" for i in range(100))
    text = f"head\n\n<details><summary>Details</summary>\n\n````text\n{lines}\n````\n\n</details>\n"
    made = cut_markdown(text, 400)
    assert len(made.encode()) <= 400
    assert re.search(r"\nline \d+\n````\n\n</details>\n\n_Cut here", made)
    assert cut_markdown(text, 10_000) == text


def test_a_code_span_that_starts_a_line_is_not_taken_for_a_fence() -> None:
    text = f"{code_span('a `` b')} starts here\n" + "more\n" * 200
    assert cut_markdown(text, 300).count("```") == 2


@pytest.mark.parametrize("name", sorted(EXAMPLES))
def test_an_example_is_clean_markdown(name: str) -> None:
    assert strays(comment(EXAMPLES[name]())) == []
    assert strays(summary(EXAMPLES[name]())) == []


def test_the_first_sentence_says_what_and_when_and_who_was_fooled() -> None:
    first = comment(illusion()).split("\n")[1]
    assert first == (
        "### \u26d4 Blocked: `softmax_kernel` returns wrong values exactly when `H % 128 != 0`, "
        "though KernelBench's check passes it."
    )


def test_without_a_condition_the_first_sentence_gives_an_example() -> None:
    finding = replace(WRONG, diagnosis=Diagnosis())
    op = replace(SOFTMAX_OP, findings=(finding,))
    made = result(kernel(SOFTMAX, Verdict.ILLUSION, "softmax"), ops=(op,))
    assert "returns wrong values, for example at `B=4 H=513 T=float32`," in comment(made)


def test_a_second_blocked_kernel_is_counted() -> None:
    other = kernel("ops/a.py::other", Verdict.ILLUSION, "softmax")
    made = result(kernel(SOFTMAX, Verdict.ILLUSION, "softmax"), other, ops=(SOFTMAX_OP,))
    first = comment(made).split("\n")[1]
    assert first.endswith("passes it; 1 more kernel blocked.")
    assert comment(made).count("Smallest case") == 1


def test_the_gate_was_run_on_a_cpu_and_the_first_line_says_so() -> None:
    assert "Checked on the CPU" in comment(EXAMPLES["crash"]()).split("\n")[1]
    assert "CPU" not in comment(illusion())


@pytest.mark.parametrize("name", ["green", "nothing"])
def test_a_green_run_is_one_line(name: str) -> None:
    lines = comment(EXAMPLES[name]()).strip().split("\n")
    assert len(lines) == 2
    assert lines[0] == marker("default")


def test_what_the_change_does_to_the_gate_comes_before_the_kernels() -> None:
    text = comment(EXAMPLES["relaxed"]())
    relaxed, protected = text.index("relaxes what"), text.index("control the gate")
    assert relaxed < protected < text.index("not reviewed yet") < text.index("| kernel |")


def test_a_finding_stands_beside_what_the_benchmarks_say() -> None:
    text = comment(illusion())
    assert "KernelBench's check: passes 5 of 5" in text
    assert "GEAK's check: fails 1 of 3" in text
    assert "TritonBench's check: not run" in text


def test_each_replay_is_a_block_of_one_line_to_copy() -> None:
    blocks = [
        t.content for t in tokens(comment(illusion())) if t.type == "fence" and t.info == "sh"
    ]
    assert [block.split()[0] for block in blocks] == ["kernel-gate", "docker"]
    assert all(block.count("\n") == 1 for block in blocks)


def test_a_map_that_is_wrong_all_over_is_folded() -> None:
    compared = replace(COMPARISON, map=("#" * 8, "+" * 8))
    everywhere = replace(WRONG, comparison=compared)
    made = result(
        kernel(SOFTMAX, Verdict.ILLUSION, "softmax"),
        ops=(replace(SOFTMAX_OP, findings=(everywhere,)),),
    )
    assert "<details><summary>Error map</summary>" in comment(made)
    assert "<details><summary>Error map</summary>" not in comment(illusion())


def test_the_values_that_hide_a_bug_are_told_beside_it_and_not_in_the_first_line() -> None:
    told = Diagnosis(
        condition="fails exactly when H % 128 != 0; hidden by the values of `large` in x and others"
    )
    made = result(
        kernel(SOFTMAX, Verdict.ILLUSION, "softmax"),
        ops=(replace(SOFTMAX_OP, findings=(replace(WRONG, diagnosis=told),)),),
    )
    text = comment(made)
    assert "exactly when `H % 128 != 0`, though" in text.splitlines()[1]
    assert "Does not show with very large values (`large`) in `x`, and with others." in text


def test_a_bound_on_the_values_that_hides_a_bug_is_told_beside_it() -> None:
    told = Diagnosis(
        condition="fails only when H % 128 != 0 (40 of 60 such cases); hidden where max of x > 10"
    )
    made = result(
        kernel(SOFTMAX, Verdict.ILLUSION, "softmax"),
        ops=(replace(SOFTMAX_OP, findings=(replace(WRONG, diagnosis=told),)),),
    )
    assert "only when `H % 128 != 0`, though" in comment(made).splitlines()[1]
    assert "Does not show where `max of x > 10`." in comment(made)


def test_a_case_that_is_too_long_to_paste_is_pointed_to() -> None:
    finding = replace(WRONG, case="softmax[" + "x" * 9000)
    op = replace(SOFTMAX_OP, findings=(finding,))
    text = comment(result(kernel(SOFTMAX, Verdict.ILLUSION, "softmax"), ops=(op,)))
    assert "too long to paste (9,008 characters)" in text
    assert "docker run" not in text


@pytest.mark.parametrize("tag", ["", "a b", "x --> y", "x\ny", "-a", "a" * 65, "\u00e9"])
def test_a_tag_that_could_end_the_marker_is_refused(tag: str) -> None:
    with pytest.raises(UsageError, match="comment tag"):
        comment(illusion(), tag=tag)


def test_a_run_id_is_a_number() -> None:
    assert "<!-- run=12.1 head=a91b04c3" in comment(illusion(), run_id="12")
    with pytest.raises(UsageError, match="run id"):
        comment(illusion(), run_id="12 -->")


def test_the_code_nodes_are_the_only_place_of_the_sentinel() -> None:
    held = [t.type for t in tokens(f"a `{SENTINEL}`") if SENTINEL in t.content]
    assert held == ["inline", CODE[0]]
    assert strays(f"a {SENTINEL} `b`") == [f"text 'a {SENTINEL} '"]
    assert strays("<b>x</b>") == ["html '<b>'", "html '</b>'"]
    assert strays("![a](b)") == ["image"]
