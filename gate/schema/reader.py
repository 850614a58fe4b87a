"""Read YAML nodes as what the format wants, noting every problem and going on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from gate.dtypes import DTYPES
from gate.errors import Problem, did_you_mean
from gate.schema.expr import Call, Expr, ExprError, Level, looks_like_call, parse_call, parse_expr
from gate.schema.model import Range
from gate.schema.yamldoc import Scalar, YList, YMap, YNode, YScalar

T = TypeVar("T")
MAX_PROBLEMS = 100
"""Problems of one file; whoever has more mends these first."""
MAX_ENTRIES = 256
"""Entries of one map or list: no real schema comes near."""
MAX_MESSAGE = 400
"""Characters of one message; what a file quotes may be long."""


class TooManyProblems(Exception):
    """Reading stops: the file has more problems than anyone reads."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        self.problem = problem


def clean(text: str) -> str:
    """Return a text on one line: cut to its limit, and with control characters escaped.

    >>> clean("a\\x1b[31m"), len(clean("x" * 9999))
    ('a\\\\x1b[31m', 400)
    """
    shown = text if len(text) <= MAX_MESSAGE else f"{text[: MAX_MESSAGE - 1]}…"
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in shown)


@dataclass(slots=True)
class Reader:
    """The problems of one file, and readers of its nodes that add to them."""

    file: str
    """Path from the root."""
    problems: list[Problem] = field(default_factory=list)
    """What is wrong so far."""

    def bad(self, line: int, path: str, what: str) -> None:
        """Note a problem.

        Raises
            TooManyProblems  there are more than anyone reads
        """
        problem = Problem(file=self.file, line=line, path=clean(path), what=clean(what))
        if len(self.problems) >= MAX_PROBLEMS:
            words = f"more than {MAX_PROBLEMS} problems; mend these first"
            raise TooManyProblems(Problem(file=self.file, line=line, path="$", what=words))
        self.problems.append(problem)

    def map(self, node: YNode | None, path: str, what: str = "a map") -> YMap | None:
        """Return a map, or note that there is none."""
        if isinstance(node, YMap):
            if len(node.items) > MAX_ENTRIES:
                self.bad(node.line, path, f"{len(node.items)} entries; at most {MAX_ENTRIES}")
                return YMap(items=node.items[:MAX_ENTRIES], line=node.line)
            return node
        if node is not None:
            self.bad(node.line, path, f"{what} is expected, as `key: value` lines")
        return None

    def keys(
        self, node: YMap, path: str, allowed: Iterable[str], required: Iterable[str] = ()
    ) -> None:
        """Note unknown and missing keys."""
        known = list(allowed)
        for name, line, _ in node.items:
            if name not in known:
                near = did_you_mean(name, known)
                self.bad(line, f"{path}.{name}", f"unknown key{near}; known: {', '.join(known)}")
        for name in required:
            if node.get(name) is None:
                self.bad(node.line, f"{path}.{name}", "the key is missing")

    def scalar(self, node: YNode, path: str, what: str) -> Scalar:
        """Return a scalar's value; None with a problem for anything else."""
        if isinstance(node, YScalar):
            return node.value
        self.bad(node.line, path, f"{what} is expected, not a {_kind(node)}")
        return None

    def text(self, node: YNode, path: str, what: str = "text") -> str:
        """Return a scalar as it is written."""
        if isinstance(node, YScalar) and node.value is not None:
            return node.text
        self.bad(node.line, path, f"{what} is expected, not a {_kind(node)}")
        return ""

    def word(self, node: YNode, path: str, known: Sequence[str]) -> str:
        """Return one of a few words; empty with a problem for anything else."""
        text = node.text if isinstance(node, YScalar) else ""
        if text in known:
            return text
        near = did_you_mean(text, known)
        self.bad(
            node.line,
            path,
            f"{text or 'a ' + _kind(node)!r} is not known{near}; one of {', '.join(known)}",
        )
        return ""

    def flag(self, node: YNode | None, path: str, default: bool = False) -> bool:
        """Return true or false."""
        if node is None:
            return default
        if isinstance(node, YScalar) and isinstance(node.value, bool):
            return node.value
        self.bad(node.line, path, "true or false is expected")
        return default

    def whole(self, node: YNode, path: str, least: int = 0) -> int:
        """Return a whole number of at least `least`; `least` with a problem for anything else."""
        value = node.value if isinstance(node, YScalar) else None
        if isinstance(value, int) and not isinstance(value, bool) and least <= value < 2**62:
            return value
        shown = node.text if isinstance(node, YScalar) else f"a {_kind(node)}"
        self.bad(node.line, path, f"{shown!r} is not a whole number of at least {least}")
        return least

    def listed(self, node: YNode | None) -> tuple[YNode, ...]:
        """Return the members of a list, or the one value that stands for a list of one."""
        if node is None:
            return ()
        return node.items if isinstance(node, YList) else (node,)

    def some(
        self, node: YNode | None, path: str, read: Callable[[YNode, str], T | None]
    ) -> tuple[T, ...]:
        """Read as `many` does, and note a list that is there and empty."""
        if isinstance(node, YList) and not node.items:
            self.bad(node.line, path, "an empty list; name something, or leave the key out")
        return self.many(node, path, read)

    def many(
        self, node: YNode | None, path: str, read: Callable[[YNode, str], T | None]
    ) -> tuple[T, ...]:
        """Read each member of a list (or the one value) and drop what could not be read."""
        items = self.listed(node)
        if len(items) > MAX_ENTRIES and node is not None:
            self.bad(node.line, path, f"{len(items)} entries; at most {MAX_ENTRIES}")
            items = items[:MAX_ENTRIES]
        single = not isinstance(node, YList)
        made = [read(n, path if single else f"{path}[{i}]") for i, n in enumerate(items)]
        return tuple(item for item in made if item is not None)

    # --- expressions ----------------------------------------------------------------------------

    def expr(self, node: YNode, path: str, level: Level = Level.PURE) -> Expr | None:
        """Return a parsed expression."""
        if not isinstance(node, YScalar) or node.value is None:
            self.bad(node.line, path, f"an expression is expected, not a {_kind(node)}")
            return None
        return self._parsed(node, path, lambda: parse_expr(node.text, level=level, line=node.line))

    def call(self, node: YNode, path: str, level: Level = Level.CALL) -> Call | None:
        """Return a parsed call."""
        if not isinstance(node, YScalar) or node.value is None:
            self.bad(node.line, path, "a call is expected: path/from/root.py::name(arguments)")
            return None
        return self._parsed(node, path, lambda: parse_call(node.text, level=level, line=node.line))

    def call_or_expr(self, node: YNode, path: str) -> Call | Expr | None:
        """Return what `reference` and `make` hold."""
        if isinstance(node, YScalar) and looks_like_call(node.text):
            return self.call(node, path, Level.TORCH)
        return self.expr(node, path, Level.TORCH)

    def _parsed(self, node: YScalar, path: str, parse: Callable[[], T]) -> T | None:
        try:
            return parse()
        except ExprError as problem:
            self.bad(node.line, path, problem.message)
            return None

    def range(self, node: YNode, path: str) -> Range | None:
        """Return `a..b`."""
        text = node.text if isinstance(node, YScalar) else ""
        if "..." in text:
            self.bad(node.line, path, f"{text} has three dots; write {text.replace('...', '..')}")
            return None
        lo, dots, hi = text.partition("..")
        if not dots or not lo.strip() or not hi.strip():
            shown = text if text else f"a {_kind(node)}"
            self.bad(node.line, path, f"{shown!r} is not a range; write a..b, both ends included")
            return None
        ends = [
            self._parsed(
                YScalar(value=t, text=t, line=node.line), path,
                lambda t=t: parse_expr(t, line=node.line),  # type: ignore[misc]
            )
            for t in (lo, hi)
        ]  # fmt: skip
        if ends[0] is None or ends[1] is None:
            return None
        return Range(lo=ends[0], hi=ends[1])

    def dtype(self, node: YNode, path: str) -> str | None:
        """Return a dtype name."""
        text = node.text if isinstance(node, YScalar) else ""
        if text in DTYPES:
            return text
        self.bad(node.line, path, f"{text!r} is not a dtype{did_you_mean(text, DTYPES)}")
        return None


def is_range(node: YNode) -> bool:
    """Whether a node is written as a range."""
    return isinstance(node, YScalar) and isinstance(node.value, str) and ".." in node.text


def _kind(node: YNode) -> str:
    match node:
        case YMap():
            return "map"
        case YList():
            return "list"
        case YScalar(value=None):
            return "null"
        case YScalar():
            return "value"
