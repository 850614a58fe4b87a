"""The lines that run a finding's smallest case again, to be pasted into a shell."""

from __future__ import annotations

import re

from gate.report.shell import quoted, single_quoted
from gate.result import Finding, combined_digest

DEFAULT_IMAGE = "ghcr.io/org/kernel-gate:v1"
"""Image in the `docker run` line when none is said."""
DEVICES = ("cuda", "interpreter")
"""Devices that a line may ask for."""
LONGEST = 8 * 1024
"""Characters of a case text that still fit into a line to paste."""
_OPTION = re.compile(r"--force-config \d{1,4}|--dry-launch|--memcheck|--twice", re.ASCII)
"""Options that may stand in a line to paste, whatever a result.json says."""


def can_paste(finding: Finding) -> bool:
    """Whether the case text is short enough for a line; else result.json has it."""
    return len(finding.case) <= LONGEST


def replay_line(finding: Finding, device: str) -> str:
    """Return the line that replays a finding where kernel-gate is installed.

    The device is the one that found it. The digest lets the replay refuse inputs that are not
    those of the finding, because the schema has changed since.
    """
    return f"kernel-gate replay {_arguments(finding, device)}"


def docker_line(finding: Finding, device: str, image: str = DEFAULT_IMAGE) -> str:
    """Return the line that replays a finding where docker is installed."""
    gpus = "--gpus all " if device == "cuda" else ""
    return (
        f'docker run --rm {gpus}-v "$PWD:/work" {quoted(image)} '
        f"replay {_arguments(finding, device)}"
    )


def _arguments(finding: Finding, device: str) -> str:
    case = quoted(finding.case)
    words = [case if case[:1] in "'$" else single_quoted(finding.case)]
    if device in DEVICES:
        words.append(f"--device {device}")
    words += [option for option in finding.options if _OPTION.fullmatch(option)]
    if finding.inputs:
        words.append(f"--inputs {combined_digest(finding.inputs)}")
    return " ".join(words)
