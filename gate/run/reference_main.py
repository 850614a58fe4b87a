"""The life of a reference worker: torch on the CPU, out of reach of the kernel under test."""

from __future__ import annotations

import argparse
import os
import platform
import sys
import warnings
from typing import Any

from gate.run.fences import raise_fences
from gate.run.frames import Channel, ChannelClosed, Frame
from gate.run.protocol import (
    MakeRequest,
    PropertyRequest,
    ReferenceRequest,
    WorkerInfo,
)


def main(arguments: list[str]) -> None:
    """Serve requests on the descriptors that `--fd` names until the other side closes."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--fd", required=True)
    options = parser.parse_args(arguments)
    read_fd, write_fd = (int(fd) for fd in options.fd.split(","))
    fences = raise_fences()
    warnings.simplefilter("ignore")
    # Torch takes seconds to import, and only a worker may pay for that.
    import numpy  # noqa: PLC0415
    import torch  # noqa: PLC0415

    from gate.run.reference import Evaluator  # noqa: PLC0415

    torch.set_num_threads(1)
    evaluator = Evaluator()
    channel = Channel(read_fd, write_fd)
    versions = (
        ("python", platform.python_version()), ("torch", torch.__version__),
        ("numpy", numpy.__version__),
    )  # fmt: skip
    channel.send(Frame(message=WorkerInfo(device="reference", versions=versions, fences=fences)))
    while True:
        try:
            frame = channel.receive()
            channel.send(Frame(message=_answer(evaluator, frame.message), nonce=frame.nonce))
        except ChannelClosed:
            os._exit(0)
        sys.stdout.flush()
        sys.stderr.flush()


def _answer(evaluator: Any, message: object) -> object:
    match message:
        case ReferenceRequest():
            return evaluator.reference(message)
        case MakeRequest():
            return evaluator.make(message)
        case PropertyRequest():
            return evaluator.property(message)
    raise TypeError(f"a reference worker does not answer {type(message).__name__}")
