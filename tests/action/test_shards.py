"""Shards of one run, and the job that makes one verdict, one report and one comment of them."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from action_repo import WRONG, Checkout, make_checkout
from fake_github import fake_github

from gate.action.__main__ import main
from gate.report.reader import read_result

REPORTS = {"result.json", "junit.xml", "comment.md", "report.md", "results.sarif"}


def gate(verb: str, checkout: Checkout, **more: str) -> int:
    return main([verb], checkout.environment(**more))


@pytest.fixture(scope="module")
def sharded(tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    """A checkout of a wrong change, which two shards have run."""
    checkout = make_checkout(tmp_path_factory.mktemp("sharded"), {"ops/softmax.py": WRONG})
    for number in (1, 2):
        folder = f"kernel-gate-shards/{number}"
        code = gate(
            "run", checkout, KG_SHARD=f"{number}/2", KG_REPORT_DIR=folder,
            KG_DEVICE="interpreter", KG_CASES_PER_KERNEL="14",
        )  # fmt: skip
        assert code in (1, 3), "a shard blocks, or leaves the failure to the other"
    return checkout


@pytest.fixture
def checkout(sharded: Checkout, tmp_path: Path) -> Checkout:
    """The same for a test of its own: reports and the runner's files are new."""
    shutil.copytree(sharded.folder, tmp_path / "run", symlinks=True)
    made = Checkout(
        folder=tmp_path / "run", base=sharded.base, head=sharded.head, merge=sharded.merge
    )
    for name in ("output", "summary"):
        (made.folder / name).write_text("")
    return made


@pytest.mark.slow
@pytest.mark.triton
def test_the_job_that_merges_blocks_and_comments_once(checkout: Checkout) -> None:
    assert gate("run", checkout, KG_MODE="merge") == 1
    outputs = checkout.outputs()
    assert (outputs["verdict"], outputs["exit-code"], outputs["failures"]) == ("fail", "1", "1")
    assert outputs["cases"] == "14"
    folder = checkout.workspace / "kernel-gate-report"
    assert {path.name for path in folder.iterdir()} >= REPORTS
    assert read_result(folder).info.shard == ""
    assert "Blocked: `softmax_kernel`" in (checkout.folder / "summary").read_text()
    with fake_github() as github:
        github.add_pull(7, checkout.head)
        posting = {"KG_TOKEN": "t", "GITHUB_API_URL": github.url}
        for number in ("1/2", "2/2"):
            assert gate("report", checkout, KG_SHARD=number, **posting) == 0
        assert github.requests == []
        assert gate("report", checkout, KG_MODE="merge", **posting) == 0
        (comment,) = github.comments
    assert "Blocked: `softmax_kernel`" in comment["body"]


@pytest.mark.slow
@pytest.mark.triton
@pytest.mark.parametrize("lost", ["a shard", "its result", "all of them", "its sense"])
def test_what_is_not_whole_is_no_pass(checkout: Checkout, lost: str) -> None:
    shards = checkout.workspace / "kernel-gate-shards"
    match lost:
        case "a shard":
            shutil.rmtree(shards / "2")
        case "its result":
            (shards / "2" / "result.json").unlink()
        case "its sense":
            (shards / "2" / "result.json").write_text("{}")
        case _:
            shutil.rmtree(shards)
    assert gate("run", checkout, KG_MODE="merge") == 2
    assert checkout.outputs()["verdict"] == "error"
    assert not (checkout.workspace / "kernel-gate-report" / "result.json").exists()


@pytest.mark.slow
@pytest.mark.triton
def test_a_link_among_the_shards_is_not_followed(checkout: Checkout) -> None:
    second = checkout.workspace / "kernel-gate-shards" / "2"
    kept = checkout.folder / "elsewhere.json"
    (second / "result.json").rename(kept)
    (second / "result.json").symlink_to(kept)
    assert gate("run", checkout, KG_MODE="merge") == 2


@pytest.mark.parametrize("text", ["0/2", "3/2", "1", "1/", "/2", "1/2/3", "a/b", "-1/2", "1/0"])
def test_a_shard_is_a_number_of_a_count(tmp_path: Path, text: str) -> None:
    checkout = make_checkout(tmp_path, {"notes.txt": "x"})
    assert gate("run", checkout, KG_SHARD=text) == 2
    assert "input shard" in checkout.outputs()["problem"]
