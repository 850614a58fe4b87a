"""`.kernel-gate.yml`: what a repository says once for all of its ops."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from gate.errors import ConfigError, Problem
from gate.schema.paths import glob_match
from gate.schema.reader import Reader, TooManyProblems
from gate.schema.yamldoc import YMap, YNode, YScalar, read_yaml

CONFIG_FILE = ".kernel-gate.yml"
"""Where the configuration is looked for."""
DEFAULT_SCHEMAS = ("**/*.op.yaml",)
"""Schema files unless said otherwise."""
FAIL_ON = ("defect", "new", "relaxed", "never")
UNMATCHED = ("fail", "warn", "ignore")
DEVICES = ("auto", "cuda", "interpreter")
MAX_SECONDS = 7 * 24 * 3600
"""Longest budget: a week of seconds."""
_KEYS = (
    "schemas", "pythonpath", "setup", "env", "device", "seed", "budget", "fail-on", "unmatched",
    "ignore", "protected-paths",
)  # fmt: skip
_BUDGET_KEYS = ("cases", "seconds", "ops")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class GateConfig:
    """The configuration, with defaults for what it leaves out."""

    schemas: tuple[str, ...] = DEFAULT_SCHEMAS
    """Globs of schema files."""
    pythonpath: tuple[str, ...] = ()
    """Folders of the tree to import from."""
    setup: str = ""
    """A file whose function `setup` each worker looks up once, empty for none."""
    env: tuple[tuple[str, str], ...] = ()
    """Variables for kernel workers."""
    device: str = ""
    """`auto`, `cuda` or `interpreter`; empty when nothing is said."""
    seed: int | None = None
    """Seed of every run; None: from the head commit."""
    cases: int | None = None
    """Cases an op; None: the device's default."""
    seconds: float | None = None
    """Wall time for all cases of a run."""
    op_cases: Mapping[str, int] = field(default_factory=dict)
    """op -> cases, where it differs."""
    fail_on: tuple[str, ...] = ()
    """What blocks; empty when nothing is said."""
    unmatched: str = ""
    """Changed kernels without a schema; empty when nothing is said."""
    ignore: tuple[tuple[str, str], ...] = ()
    """(kernel id or glob, reason) of kernels that are left alone."""
    protected_paths: tuple[str, ...] = ()
    """Globs of files whose change is listed first."""

    def ignored(self, kernel: str) -> str | None:
        """Return the reason why a kernel is left alone, or None when it is not."""
        return next((why for pattern, why in self.ignore if glob_match(kernel, pattern)), None)


def load_config(raw: bytes | None, path: str) -> GateConfig:
    """Return the configuration of a tree; the defaults when it has none.

    Raises
        ConfigError  with every problem of the file
    """
    if raw is None:
        return GateConfig()
    reader = Reader(path)
    config = GateConfig()
    try:
        documents = read_yaml(raw, path, reader.problems)
        if len(documents) > 1:
            reader.bad(documents[1].line, "$", "one document is expected")
        top = documents[0] if documents else None
        if top is not None and not (isinstance(top, YScalar) and top.value is None):
            config = _config(reader, top)
    except TooManyProblems as stop:
        reader.problems.append(stop.problem)
    if reader.problems:
        raise ConfigError("\n".join(str(p) for p in sorted(reader.problems, key=_line)))
    return config


def _line(problem: Problem) -> int:
    return problem.line


