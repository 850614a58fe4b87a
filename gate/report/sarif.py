"""`results.sarif`: findings as SARIF 2.1.0, for code scanning. Opt-in."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote

from gate.judge.model import FailureKind
from gate.report.text import clean
from gate.report.words import all_findings, measured, replay_command
from gate.result import Finding, RunResult

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
"""Where the format is described."""
MAX_RESULTS = 5_000
"""Results that GitHub shows of one run."""


def sarif(result: RunResult) -> str:
    """Return the run as one SARIF log with one run; equal results give equal bytes."""
    findings = [finding for _, finding in all_findings(result)][:MAX_RESULTS]
    rules = [_rule(kind) for kind in FailureKind]
    log = {
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "kernel-gate",
                        "semanticVersion": result.info.tool,
                        "rules": rules,
                    }
                },
                "columnKind": "utf16CodeUnits",
                "results": [_result(finding) for finding in findings],
            }
        ],
    }
    return json.dumps(log, indent=1, ensure_ascii=True) + "\n"


def _id(kind: FailureKind) -> str:
    return kind.value.replace(" ", "-").lower()


def _rule(kind: FailureKind) -> dict[str, Any]:
    return {
        "id": _id(kind),
        "name": kind.name.title().replace("_", ""),
        "shortDescription": {"text": kind.value},
    }


def _result(finding: Finding) -> dict[str, Any]:
    lines = [finding.message]
    if finding.comparison is not None:
        lines.append(measured(finding.comparison, str))
    if finding.diagnosis.condition:
        lines.append(finding.diagnosis.condition)
    lines.append(replay_command(finding))
    return {
        "ruleId": _id(finding.kind),
        "ruleIndex": list(FailureKind).index(finding.kind),
        "level": "error",
        "message": {"text": clean("\n".join(lines))},
        "locations": [
            {
                "physicalLocation": {
                    "artifactLocation": {"uri": _uri(finding.file), "uriBaseId": "%SRCROOT%"},
                    "region": {"startLine": max(1, finding.line)},
                }
            }
        ],
        "partialFingerprints": {"kernelGate/v1": clean(finding.fingerprint)},
    }


def _uri(path: str) -> str:

    return quote(path.encode("utf-8", "surrogateescape"))
