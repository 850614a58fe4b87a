"""`results.sarif`: findings as SARIF 2.1.0, for code scanning. Opt-in."""

from __future__ import annotations

import json
import re
from typing import Any
from urllib.parse import quote

from gate.judge.model import FailureKind
from gate.report.plain import finding_text
from gate.report.text import clean, line_safe
from gate.report.words import all_findings, does, kernel_name
from gate.result import Finding, OpReport, RunResult

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
"""Where the format is described."""
HOME = "https://github.com/org/kernel-gate"
"""Where a reader learns more."""
MAX_RESULTS = 5_000
"""Results that GitHub shows of one run."""
_NOT_A_BYTE = re.compile("[\ud800-\udc7f\udd00-\udfff]")


def sarif(result: RunResult) -> str:
    """Return the run as one SARIF log with one run; equal results give equal bytes."""
    found = all_findings(result)[:MAX_RESULTS]
    driver = {
        "name": "kernel-gate",
        "semanticVersion": line_safe(result.info.tool, 100),
        "informationUri": HOME,
        "rules": [_rule(kind) for kind in FailureKind],
    }
    run: dict[str, Any] = {
        "tool": {"driver": driver},
        "columnKind": "utf16CodeUnits",
        "invocations": [
            {
                "executionSuccessful": not result.interrupted,
                "exitCode": int(result.exit_code),
            }
        ],
        "results": [_result(result, op, finding) for op, finding in found],
    }
    return json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, indent=1) + "\n"


def rule_id(kind: FailureKind) -> str:
    """Return the id of a kind's rule.

    >>> rule_id(FailureKind.OOB_WRITE)
    'out-of-bounds-write'
    """
    return kind.value.replace(" ", "-").lower()


def _rule(kind: FailureKind) -> dict[str, Any]:
    return {
        "id": rule_id(kind),
        "name": kind.name.title().replace("_", ""),
        "shortDescription": {"text": f"A kernel {does(kind)}"},
        "defaultConfiguration": {"level": "error"},
        "properties": {"precision": "very-high", "tags": ["correctness"]},
    }


def _result(result: RunResult, op: OpReport, finding: Finding) -> dict[str, Any]:
    title = f"{kernel_name(finding.kernel)} {does(finding.kind)}"
    place = {
        "artifactLocation": {"uri": _uri(finding.file), "uriBaseId": "%SRCROOT%"},
        "region": {"startLine": max(1, finding.line)},
    }
    return {
        "ruleId": rule_id(finding.kind),
        "ruleIndex": list(FailureKind).index(finding.kind),
        "level": "warning" if finding.origin == "already there" else "error",
        "message": {"text": clean(f"{title}\n{finding_text(result, op, finding)}")},
        "locations": [{"physicalLocation": place}],
        "partialFingerprints": {"kernelGate/v1": line_safe(finding.fingerprint)},
    }


def _uri(path: str) -> str:
    """Return a path as a relative URI; bytes that are no UTF-8 keep their values."""
    plain = _NOT_A_BYTE.sub("\ufffd", path)
    return quote(plain.encode("utf-8", "surrogateescape"))
