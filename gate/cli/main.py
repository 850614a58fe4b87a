"""The command line: arguments in, exit code out. The only place that exits the process."""

from __future__ import annotations

import argparse
import contextlib
import errno
import importlib
import io
import os
import signal
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from gate import __version__
from gate.errors import ExitCode, GateError

Command = Callable[[argparse.Namespace], int]

EXIT_TEXT = """\
exit codes:
  0   every changed kernel passed, or there was nothing to do
  1   blocked: a defect, or what --fail-on or --unmatched names
  2   the command line, the configuration, a schema or a revision is wrong
  3   could not decide: no device, no case ran, a worker was lost
  70  a defect of kernel-gate itself
"""


VERBS: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "run": ("run_command", "fuzz the changed kernels and say whether they may be merged"),
        "list": ("list_command", "say which kernels changed, why, and which schema covers them"),
        "replay": ("replay_command", "run one case again by its text"),
        "merge": ("merge_command", "join the results of all shards of a run into one verdict"),
        "report": ("report_command", "make reports again from a result.json"),
        "schema": ("schema_command", "check or show op schemas"),
        "plan": ("plan_command", "print the cases of an op schema without running them"),
        "calibrate": ("calibrate_command", "measure a correct kernel and write its tolerance"),
        "study": ("study_command", "measure the gate on its corpus"),
        "doctor": ("doctor_command", "say what this machine has, and what is missing"),
        "demo": ("demo_command", "gate a made-up pull request that is wrong for 513 tokens"),
    }
)
"""command -> (module of this package, help line)."""
NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO})
"""What a disk, or a device in its place, says when it takes no more: no defect of ours."""


def build_parser(verb: str = "") -> argparse.ArgumentParser:
    """Return the parser. Only the named command's module is imported: listing changes must not
    pay for what running them needs. Without a name every command is there in full."""
    parser = argparse.ArgumentParser(
        prog="kernel-gate",
        description="Fuzz the Triton kernels that a change touches, and judge them in float64.",
        epilog=EXIT_TEXT,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"kernel-gate {__version__}")
    verbs = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for name, (module, help_line) in VERBS.items():
        if verb in ("", name):
            importlib.import_module(f"gate.cli.{module}").add(verbs, help_line)
        else:
            verbs.add_parser(name, help=help_line, add_help=False)
    return parser


def main(
    arguments: Sequence[str] | None = None, *, imported: Callable[[], None] = lambda: None
) -> int:
    """Run one command and return its exit code; errors go to stderr, never as a traceback
    unless they are kernel-gate's own defects.

    imported  called when the command's modules are there, before it runs
    """
    words = sys.argv[1:] if arguments is None else list(arguments)
    parser = build_parser(next((word for word in words if word in VERBS), "none"))
    imported()
    try:
        code = _obey(parser, arguments)
        sys.stdout.flush()  # what cannot be written shows here, not when the process ends
        return code
    except GateError as problem:
        _complain(problem.message)
        return int(problem.exit_code)
    except BrokenPipeError:
        _drop_output()
        return int(ExitCode.UNDECIDED)
    except KeyboardInterrupt:
        _complain("interrupted")
        return int(ExitCode.UNDECIDED)
    except Exception as defect:
        if isinstance(defect, OSError) and defect.errno in NO_ROOM:
            where = defect.filename or "the output"
            _complain(f"{where} cannot be written ({defect.strerror}); make room, then run again")
            _drop_output()
            return int(ExitCode.UNDECIDED)
        traceback.print_exc()
        _complain(
            "this is a defect of kernel-gate itself; please report it with the text above and the "
            "command line"
        )
        return int(ExitCode.INTERNAL)


def _obey(parser: argparse.ArgumentParser, arguments: Sequence[str] | None) -> int:
    """Parse and run; the parser's own exits (`--help`, a wrong word) become codes too."""
    try:
        options = parser.parse_args(arguments)
    except SystemExit as stop:
        return int(stop.code or 0) and int(ExitCode.USAGE)
    command: Command = options.command
    return int(command(options))


def _complain(text: str) -> None:
    """Say what went wrong; a stderr that takes nothing must not change the exit code."""
    with contextlib.suppress(OSError):
        print(f"kernel-gate: {text}", file=sys.stderr)


def _drop_output() -> None:
    """Lead stdout nowhere: what is still held back for it would fail once more at exit."""
    with contextlib.suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _settle_streams() -> None:
    """Let every text be printed, whatever the encoding of the stream, and a closed one swallow it.

    Names of files and kernels are the repository's, not ours: a terminal or a log in ASCII shows
    what it lacks as escapes.
    """
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def entry() -> None:
    """Exit the process with the code of the command (console script).

    A signal that comes while modules are imported ends the process by itself: raised there, some
    libraries turn it into an ImportError, whose exit code would say that something was found.
    """
    heard = [signal.SIGINT] if signal.getsignal(signal.SIGINT) != signal.SIG_IGN else []
    for number in heard:
        signal.signal(number, signal.SIG_DFL)

    def listen() -> None:
        for number in (*heard, signal.SIGTERM):
            signal.signal(number, signal.default_int_handler)

    _settle_streams()
    sys.exit(main(imported=listen))
