"""`kernel-gate list`: the changed kernels, why they count, which op covers them. Runs nothing."""

from __future__ import annotations

import argparse
import json

from gate.cli.options import add_repository, default_base, scope_request
from gate.engine.scope import Scope, ScopedKernel, make_scope
from gate.report.text import line_safe


def add(verbs: argparse._SubParsersAction[argparse.ArgumentParser], help_line: str) -> None:
    """Add the command to the parser."""
    parser = verbs.add_parser(
        "list", help=help_line,
        allow_abbrev=False,
    )  # fmt: skip
    add_repository(parser)
    parser.add_argument("--json", action="store_true", help="print JSON instead of text")
    parser.set_defaults(command=command)


def command(options: argparse.Namespace) -> int:
    """Print the list; 0 whatever is on it."""
    base = options.base
    if base is None and not options.all and not options.kernel:
        base = default_base(options.repo, options.head)
    scope = make_scope(scope_request(options, base))
    print(as_json(scope) if options.json else as_text(scope))
    return 0


def as_text(scope: Scope) -> str:
    """Return the list for a person."""
    if not scope.kernels:
        lines = ["no Triton kernel changed"]
    else:
        count = len(scope.kernels)
        lines = [f"{count} changed kernel{'s' if count > 1 else ''}"]
        for kernel in scope.kernels:
            lines += _kernel_lines(kernel)
    lines += [f"relaxed: {line_safe(text)}" for text in scope.relaxed]
    lines += [f"note: {line_safe(text)}" for text in scope.notes]
    return "\n".join(lines)


def _kernel_lines(kernel: ScopedKernel) -> list[str]:
    lines = [f"{line_safe(kernel.id)}  (line {kernel.line})"]
    lines += [f"    changed: {line_safe(str(reason))}" for reason in kernel.reasons]
    if kernel.ops:
        lines.append(f"    covered by: {', '.join(kernel.ops)}")
    else:
        near = f"; nearest: {line_safe(kernel.near)}" if kernel.near else ""
        lines.append(f"    covered by no op schema{near}")
    return lines


def as_json(scope: Scope) -> str:
    """Return the list for a program."""
    kernels = [
        {
            "kernel": kernel.id, "file": kernel.file, "line": kernel.line, "ops": list(kernel.ops),
            "near": kernel.near,
            "reasons": [{"what": r.what, "name": r.name, "file": r.file} for r in kernel.reasons],
        }
        for kernel in scope.kernels
    ]  # fmt: skip
    return json.dumps(
        {"base": scope.base_sha, "head": scope.head_name, "kernels": kernels,
         "relaxed": list(scope.relaxed), "notes": list(scope.notes)}, indent=2,
    )  # fmt: skip
