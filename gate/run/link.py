"""One worker process as a partner in requests and replies: started on first use, replaced when
lost. What comes back is checked here; a worker is never believed about its own end."""

from __future__ import annotations

import contextlib
import secrets
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol

from gate.errors import ProtocolError, WorkerError
from gate.run import memcheck
from gate.run.frames import ChannelClosed, DeadlinePassed, Frame
from gate.run.process import Child, ChildSpec
from gate.run.protocol import ErrorFact
from gate.run.serving import WorkerInfo
from gate.run.settings import WorkerSettings

GRACE_SECONDS = 1.0
"""Beyond a request's own limit, for the reply to travel and the worker to be scheduled."""
MOST_STARVED, MOST_STARVED_SECONDS = 20.0, 60.0
"""A request may last so many times its limit, or so many seconds longer, on a busy machine."""
SEND_SECONDS = 60.0
"""For a request to be taken in; a worker that does not read is lost."""
_SLACK = 2**20
"""Bytes that a worker may count otherwise than we do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What came of one request."""

    message: Any
    """The reply; None when the worker was lost."""
    lost: ErrorFact | None = None
    """How it was lost: `hang`, `protocol`, `memory`, `signal` or `exit`."""
    output: str = ""
    """What it printed."""
    report: str = ""
    """What the tool that it runs under wrote meanwhile."""
    starved: float = 0.0
    """Seconds in which the worker was ready to run and had no core, as far as that is known."""


class Link(Protocol):
    """A worker process, here or in another container."""

    @property
    def peak_mib(self) -> int:
        """The most resident memory that it was seen to have with its helpers, MiB; 0 unknown."""

    @property
    def starved(self) -> float:
        """Seconds of the present request in which the process was ready to run and had no core; 0
        where that is not known."""

    def prepare(self) -> int:
        """Make sure that a process is up and return its number: what one process has loaded, the
        next has not. Raises WorkerError when none can be started."""

    def start(self) -> WorkerInfo:
        """Start it and return its greeting; raises WorkerError."""

    def ask(self, message: Any, seconds: float) -> Answer:
        """Send a request and wait for the reply; raises WorkerError when none can be started."""

    def discard(self) -> None:
        """Give up the process, whose answer made no sense; the next request starts another."""

    def close(self) -> None:
        """End it; safe from any thread and more than once."""


