"""Every report by name: what makes it and what its file is called."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from gate.report import comment, jsonfile, junit, sarif, summary
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
        "json": Format(file="result.json", make=jsonfile.dumps),
        "junit": Format(file="junit.xml", make=junit.junit),
        "comment": Format(file="comment.md", make=comment.comment),
        "summary": Format(file="report.md", make=summary.summary),
        "sarif": Format(file="results.sarif", make=sarif.sarif),
    }
)
"""name -> format."""
DEFAULT_FORMATS = ("json", "junit", "comment", "summary")
"""What a run writes."""
