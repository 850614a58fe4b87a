"""Every report by name: what makes it and what its file is called."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from gate.report.annotations import annotate
from gate.report.comment import comment
from gate.report.console import render_console
from gate.report.jsonfile import dumps
from gate.report.junit import junit
from gate.report.sarif import sarif
from gate.report.summary import summary
from gate.result import RunResult


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """One kind of report."""

    file: str
    """Name of its file."""
    make: Callable[[RunResult], str]
    """A pure function of the result."""


FORMATS: Mapping[str, Format] = MappingProxyType(
    {
        "json": Format(file="result.json", make=dumps),
        "junit": Format(file="junit.xml", make=junit),
        "comment": Format(file="comment.md", make=comment),
        "summary": Format(file="report.md", make=summary),
        "sarif": Format(file="results.sarif", make=sarif),
        "annotations": Format(file="annotations.txt", make=annotate),
        "console": Format(file="console.txt", make=render_console),
    }
)
"""name -> format."""
DEFAULT_FORMATS = ("json", "junit", "comment", "summary")
"""What a run writes."""
