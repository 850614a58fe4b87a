"""What `compute-sanitizer --tool memcheck` says of a case, as faults.

A worker that runs under it has no caching allocator and no guards around its tensors, so that an
allocation ends where a tensor's storage ends, and every access beyond is reported with its line.

The tool speaks to a library that it loads into the worker: over a socket of Unix with an abstract
name, or over TCP on localhost, by version and platform. Either belongs to one network namespace, so
the network fence stands around both and not between them. When the library does not answer in time
the tool says so in its report and lets the worker run unchecked, which must not pass for checked.

Source: "Compute Sanitizer User Manual", NVIDIA: memcheck reports of invalid accesses.
"""

from __future__ import annotations

import os
import re
import shutil
import stat
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from gate.errors import DeviceError
from gate.run.protocol import Fault, LaunchFact, Region

TOOL = "compute-sanitizer"
LOG = "memcheck.log"
"""Name of the report in the worker's private folder."""
START_SECONDS = 300.0
"""From process start to the greeting at most: importing torch and opening the device take several
times as long under the tool."""
SETTLE_SECONDS = 10.0
"""For a report to be written down after a case, at most."""
_QUIET_SECONDS = 0.25
MAX_LOG = 2**22
"""Bytes of new report that are read after a case."""
MAX_FAULTS = 64
"""Faults of one case that are kept. The tool counts them over the life of a worker, so one that it
had to report on is replaced."""
ENVIRONMENT = {"PYTORCH_NO_CUDA_MEMORY_CACHING": "1", "PYTORCH_NO_HIP_MEMORY_CACHING": "1"}

_ACCESS = re.compile(r"Invalid __(\w+)__ (read|write|atomic\w*) of size (\d+)")
_PLACE = re.compile(
    r"^\s+at (?:(\S+?)\+?0x[0-9a-f]+|0x[0-9a-f]+|(\S+)) in (.+?):(\d+)(?::(\S+))?\s*$"
)
_THREAD = re.compile(r"by thread \(\d+,\d+,\d+\) in block \((\d+),(\d+),(\d+)\)")
_NEAREST = re.compile(
    r"is (\d+) bytes (after|before|inside) the nearest allocation at (0x[0-9a-f]+) of size ([\d,]+)"
)


def command(folder: str) -> tuple[str, ...]:
    """Return what a worker's command is prefixed with.

    folder  the worker's private folder, where the report goes

    Raises
        DeviceError  the tool is not there
    """
    return (
        require_tool(), "--tool", "memcheck", "--log-file", os.path.join(folder, LOG),
        "--destroy-on-device-error", "kernel", "--print-limit", str(MAX_FAULTS),
        "--show-backtrace", "no", "--report-api-errors", "no",
        "--target-processes", "application-only",
        "--launch-timeout", str(int(START_SECONDS)),
    )  # fmt: skip


def require_tool() -> str:
    """Return the path of compute-sanitizer.

    Raises
        DeviceError  it is not there
    """
    places = [os.environ.get(name, "") for name in ("CUDA_HOME", "CUDA_PATH")]
    search = os.pathsep.join(
        [os.environ.get("PATH", ""), *(f"{p}/bin" for p in places if p), "/usr/local/cuda/bin"]
    )
    found = shutil.which(TOOL, path=search)
    if found is None:
        raise DeviceError(
            f"--memcheck: {TOOL} is not on PATH; it comes with the CUDA toolkit "
            "(package cuda-sanitizer), or leave --memcheck out"
        )
    return found


def trouble(report: str) -> str:
    """Return what the tool says against itself before the first case; empty when all is well."""
    lines = (line.removeprefix("=========").strip() for line in report.splitlines())
    return "\n".join(line for line in lines if line.startswith(("Error:", "Internal Sanitizer")))