def _config(reader: Reader, node: YNode) -> GateConfig:
    top = reader.map(node, "$")
    if top is None:
        return GateConfig()
    if top.get("tolerance") is not None:
        words = "a tolerance belongs to an op and its review: write it into the op schema"
        reader.bad(top.line_of("tolerance"), "$.tolerance", words)
        top = YMap(items=tuple(i for i in top.items if i[0] != "tolerance"), line=top.line)
    reader.keys(top, "$", _KEYS)
    cases, seconds, op_cases = _budget(reader, top.get("budget"))
    setup, device, seed = top.get("setup"), top.get("device"), top.get("seed")
    unmatched = top.get("unmatched")
    return GateConfig(
        schemas=reader.many(top.get("schemas"), "$.schemas", _inside(reader, "a glob"))
        or DEFAULT_SCHEMAS,
        pythonpath=reader.many(top.get("pythonpath"), "$.pythonpath", _inside(reader, "a folder")),
        setup=_setup(reader, setup) if setup is not None else "",
        env=_env(reader, top.get("env")),
        device=reader.word(device, "$.device", DEVICES) if device is not None else "",
        seed=reader.whole(seed, "$.seed") if seed is not None else None,
        cases=cases,
        seconds=seconds,
        op_cases=op_cases,
        fail_on=reader.many(
            top.get("fail-on"), "$.fail-on", lambda n, p: reader.word(n, p, FAIL_ON) or None
        ),
        unmatched=reader.word(unmatched, "$.unmatched", UNMATCHED) if unmatched else "",
        ignore=_ignore(reader, top.get("ignore")),
        protected_paths=reader.many(
            top.get("protected-paths"), "$.protected-paths", _inside(reader, "a glob")
        ),
    )


def _env(reader: Reader, node: YNode | None) -> tuple[tuple[str, str], ...]:
    held = reader.map(node, "$.env")
    rows = held.items if held else ()
    for name, line, _ in rows:
        if not _VARIABLE.fullmatch(name):
            reader.bad(line, f"$.env.{name}", "a variable's name has letters, digits and _")
    return tuple((name, reader.text(value, f"$.env.{name}")) for name, _, value in rows)


def _inside(reader: Reader, what: str) -> Callable[[YNode, str], str | None]:
    """Return a reader of paths that stay inside the repository."""

    def read(node: YNode, path: str) -> str | None:
        text = reader.text(node, path, what).removesuffix("/") or "."
        parts = text.split("/")
        odd = not text.isprintable() or "\\" in text or (":" in parts[0] and "::" not in text)
        if text.startswith("/") or ".." in parts or odd:
            reader.bad(node.line, path, f"{text!r}: {what} inside the repository, with /")
            return None
        return text.removeprefix("./") or "."

    return read


def _setup(reader: Reader, node: YNode) -> str:
    text = _inside(reader, "a file")(node, "$.setup") or ""
    if text and not text.endswith(".py"):
        reader.bad(node.line, "$.setup", f"{text!r} is no Python file; it must end in .py")
        return ""
    return text


def _budget(reader: Reader, node: YNode | None) -> tuple[int | None, float | None, dict[str, int]]:
    held = reader.map(node, "$.budget")
    if held is None:
        return None, None, {}
    reader.keys(held, "$.budget", _BUDGET_KEYS)
    cases, seconds = held.get("cases"), held.get("seconds")
    ops = reader.map(held.get("ops"), "$.budget.ops", "a map of op: cases")
    per_op = {
        name: reader.whole(value, f"$.budget.ops.{name}", 1)
        for name, _, value in (ops.items if ops else ())
    }
    return (
        reader.whole(cases, "$.budget.cases", 1) if cases is not None else None,
        _seconds(reader, seconds) if seconds is not None else None,
        per_op,
    )


def _seconds(reader: Reader, node: YNode) -> float:
    value = reader.scalar(node, "$.budget.seconds", "a number of seconds")
    if isinstance(value, (int, float)) and not isinstance(value, bool) and 0 < value <= MAX_SECONDS:
        return float(value)
    reader.bad(
        node.line, "$.budget.seconds", f"a number above 0 and up to {MAX_SECONDS} is expected"
    )
    return 1.0


def _ignore(reader: Reader, node: YNode | None) -> tuple[tuple[str, str], ...]:
    held = reader.map(node, "$.ignore", "a map of kernel: reason")
    made = []
    for name, line, value in held.items if held else ():
        words = isinstance(value, YScalar) and isinstance(value.value, str) and value.text.strip()
        if not words:
            reader.bad(line, f"$.ignore.{name}", "a reason is expected: path.py::name: why")
        if "::" not in name:
            reader.bad(line, f"$.ignore.{name}", "a kernel id or glob is expected: path.py::name")
        elif isinstance(value, YScalar) and words:
            made.append((name, value.text.strip()))
    return tuple(made)
