"""Where text ends up when a CommonMark renderer with GitHub's tables reads a report."""

from __future__ import annotations

import re
from collections.abc import Iterator

from markdown_it import MarkdownIt
from markdown_it.token import Token
from report_hostile import SENTINEL

OURS = re.compile(
    r"</?sub>|</details>\n?|<details><summary>[A-Z][a-z ]+</summary>\n?"
    r"|(<!-- kernel-gate v1 tag=[A-Za-z0-9_.-]+ -->\n?)?(<!-- run=\d+\.\d+ head=[0-9a-f]* -->\n?)?"
)
"""Every HTML that a report may hold."""
CODE = ("code_inline", "fence")
_PARSER = MarkdownIt("commonmark", {"html": True}).enable("table").enable("strikethrough")


def tokens(markdown: str) -> Iterator[Token]:
    """Yield every token, those inside of paragraphs too."""
    for token in _PARSER.parse(markdown):
        yield token
        yield from token.children or ()


def strays(markdown: str) -> list[str]:
    """Return what a text of others has become other than code: markup, HTML, plain words."""
    found = []
    for token in tokens(markdown):
        if token.type in ("html_inline", "html_block") and not OURS.fullmatch(token.content):
            found.append(f"html {token.content!r}")
        elif token.type in ("link_open", "image", "s_open", "code_block"):
            found.append(token.type)
        elif token.type == "fence" and token.info not in ("text", "sh"):
            found.append(f"fence {token.info!r}")
        elif token.type not in (*CODE, "inline") and SENTINEL in token.content:
            found.append(f"{token.type} {token.content!r}")
    return found


def columns(markdown: str) -> list[int]:
    """Return the number of cells of each table row."""
    counts: list[int] = []
    for token in _PARSER.parse(markdown):
        if token.type == "tr_open":
            counts.append(0)
        elif token.type in ("td_open", "th_open"):
            counts[-1] += 1
    return counts
