"""A launcher that refuses what the base got right is reported, and blocks where it is asked to."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine import gate_repos as repos
from engine.conftest import Run, run_gate
from gate.errors import ExitCode
from gate.judge.model import Verdict

pytestmark = pytest.mark.triton
REFUSING = repos.KERNEL.replace(
    "    x = x.contiguous()\n",
    '    if not x.is_contiguous():\n        raise ValueError("no such rows")\n',
)


@pytest.fixture(scope="module")
def narrower(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("narrower")
    base = repos.make_repo(folder / "repo")
    head = repos.commit(folder / "repo", {"ops/softmax.py": REFUSING})
    return run_gate(folder / "repo", base, head, folder / "reports")


def test_refusing_what_the_base_does_right_is_named_with_its_count_and_a_case(narrower: Run):
    (op,) = narrower.result.ops
    assert op.verdict is Verdict.PASS
    (told,) = op.narrowed
    assert told.startswith(
        f"the launcher now refuses {op.counts.refused} of {op.counts.ran} cases with "
        "`ValueError: no such rows`; the base runs row_softmax[B="
    )
    assert narrower.code == ExitCode.OK
    comment = (narrower.reports / "comment.md").read_text(encoding="utf-8")
    assert "A launcher now refuses what the base runs and gets right" in comment


def test_it_blocks_under_the_policy_that_forbids_relaxing(narrower: Run, tmp_path: Path):
    more = ("--fail-on", "relaxed")
    run = run_gate(narrower.repo, narrower.base, narrower.head, tmp_path / "r", *more)
    assert run.code == ExitCode.BLOCKED
    comment = (run.reports / "comment.md").read_text(encoding="utf-8")
    assert "this change relaxes the gate, which the policy forbids" in comment


def test_a_refusal_that_the_base_has_too_is_no_news(tmp_path: Path):
    base = repos.make_repo(tmp_path / "repo", kernel=REFUSING)
    changed = REFUSING.replace("    e = tl.exp(", "    e = 1.0 * tl.exp(")
    head = repos.commit(tmp_path / "repo", {"ops/softmax.py": changed})
    run = run_gate(tmp_path / "repo", base, head, tmp_path / "r", "--fail-on", "relaxed")
    (op,) = run.result.ops
    assert op.counts.refused > 0
    assert op.narrowed == ()
    assert run.code == ExitCode.OK


def test_refusing_what_the_base_got_wrong_is_a_mend_and_not_told(tmp_path: Path):
    wrong = repos.KERNEL.replace("    x = x.contiguous()\n", "")
    wrong = wrong.replace(
        "torch.empty_like(x)", "torch.empty(x.shape, dtype=x.dtype, device=x.device)"
    )
    wrong = wrong.replace("x, y, x.stride(0),", "x, y, x.shape[1],")
    mended = wrong.replace(
        "    y = torch.empty(",
        '    if not x.is_contiguous():\n        raise ValueError("no")\n    y = torch.empty(',
    )
    base = repos.make_repo(tmp_path / "repo", kernel=wrong)
    head = repos.commit(tmp_path / "repo", {"ops/softmax.py": mended})
    run = run_gate(tmp_path / "repo", base, head, tmp_path / "r", "--fail-on", "relaxed")
    (op,) = run.result.ops
    assert op.counts.refused > 0
    assert op.narrowed == ()
    assert run.code == ExitCode.OK
