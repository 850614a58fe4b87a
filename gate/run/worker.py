"""The life of a worker: raise the fences, import torch once, answer requests one at a time.

    python -m gate.run.worker --socket PATH --device D     serve workers to another container
    ... --role kernel --device D --fd R,W                  one worker, as the supervisor starts it
    ... --role reference --fd R,W

The process is not trusted once it has run code of the change: its frames carry the nonce of the
request, and whoever reads them believes sizes and data only.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import os
import sys
import warnings
from collections.abc import Callable
from typing import Any

from gate.run.fences import raise_fences
from gate.run.frames import Channel, ChannelClosed, Frame
from gate.run.serving import WorkerInfo
from gate.run.settings import DEVICES
from gate.run.writefence import own_places

Answer = Callable[[Any], tuple[Any, str]]
"""Takes a request; returns the reply, and why the process must be replaced (empty: it need not)."""


def main(arguments: list[str]) -> None:
    """Serve requests until the other side closes."""
    options = _options(arguments)
    if options.socket:
        # The server is a supervisor: it starts workers and never runs code of the change itself.
        from gate.run.server import serve  # noqa: PLC0415

        serve(options.socket, options.device, options.socket_mode, until_eof=options.until_eof)
        return
    read_fd, write_fd = (int(fd) for fd in options.fd.split(","))
    for fd in (read_fd, write_fd):
        os.set_inheritable(fd, False)
    around = frozenset(filter(None, options.around.split(",")))
    fences = raise_fences(
        options.supervisor, around, under_tool=options.tool,
        places=own_places(os.environ) if options.role == "kernel" else None,
    )  # fmt: skip
    warnings.simplefilter("ignore")
    if options.role == "kernel" and options.device == "interpreter":
        from gate.run.faithful import compilefork  # noqa: PLC0415 - the interpreter's alone

        compilefork.prepare((read_fd, write_fd))
    info, answer = _kernel(options) if options.role == "kernel" else _reference()
    channel = Channel(read_fd, write_fd)
    channel.send(Frame(message=WorkerInfo(**info, fences=fences)))
    gc.freeze()
    _loop(channel, answer)


def _options(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="gate.run.worker")
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("--fd", help="descriptors to read and write, `R,W`")
    where.add_argument("--socket", help="path of a Unix socket to serve workers on")
    parser.add_argument(
        "--socket-mode", type=_mode, default=0o600, metavar="OCTAL",
        help="permissions of the socket (default: 600); who may write to it may run workers",
    )  # fmt: skip
    parser.add_argument("--until-eof", action="store_true", help="serve until standard input ends")
    parser.add_argument("--role", choices=("kernel", "reference"), default="kernel")
    parser.add_argument("--device", choices=DEVICES, default="interpreter")
    parser.add_argument("--supervisor", type=int, default=0)
    parser.add_argument("--around", default="", help="fences that the keeper has raised")
    parser.add_argument("--tool", action="store_true", help="this runs under compute-sanitizer")
    parser.add_argument("--targets", default="")
    parser.add_argument("--reply-bytes", type=int, default=2**31)
    return parser.parse_args(arguments)


def _mode(text: str) -> int:
    """Return permissions from octal digits; argparse reports what is none."""
    value = int(text, 8)
    if not 0o600 <= value <= 0o777:
        raise ValueError(text)
    return value


def _loop(channel: Channel, answer: Answer) -> None:
    own = os.getpid()
    while True:
        try:
            frame = channel.receive()
            reply, retire = answer(frame.message)
            if os.getpid() != own:  # the code forked, and this is the copy
                os._exit(0)
            flush_output()
            channel.send(Frame(message=reply, nonce=frame.nonce, retire=retire))
        except ChannelClosed:
            os._exit(0)


def _kernel(options: argparse.Namespace) -> tuple[dict[str, Any], Answer]:
    # Torch and triton take seconds to import, and only a worker may pay for that.
    from gate.run.bench import Bench  # noqa: PLC0415

    bench = Bench(
        options.device, options.reply_bytes, tuple(filter(None, options.targets.split(",")))
    )
    return bench.describe(), bench.answer


def _reference() -> tuple[dict[str, Any], Answer]:
    from gate.run.reference import Evaluator  # noqa: PLC0415 - as above

    evaluator = Evaluator()
    return evaluator.describe(), evaluator.answer


def flush_output() -> None:
    """Push out what Python and C have buffered, whatever the code did to the streams."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except BaseException:  # noqa: BLE001 - a stream of the change's own making
            continue
    ctypes.CDLL(None).fflush(None)


if __name__ == "__main__":
    main(sys.argv[1:])
