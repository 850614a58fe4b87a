"""Text that wants to be more than text, and results full of it."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Callable, Iterator
from itertools import cycle
from typing import Any

from hypothesis import strategies as st
from report_examples import EXAMPLES

from gate.result import RunResult

SENTINEL = "Zq7"
"""Stands in every hostile text, so that a test can see where the text went."""
FRAGMENTS = (
    "@org/team", "#1", "GH-1", "![x](https://e.example/x.png)", "[a](javascript:x)", "<b>", "<!--",
    "-->", "</details>", "<details>", "</sub>", "<script>", "`", "``", "```", "~~~", "````\n",
    "\n```\n",
    "\n`````\n", "|",
    "\\", "\\|", "*", "**", "_", "# ", "- ", "> ", "    ", "\t", "\n", "\r", "\r\n", "\n\n", "---",
    "===", "::error::", "::set-output name=verdict::pass", "::add-mask::x", "##[error]",
    "##[add-mask]pass", "#", "##", "[", "]", ":", "::", "%0A", "%3A", ",", "<!-- kernel-gate v1 ",
    "\u2028", "\u2029", "\x85", "\x0b", "\x0c", "\x1c", "\u3000", "\u00a0", "\u200b", "\u00ad",
    "\u202e", "\u2066", "\ufeff", "\U000e0041", "\ufe0f", "\x1b[31m", "\x1b]0;t\x07", "\x9b1m",
    "\x1b", "\x00", "\x08", "\x7f", "\ud800", "\udcff", "\ufffe", "\uffff", "]]>", "&amp;", "&#0;",
    "<![CDATA[", "'", '"', "$(id)", "`id`", "$'", "!", "\U0001f600", "e\u0301", "error", "add-mask",
)  # fmt: skip


def hostile_text(max_size: int = 12) -> st.SearchStrategy[str]:
    """Texts of hostile fragments, with the sentinel between them."""
    piece = st.one_of(st.sampled_from(FRAGMENTS), st.text(max_size=4))
    pieces = st.lists(piece, min_size=1, max_size=max_size)
    plain = pieces.map(lambda parts: SENTINEL.join(["", *parts, ""]))
    dense = pieces.map(lambda parts: SENTINEL + "".join(parts))
    return st.one_of(plain, dense)


def hostile_results() -> st.SearchStrategy[RunResult]:
    """Example results of which every text is hostile, file names and kernel ids too."""
    texts = st.lists(hostile_text(), min_size=1, max_size=6)
    return st.builds(
        lambda name, held: poisoned(EXAMPLES[name](), held),
        st.sampled_from(sorted(EXAMPLES)),
        texts,
    )


def poisoned(result: RunResult, texts: list[str]) -> RunResult:
    """Return a result with every text replaced; ops and kernels still find each other."""
    supply = cycle(texts)
    names: dict[str, str] = {}

    def replaced(text: str) -> str:
        if text not in names:
            names[text] = f"{next(supply)}{len(names)}"
        return names[text]

    return _walk(result, replaced)


def _walk(value: Any, replaced: Callable[[str], str]) -> Any:
    if dataclasses.is_dataclass(value):
        fields = {f.name: _walk(getattr(value, f.name), replaced) for f in _fields(value)}
        if "sha256" in fields or hasattr(value, "fail_on"):
            return value
        return dataclasses.replace(value, **fields)
    if isinstance(value, tuple):
        return tuple(_walk(item, replaced) for item in value)
    if isinstance(value, str) and not isinstance(value, enum.Enum) and value:
        return replaced(value)
    return value


def _fields(value: Any) -> Iterator[dataclasses.Field[Any]]:
    return iter(dataclasses.fields(value))