class LogReader:
    """Reads what was added to a report; the file is the worker's and may be anything."""

    def __init__(self, folder: str) -> None:
        self._path = os.path.join(folder, LOG)
        self._at = 0

    def new_text(self) -> str:
        """Return what was added since the last call, at most `MAX_LOG` bytes."""
        try:
            fd = os.open(self._path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        except OSError:
            return ""
        with os.fdopen(fd, "rb") as file:
            if not stat.S_ISREG(os.fstat(fd).st_mode):
                return ""
            file.seek(self._at)
            data = file.read(MAX_LOG)
            self._at += len(data)
        return data.decode("utf-8", "replace")

    def settled(self) -> str:
        """Return what was added since the last call once nothing more comes: the tool writes in a
        process of its own, and may be behind the worker's answer."""
        found = self.new_text()
        end = time.monotonic() + SETTLE_SECONDS
        while time.monotonic() < end:
            time.sleep(_QUIET_SECONDS)
            more = self.new_text()
            if not more:
                break
            found += more
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class _Block:
    """One report: its first line's match and the lines below it."""

    kind: str
    """`read`, `write` or `atomic`."""
    size: int
    """Bytes of the access."""
    lines: tuple[str, ...]
    """The lines that belong to it."""


def parse(
    text: str, root: str, launches: Sequence[LaunchFact], regions: Sequence[Region]
) -> tuple[Fault, ...]:
    """Return the faults of a report, one for each access and line.

    root      folder of the tree; kernels are named from there
    launches  launches of the case, to name kernels by
    regions   where its tensors lay
    """
    found: dict[tuple[str, str, int, str], Fault] = {}
    for block in _blocks(text):
        fault = _fault(block, root, launches, regions)
        found.setdefault((fault.kind, fault.kernel, fault.line, fault.tensor), fault)
        if len(found) >= MAX_FAULTS:
            break
    return tuple(found.values())


def _blocks(text: str) -> Iterator[_Block]:
    head: re.Match[str] | None = None
    held: list[str] = []
    for raw in text.splitlines():
        line = raw.removeprefix("=========")
        access = _ACCESS.search(line)
        if access or not line.strip() or line.strip().startswith(("ERROR SUMMARY", "Program hit")):
            if head:
                yield _block(head, held)
            head, held = access, []
        elif head:
            held.append(line)
    if head:
        yield _block(head, held)


def _block(head: re.Match[str], lines: list[str]) -> _Block:
    return _Block(kind=head[2], size=int(head[3]), lines=tuple(lines))


def _fault(
    block: _Block, root: str, launches: Sequence[LaunchFact], regions: Sequence[Region]
) -> Fault:
    place = next((m for line in block.lines if (m := _PLACE.match(line))), None)
    block_id = next((m for line in block.lines if (m := _THREAD.search(line))), None)
    near = next((m for line in block.lines if (m := _NEAREST.search(line))), None)
    function = (place[1] or place[2] or place[5] or "") if place else ""
    tensor, words = "", "outside of every tensor"
    if near is not None:
        tensor = _tensor_at(int(near[3], 16), regions)
        words = f"{near[1]} bytes {near[2]} {f'`{tensor}`' if tensor else 'the nearest allocation'}"
    reading = block.kind == "read"
    return Fault(
        kind="oob_read" if reading else "oob_write",
        kernel=_kernel(function, place[3] if place else "", root, launches),
        line=int(place[4]) if place else 0,
        program=tuple(int(block_id[n]) for n in (1, 2, 3)) if block_id else (),
        tensor=tensor,
        message=f"{block.kind} of {block.size} bytes, {words} (compute-sanitizer)",
    )


def _tensor_at(address: int, regions: Sequence[Region]) -> str:
    for region in regions:
        if region.address <= address < region.address + max(1, region.nbytes):
            return region.name
    return ""


def _kernel(function: str, file: str, root: str, launches: Sequence[LaunchFact]) -> str:
    """Return the id of the kernel that a report names: the launched one of that name, if any."""
    name = PurePosixPath(file).name
    for launch in launches:
        path, _, own = launch.kernel.rpartition("::")
        if own.rpartition(".")[2] == function and PurePosixPath(path).name == name:
            return launch.kernel
    distinct = list(dict.fromkeys(launch.kernel for launch in launches))
    if len(distinct) == 1:
        return distinct[0]  # a helper that was inlined, named by its own file
    try:
        return f"{Path(file).resolve().relative_to(Path(root).resolve()).as_posix()}::{function}"
    except (ValueError, OSError):
        return f"{name}::{function}" if function else ""