class ProcessLink:
    """A worker process of our own."""

    def __init__(self, spec: ChildSpec, settings: WorkerSettings) -> None:
        self.spec = spec
        self.settings = settings
        self._generation = 0
        self._peak_mib = 0
        self._child: Child | None = None
        self._closed = False
        self.starved = 0.0
        self._use = threading.RLock()

    @property
    def peak_mib(self) -> int:
        """The most resident memory of this process and those before it, helpers included."""
        child = self._child
        return max(self._peak_mib, child.peak_mib if child is not None else 0)

    def start(self) -> WorkerInfo:
        """Start the process and wait for its greeting.

        Raises
            WorkerError  it does not come up, or the link was closed
        """
        with self._use:
            try:
                return self._start()
            except WorkerError:
                self._refuse_when_closed()
                if not (self.spec.namespace and self.settings.device == "cuda"):
                    raise
                # A driver may ask daemons outside for process ids; better a fence less, and told.
                self.spec = replace(self.spec, namespace=False)
                return self._start()

    def _start(self) -> WorkerInfo:
        self._refuse_when_closed()
        child = self._child = Child(self.spec, lambda: not self._closed)
        if self._closed:  # meanwhile: whoever closed it has seen no process yet
            self.discard()
            self._refuse_when_closed()
        try:
            info = self._greeting(child)
        except WorkerError:
            self.discard()
            self._refuse_when_closed()
            raise
        self._generation += 1
        return info

    def prepare(self) -> int:
        """Make sure that a process is up that can take a request; return its number.

        Raises
            WorkerError  no process can be started, or the link was closed
        """
        with self._use:
            if self._child is not None and self._child.unfit():
                self.discard()
            if self._child is None:
                self.start()
            return self._generation

    def _revive(self) -> None:
        """Start the next process while nobody waits for it yet."""

        def start() -> None:
            # What goes wrong here goes wrong again, and is told, when a process is asked for.
            with contextlib.suppress(WorkerError):
                self.prepare()

        threading.Thread(target=start, name="revive", daemon=True).start()

    def _greeting(self, child: Child) -> WorkerInfo:
        limit = self.settings.start_seconds
        if self.spec.memcheck:
            limit = max(limit, memcheck.START_SECONDS)
        started = time.monotonic()
        report = ""
        try:
            frame = child.channel.receive(deadline=started + limit, idle=child.watch, max_blobs=0)
            report = child.report.new_text()
            if not isinstance(frame.message, WorkerInfo):
                raise ProtocolError(f"it greets with {type(frame.message).__name__}")
            if self.spec.memcheck and memcheck.trouble(report):
                raise ProtocolError("compute-sanitizer does not watch it")
            child.take_output()
            return frame.message
        except (ChannelClosed, DeadlinePassed, ProtocolError) as error:
            problem = error
        seconds = time.monotonic() - started
        ended = child.end_fact()
        said = "\n".join([child.take_output().strip(), report, child.report.new_text()])
        raise WorkerError(
            f"a worker did not come up within {seconds:.0f} s "
            f"({problem or type(problem).__name__}; {ended.message})\n{said.strip()[-3000:]}\n"
            "run `kernel-gate doctor` to see what this machine lacks"
        )

    def _refuse_when_closed(self) -> None:
        if self._closed:
            raise WorkerError("the run was ended while a worker was at work")

    def ask(self, message: Any, seconds: float) -> Answer:
        """Send a request; a lost process is part of the answer.

        Raises
            WorkerError  no process can be started, or the link was closed meanwhile
        """
        with self._use:
            self.prepare()
            child = self._child
            assert child is not None
            lost: ErrorFact | None = None
            try:
                frame, starved = self._exchange(child, message, seconds)
            except DeadlinePassed:
                text = f"no answer within {seconds:g} s"
                lost = ErrorFact(type="hang", message=text, stage="device")
            except ChannelClosed:
                lost = child.end_fact()
            except ProtocolError as problem:
                lost = ErrorFact(type="protocol", message=problem.message, stage="device")
            if lost is not None:
                child.kill()
                output, report = child.take_output(), self._report(child)
                self.discard()
                self._refuse_when_closed()
                self._revive()
                return Answer(message=None, lost=lost, output=output, report=report)
            output, report = child.take_output(), self._report(child)
            if frame.retire or report:
                self.discard()
                self._revive()
            return Answer(message=frame.message, output=output, report=report, starved=starved)

    def _report(self, child: Child) -> str:
        """Return what the tool that it runs under, if any, wrote since the last time."""
        return child.report.settled() if self.spec.memcheck else ""

    def _exchange(self, child: Child, message: Any, seconds: float) -> tuple[Frame, float]:
        """Return the reply, and the seconds in which the worker had no core."""
        nonce = secrets.token_hex(16)
        before = child.starved()

        def watch() -> None:
            child.watch()
            self.starved = child.starved() - before

        child.channel.send(
            Frame(message=message, nonce=nonce), idle=child.watch,
            deadline=time.monotonic() + SEND_SECONDS,
        )  # fmt: skip
        try:
            frame = child.channel.receive(
                deadline=patient(seconds, seconds + GRACE_SECONDS, lambda: self.starved),
                idle=watch, max_blobs=self.settings.reply_bytes + _SLACK,
            )  # fmt: skip
        finally:
            self.starved = 0.0
        if not secrets.compare_digest(frame.nonce.encode(), nonce.encode()):
            raise ProtocolError("a reply with the nonce of another request")
        return frame, child.starved() - before

    def discard(self) -> None:
        """Give up the process; the next request starts another."""
        self._peak_mib = self.peak_mib
        child, self._child = self._child, None
        if child is not None:
            child.close()

    def close(self) -> None:
        """End the process; safe from any thread and more than once.

        A thread that waits for an answer meanwhile gets a WorkerError.
        """
        self._closed = True
        child = self._child
        if child is not None:
            child.kill(gently=True)
        with self._use:
            self.discard()


def patient(seconds: float, allowed: float, starved: Callable[[], float]) -> Callable[[], float]:
    """Return the end of a request's time, which is the worker's own: on a machine with too much to
    do, what it was ready to run and had no core is not counted, within reason.

    seconds  the request's limit
    allowed  the same with what is granted for its way
    starved  seconds of the request without a core, so far
    """
    limit = time.monotonic() + allowed
    most = max(MOST_STARVED * seconds, MOST_STARVED_SECONDS)
    return lambda: limit + min(starved(), most)
