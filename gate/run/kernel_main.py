"""The life of a kernel worker: imports torch and triton once, then answers requests.

The process is not trusted: it runs the change's code. Its frames carry the nonce of the request,
and whoever reads them believes sizes and data only.
"""

from __future__ import annotations

import argparse
import gc
import os
import platform
import sys
import time
import warnings
from typing import Any

from gate.run.fences import raise_fences
from gate.run.frames import Channel, ChannelClosed, Frame
from gate.run.protocol import LoadRequest, RunRequest, WorkerInfo


def main(arguments: list[str]) -> None:
    """Serve requests on the descriptors that `--fd` names until the other side closes."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--fd", required=True)
    parser.add_argument("--device", required=True)
    options = parser.parse_args(arguments)
    read_fd, write_fd = (int(fd) for fd in options.fd.split(","))
    for fd in (read_fd, write_fd):
        os.set_inheritable(fd, False)
    fences = raise_fences()
    warnings.simplefilter("ignore")
    # Torch and triton take seconds to import, and only a worker may pay for that.
    from gate.run.bench import Bench  # noqa: PLC0415

    bench = Bench(options.device)
    channel = Channel(read_fd, write_fd)
    channel.send(Frame(message=_info(bench, options.device, fences)))
    while True:
        try:
            frame = channel.receive()
            reply = _answer(bench, frame.message)
            channel.send(Frame(message=reply, nonce=frame.nonce, retire=bench.retire))
        except ChannelClosed:
            os._exit(0)
        sys.stdout.flush()
        sys.stderr.flush()


def _answer(bench: Any, message: object) -> object:
    match message:
        case LoadRequest():
            return bench.load(message)
        case RunRequest():
            started = time.monotonic()
            try:
                return bench.run(message, started)
            finally:
                gc.collect(0)
    raise TypeError(f"a kernel worker does not answer {type(message).__name__}")


def _info(bench: Any, device: str, fences: tuple[tuple[str, bool], ...]) -> WorkerInfo:
    return WorkerInfo(
        device=device,
        device_name=bench.device_name,
        arch=bench.arch,
        versions=(("python", platform.python_version()), *bench.versions),
        fences=fences,
        notes=tuple(bench.notes),
    )
