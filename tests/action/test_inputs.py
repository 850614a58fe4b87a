"""Inputs: each is checked, an empty one is its default, and all that are wrong are named."""

import pytest

from gate.action.inputs import ActionInputs, read_inputs
from gate.errors import UsageError


def test_nothing_given_is_the_defaults() -> None:
    assert read_inputs({}) == ActionInputs()


def test_an_empty_input_is_its_default() -> None:
    assert read_inputs({"KG_DEVICE": "", "KG_SEED": " ", "KG_SCHEMAS": "\n"}) == ActionInputs()


def test_every_input_can_be_given() -> None:
    read = read_inputs(
        {
            "KG_DEVICE": "cuda",
            "KG_BUDGET_SECONDS": "12.5",
            "KG_CASES_PER_KERNEL": "7",
            "KG_SEED": "18446744073709551615",
            "KG_FAIL_ON": "new, relaxed",
            "KG_SCHEMAS": "a/*.yml\n  b/**/*.op.yaml\n",
            "KG_COMMENT_AUTHOR": "my-app[bot]",
            "KG_BASE": "HEAD^1",
        }
    )
    assert read.device == "cuda"
    assert read.budget_seconds == 12.5
    assert read.cases_per_kernel == 7
    assert read.seed == 2**64 - 1
    assert read.fail_on == ("new", "relaxed")
    assert read.schemas == ("a/*.yml", "b/**/*.op.yaml")
    assert read.comment_author == "my-app[bot]"
    assert read.base == "HEAD^1"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("MODE", "target"),
        ("RUNTIME", "podman"),
        ("IMAGE", "--privileged"),
        ("IMAGE", "a b"),
        ("DEVICE", "gpu"),
        ("GPUS", "all --privileged"),
        ("CONFIG", "../x.yml"),
        ("CONFIG", "/etc/passwd"),
        ("SCHEMAS", "a.yml\n../../b.yml"),
        ("TRUSTED_REF", "main"),
        ("BASE", "--upload-pack=x"),
        ("BASE", "a b"),
        ("BUDGET_SECONDS", "-1"),
        ("BUDGET_SECONDS", "1e9"),
        ("CASES_PER_KERNEL", "0"),
        ("SEED", "18446744073709551616"),
        ("SEED", "0x10"),
        ("FAIL_ON", "error,always"),
        ("UNMATCHED", "error"),
        ("PYTHONPATH", "~/lib"),
        ("REQUIREMENTS", "-r evil.txt"),
        ("REPORT_DIR", "a/../../b"),
        ("REPORT_DIR", "a\x00b"),
        ("COMMENT", "yes"),
        ("COMMENT_TAG", "a --> b"),
        ("COMMENT_AUTHOR", "a b"),
    ],
)
def test_what_is_not_known_is_refused_by_name(name: str, text: str) -> None:
    with pytest.raises(UsageError, match=name.lower().replace("_", "-")):
        read_inputs({"KG_" + name: text})


def test_all_that_is_wrong_is_said_at_once_and_the_nearest_word_is_named() -> None:
    with pytest.raises(UsageError) as caught:
        read_inputs({"KG_DEVICE": "cudaa", "KG_SEED": "x"})
    assert "did you mean cuda?" in caught.value.message
    assert len(caught.value.message.splitlines()) == 2
