"""Show a run's progress on stderr: a bar on a terminal, plain lines elsewhere."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

from gate.engine.settings import Event, Listener
from gate.report.progress import make_progress


@contextmanager
def console_listener(stream: TextIO) -> Iterator[Listener]:
    """Yield a listener that draws on `stream` until the block ends."""
    lock = threading.Lock()
    with make_progress(stream) as progress:

        def listen(event: Event) -> None:
            with lock:
                match event.kind:
                    case "case":
                        progress.advance(event.op, event.done, event.total, event.failed)
                    case "op-end":
                        progress.end(event.op, event.text)
                    case _:
                        progress.note(f"{event.op}: {event.text}" if event.op else event.text)

        yield listen
