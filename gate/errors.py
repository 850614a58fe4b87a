"""The error tree and the exit codes.

    GateError                    exit 70 unless a subclass says otherwise
    |-- UsageError               exit 2   the command line, a path, a ref
    |   |-- GitError             exit 2   the repository or a revision is not what was said
    |   `-- CaseTextError        exit 2   a case text that does not parse or does not fit
    |-- SchemaError              exit 2   an op schema, with all of its problems
    |-- ConfigError              exit 2   `.kernel-gate.yml`
    |-- DeviceError              exit 3   the device that was asked for is not there
    |-- WorkerError              exit 3   a worker could not be started or lost for good
    |-- ProtocolError            exit 3   a peer sent what the protocol does not allow
    `-- ResultError              exit 2   a result file that cannot be read or merged

Every message says where, what, and how to mend it. Errors survive pickling: each keeps its
constructor arguments in `args`.
"""

from __future__ import annotations

import difflib
import enum
from collections.abc import Iterable
from dataclasses import dataclass


class ExitCode(enum.IntEnum):
    """What the process tells its caller. README and action.yml carry the same table."""

    OK = 0
    """Every changed kernel passed, or there was nothing to do."""
    BLOCKED = 1
    """A defect was found, or something that `--fail-on` or `--unmatched` names."""
    USAGE = 2
    """The command line, the configuration, a schema or a revision is wrong."""
    UNDECIDED = 3
    """The gate could not decide: no device, no case ran, a worker was lost. Fails closed."""
    INTERNAL = 70
    """A defect of kernel-gate itself."""


class GateError(Exception):
    """The root of every error that kernel-gate raises on purpose.

    message  where, what, how to mend; several lines are allowed.
    """

    exit_code = ExitCode.INTERNAL

    def __init__(self, message: str) -> None:
        super().__init__(message)

    @property
    def message(self) -> str:
        """The text for the user, without a class name in front."""
        return str(self.args[0])


class UsageError(GateError):
    """The command line names something that does not exist or cannot be used."""

    exit_code = ExitCode.USAGE


class GitError(UsageError):
    """The repository, a revision or the diff is not what the caller said."""


class CaseTextError(UsageError):
    """A case text that does not parse, or does not fit its schema."""


class ConfigError(GateError):
    """`.kernel-gate.yml` is wrong."""

    exit_code = ExitCode.USAGE


class ResultError(GateError):
    """A result file that cannot be read, has another version, or cannot be merged."""

    exit_code = ExitCode.USAGE


class DeviceError(GateError):
    """The device that was asked for is not there; never replaced by another in silence."""

    exit_code = ExitCode.UNDECIDED


class WorkerError(GateError):
    """A worker could not be started, or was lost more often than is allowed."""

    exit_code = ExitCode.UNDECIDED


class ProtocolError(GateError):
    """A peer sent a frame that the protocol does not allow."""

    exit_code = ExitCode.UNDECIDED


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One thing that is wrong in a file."""

    file: str
    """Path from the repository's root, `/` between its parts."""
    line: int
    """1-based line, 0 when the file as a whole is meant."""
    path: str
    """JSON path of the key, such as `$.args.x.dtype`."""
    what: str
    """What is wrong; what would be right."""

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}" if self.line else self.file
        return f"{place}  {self.path}: {self.what}"


class SchemaError(GateError):
    """One or more op schemas are wrong; carries every problem that was found."""

    exit_code = ExitCode.USAGE

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(str(problem) for problem in self.problems))

    def __reduce__(self) -> tuple[type[SchemaError], tuple[tuple[Problem, ...]]]:
        return (type(self), (self.problems,))


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return ` (did you mean X?)` for the nearest known word, or an empty string."""
    near = difflib.get_close_matches(word, list(known), n=1, cutoff=0.6)
    return f" (did you mean {near[0]}?)" if near else ""
