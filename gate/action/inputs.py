"""The action's inputs: strings from the environment, each one validated before anything runs."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from gate.errors import UsageError, did_you_mean

PREFIX = "KG_"
"""Inputs reach the program as KG_<NAME>, never through `${{ }}` in a shell line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionInputs:
    """The inputs of action.yml, checked."""

    mode: str = "run"
    """`run`, `report` or `merge`."""
    runtime: str = "auto"
    """`auto`, `docker` or `native`."""
    image: str = ""
    """Image to run; empty: built from the action's Dockerfile."""
    device: str = "auto"
    """`auto`, `cuda` or `interpreter`."""
    gpus: str = "all"
    """Value of `docker run --gpus`."""
    config: str = ".kernel-gate.yml"
    """Configuration in the tree."""
    schemas: tuple[str, ...] = ()
    """Globs; empty: the configuration's."""
    trusted_ref: str = "base"
    """`base` or `head`."""
    base: str = ""
    """Base revision; empty: from the event."""
    budget_seconds: float | None = None
    """Wall time for all cases, in seconds; None: the configuration's, else 300."""
    cases_per_kernel: int | None = None
    """Cases an op; None: the device's default."""
    seed: int | None = None
    """Seed; None: from the head commit."""
    fail_on: tuple[str, ...] = ()
    """Of `error`, `new`, `never`, `relaxed`; empty: the configuration's, else `error`."""
    unmatched: str = ""
    """`fail`, `warn` or `ignore`; empty: the configuration's, else `warn`."""
    pythonpath: tuple[str, ...] = ()
    """Import folders of the tree."""
    requirements: str = ""
    """Requirements file at the base revision, or empty."""
    protected_paths: tuple[str, ...] = ()
    """Globs of files whose change is listed first."""
    report_dir: str = "kernel-gate-report"
    """Folder of the reports."""
    shard: str = ""
    """`I/N`: run this part of the cases; empty: all of them."""
    shards_dir: str = "kernel-gate-shards"
    """In `mode: merge`, the folder with a folder of reports for each shard."""
    sarif: str = "false"
    """Whether the output `sarif` names results.sarif, for code scanning: `true` or `false`."""
    comment: str = "auto"
    """`auto`, `always`, `failures` or `off`."""
    comment_tag: str = "default"
    """Tells several gates on one pull request apart."""
    comment_author: str = "github-actions[bot]"
    """Login that owns our comment."""


def _one_of(*known: str) -> Callable[[str, str], str]:
    def check(name: str, text: str) -> str:
        if text not in known:
            raise UsageError(
                f"input {name}: {text!r} is not known{did_you_mean(text, known)}; "
                f"one of {', '.join(known)}"
            )
        return text

    return check


def _pattern(regex: str, what: str) -> Callable[[str, str], str]:
    compiled = re.compile(regex)

    def check(name: str, text: str) -> str:
        if text and not compiled.fullmatch(text):
            raise UsageError(f"input {name}: {text!r} is not {what}")
        return text

    return check


def _seconds(name: str, text: str) -> float:
    if not re.fullmatch(r"\d{1,6}(\.\d+)?", text):
        raise UsageError(f"input {name}: {text!r} is not a number of seconds")
    return float(text)


def _count(name: str, text: str) -> int | None:
    if not text:
        return None
    if not re.fullmatch(r"[1-9]\d{0,6}", text):
        raise UsageError(f"input {name}: {text!r} is not a whole number of at least 1")
    return int(text)


def _seed(name: str, text: str) -> int | None:
    if not text:
        return None
    if not re.fullmatch(r"\d{1,20}", text) or int(text) >= 2**64:
        raise UsageError(f"input {name}: {text!r} is not a whole number below 2**64")
    return int(text)


def _shard(name: str, text: str) -> str:
    found = re.fullmatch(r"([1-9]\d{0,5})/([1-9]\d{0,5})", text, re.ASCII)
    if found is None or int(found[1]) > int(found[2]):
        raise UsageError(f"input {name}: {text!r} is not I/N with I from 1 to N, such as 2/3")
    return text


def _fail_on(name: str, text: str) -> tuple[str, ...]:
    check = _one_of("error", "new", "never", "relaxed")
    return tuple(check(name, part.strip()) for part in text.split(","))


def _paths(name: str, text: str) -> tuple[str, ...]:
    return tuple(_path(name, line.strip()) for line in text.splitlines() if line.strip())


def _path(name: str, text: str) -> str:
    """A path or glob inside the repository: relative, no `..`, no control characters."""
    parts = text.replace("\\", "/").split("/")
    if text.startswith(("/", "-", "~")) or ".." in parts or re.search(r"[\x00-\x1f\\]", text):
        raise UsageError(
            f"input {name}: {text!r} is not a path inside the repository (relative, without `..`)"
        )
    return text


_CHECKS: Mapping[str, Callable[[str, str], object]] = {
    "mode": _one_of("run", "report", "merge"),
    "runtime": _one_of("auto", "docker", "native"),
    "image": _pattern(r"[a-z0-9][A-Za-z0-9._:/@-]{0,254}", "an image name"),
    "device": _one_of("auto", "cuda", "interpreter"),
    "gpus": _pattern(r"[A-Za-z0-9=,:\"-]{1,128}", "a value of docker's --gpus"),
    "config": _path,
    "schemas": _paths,
    "trusted_ref": _one_of("base", "head"),
    "base": _pattern(r"[A-Za-z0-9._/][A-Za-z0-9._/^~@{}-]{0,254}", "a revision"),
    "budget_seconds": _seconds,
    "cases_per_kernel": _count,
    "seed": _seed,
    "fail_on": _fail_on,
    "unmatched": _one_of("fail", "warn", "ignore"),
    "pythonpath": _paths,
    "requirements": _path,
    "protected_paths": _paths,
    "report_dir": _path,
    "shard": _shard,
    "shards_dir": _path,
    "sarif": _one_of("true", "false"),
    "comment": _one_of("auto", "always", "failures", "off"),
    "comment_tag": _pattern(r"[A-Za-z0-9._-]{1,64}", "a tag of letters, digits, `.`, `_` and `-`"),
    "comment_author": _pattern(r"[A-Za-z0-9-]{1,64}(\[bot\])?", "a login"),
}


def read_inputs(environment: Mapping[str, str]) -> ActionInputs:
    """Read and check every input; an empty one is its default.

    Raises
        UsageError  with every input that is wrong, a line each
    """
    values: dict[str, object] = {}
    wrong = []
    for name, check in _CHECKS.items():
        text = environment.get(PREFIX + name.upper(), "")
        if not text.strip():
            continue
        try:
            values[name] = check(name.replace("_", "-"), text.strip())
        except UsageError as problem:
            wrong.append(problem.message)
    if wrong:
        raise UsageError("\n".join(wrong))
    return ActionInputs(**values)  # type: ignore[arg-type]
