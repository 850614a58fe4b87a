"""`python -m gate.action VERB`: what the steps of action.yml call.

    run           gate the change (`mode: run`), join shards (`mode: merge`), or read what another
                  run handed over (`mode: report`)
    report        write the sticky comment; always ends with 0
    prepare       write what a sandbox is made of, as the trusted commit says, into KG_PREPARED
    check         validate the inputs

Outputs, summary and annotations go to the files that GITHUB_OUTPUT, GITHUB_STEP_SUMMARY and
KG_ANNOTATIONS name; what is printed is for the log and holds no workflow command.
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path

from gate.action.events import read_event
from gate.action.gating import (
    Place,
    gate_change,
    merge_shards,
    outputs_of,
    place_of,
    prepare,
)
from gate.action.github import Client
from gate.action.inputs import ActionInputs, read_inputs
from gate.action.posting import Report, post, target_of_other_run, target_of_run
from gate.action.stepfiles import append, append_summary, outputs_text
from gate.engine.settings import Event
from gate.errors import ExitCode, GateError, ResultError, UsageError
from gate.report.annotations import annotate
from gate.report.console import render_console
from gate.report.reader import read_result
from gate.report.summary import summary
from gate.report.text import clean, code_block, log_guarded, log_safe

ANNOTATION_BYTES = 3000
"""UTF-8 bytes of an annotation's message: the runner cuts at 4,096 characters."""


def main(words: list[str], environment: Mapping[str, str]) -> int:
    """Run one verb and return its exit code; errors become an annotation and a summary."""
    verb = _VERBS.get(words[0]) if len(words) == 1 else None
    if verb is None:
        say(f"usage: python -m gate.action {'|'.join(_VERBS)}")
        return int(ExitCode.USAGE)
    try:
        return verb(read_inputs(environment), environment)
    except GateError as problem:
        fail(problem.message, int(problem.exit_code), environment)
        return int(problem.exit_code)
    except Exception:  # noqa: BLE001
        fail(
            f"this is a defect of kernel-gate itself; please report it\n{traceback.format_exc()}",
            int(ExitCode.INTERNAL),
            environment,
        )
        return int(ExitCode.INTERNAL)


def run(inputs: ActionInputs, environment: Mapping[str, str]) -> int:
    """Gate the change, or join its shards; in `mode: report`, read another run's result."""
    place = place_of(inputs, environment)
    if inputs.mode == "report":
        result = read_result(place.report_dir)
        write_outputs(outputs_of(result, inputs), environment)
        _to(environment, "GITHUB_STEP_SUMMARY", summary(result))
        return int(ExitCode.OK)
    merging = inputs.mode == "merge"
    result = merge_shards(place) if merging else gate_change(inputs, place, _listen)
    say(log_guarded(render_console(result)))
    write_outputs(outputs_of(result, inputs), environment)
    _to(environment, "GITHUB_STEP_SUMMARY", summary(result))
    _to(environment, "KG_ANNOTATIONS", annotate(result))
    return int(result.exit_code)


def report(inputs: ActionInputs, environment: Mapping[str, str]) -> int:
    """Write the sticky comment; what goes wrong is a warning with its mend."""
    try:
        _report(inputs, environment)
    except GateError as problem:
        warn(
            f"the comment was not written: {problem.message}. The verdict stands, and the job "
            "summary has the whole report.",
            environment,
        )
    return int(ExitCode.OK)


def _report(inputs: ActionInputs, environment: Mapping[str, str]) -> None:
    token, repository = environment.get("KG_TOKEN", ""), environment.get("GITHUB_REPOSITORY", "")
    if inputs.comment == "off" or not token:
        say("no comment: " + ("comment is off" if token else "no token was given"))
        return
    if inputs.shard:
        say("no comment: this is a shard; the job that merges comments")
        return
    place = place_of(inputs, environment)
    payload = read_event(place.event)
    url = environment.get("GITHUB_API_URL") or "https://api.github.com"
    with Client(repository=repository, token=token, url=url) as client:
        if inputs.mode == "report":
            target = target_of_other_run(client, payload, repository, environment)
        else:
            target = target_of_run(client, payload, environment)
        if target is None:
            say("no comment: the event belongs to no pull request")
            return
        posted, address = post(client, _what(place, environment), inputs, target)
    say(f"comment: {posted.value} {address}")
    write_outputs({"comment-url": address}, environment)


def _what(place: Place, environment: Mapping[str, str]) -> Report:
    try:
        return Report(result=read_result(place.report_dir))
    except (UsageError, ResultError) as problem:
        return Report(result=None, problem=environment.get("KG_PROBLEM") or problem.message)


def prepare_sandbox(inputs: ActionInputs, environment: Mapping[str, str]) -> int:
    """Write `device` and `requirements.txt` into the folder that KG_PREPARED names."""
    made = prepare(inputs, place_of(inputs, environment))
    folder = Path(environment["KG_PREPARED"])
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "device").write_text(made.device, encoding="ascii")
        (folder / "requirements.txt").write_bytes(made.requirements)
    except OSError as problem:
        raise UsageError(f"{folder}: cannot be written ({problem.strerror})") from problem
    return int(ExitCode.OK)


def check(inputs: ActionInputs, environment: Mapping[str, str]) -> int:
    """Reading the inputs was the check."""
    return int(ExitCode.OK)


_VERBS: Mapping[str, Callable[[ActionInputs, Mapping[str, str]], int]] = {
    "run": run,
    "report": report,
    "prepare": prepare_sandbox,
    "check": check,
}


def write_outputs(values: Mapping[str, str], environment: Mapping[str, str]) -> None:
    """Write outputs of the step, if the runner takes some."""
    if environment.get("GITHUB_OUTPUT"):
        append(Path(environment["GITHUB_OUTPUT"]), outputs_text(values))


def fail(message: str, code: int, environment: Mapping[str, str]) -> None:
    """Say on every channel that there is no verdict, and why."""
    sys.stderr.write(f"kernel-gate: exit {code}\n{log_safe(message)}\n")
    sys.stderr.flush()
    values = {"verdict": "error", "exit-code": str(code), "problem": clean(message, 4000)}
    body = f"## kernel-gate: not decided (exit {code})\n\n{code_block(message)}\n"
    try:
        write_outputs(values, environment)
        _to(environment, "GITHUB_STEP_SUMMARY", body)
        _to(environment, "KG_ANNOTATIONS", _command("error", message))
    except GateError as problem:
        sys.stderr.write(f"{log_safe(problem.message)}\n")


def warn(message: str, environment: Mapping[str, str]) -> None:
    """Warn once; the verdict stands."""
    sys.stderr.write(f"{log_safe(message)}\n")
    _to(environment, "KG_ANNOTATIONS", _command("warning", message))


def say(text: str) -> None:
    """Write to the log."""
    sys.stdout.write(text.rstrip("\n") + "\n")
    sys.stdout.flush()


def _listen(event: Event) -> None:
    if event.kind in ("start", "finding", "op-end", "note"):
        say(log_safe(f"{event.op}: {event.text}" if event.op else event.text))


def _to(environment: Mapping[str, str], name: str, text: str) -> None:
    path = environment.get(name)
    if not path or not text:
        return
    if name == "GITHUB_STEP_SUMMARY":
        append_summary(Path(path), text)
    else:
        append(Path(path), text)


def _command(level: str, message: str) -> str:
    """Return one workflow command; line breaks and `%` are escaped as the runner reads them."""
    data = clean(message, ANNOTATION_BYTES)
    data = data.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
    return f"::{level} title=kernel-gate::{data}\n"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], os.environ))
