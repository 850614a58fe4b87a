"""Launchers that speak on the protocol's descriptors or change the protocol itself."""

import json
import os
import struct
import sys
import threading
import time

from gate.run import codec, frames, protocol


def _open_descriptors():
    return [int(name) for name in os.listdir("/proc/self/fd") if int(name) > 2]


def _write_everywhere(data):
    for fd in _open_descriptors():
        try:
            os.set_blocking(fd, False)
            os.write(fd, data)
        except OSError:
            continue


def forged(nonce="0" * 32, **changes):
    head = {
        "v": 1, "nonce": nonce, "kind": "Observation", "retire": "", "blobs": [],
        "body": {"$": "Observation", "outcome": "returned"}, **changes,
    }  # fmt: skip
    raw = json.dumps(head).encode()
    return b"KGF1" + struct.pack("<IQ", len(raw), sum(head["blobs"])) + raw


def forge_a_frame(x):
    _write_everywhere(forged())
    return x.clone()


def write_rubbish(x):
    _write_everywhere(os.urandom(4096))
    return x.clone()


def announce_a_huge_frame(x):
    _write_everywhere(b"KGF1" + struct.pack("<IQ", 2**32 - 1, 2**64 - 1))
    return x.clone()


def announce_huge_tensors(x):
    _write_everywhere(b"KGF1" + struct.pack("<IQ", 100, 2**50) + b"{" * 100)
    return x.clone()


def announce_and_never_send(x):
    _write_everywhere(b"KGF1" + struct.pack("<IQ", 1000, 0) + b"{")
    time.sleep(1000)


def send_a_deep_head(x):
    raw = b"[" * 500_000
    _write_everywhere(b"KGF1" + struct.pack("<IQ", len(raw), 0) + raw)
    return x.clone()


def claim_to_have_died(x):
    stolen = sys._getframe()
    while stolen is not None and "frame" not in stolen.f_locals:
        stolen = stolen.f_back
    nonce = stolen.f_locals["frame"].nonce
    _write_everywhere(forged(nonce, body={"$": "Observation", "outcome": "died"}))
    os._exit(0)


def write_later(x):
    def later():
        while True:
            time.sleep(0.05)
            _write_everywhere(forged())

    threading.Thread(target=later, daemon=True).start()
    return x.clone()


def close_every_descriptor(x):
    os.closerange(0, 4096)
    return x.clone()


def close_and_stay(x):
    os.closerange(0, 4096)
    time.sleep(1000)


def replace_the_encoder(x):
    frames.encode_frame = lambda frame: [memoryview(forged(frame.nonce))]
    return x.clone()


def replace_a_method(x):
    real = frames.Channel.send

    def send(channel, frame, **more):
        real(channel, frame, **more)

    frames.Channel.send = send
    return x.clone()


def replace_the_messages(x):
    protocol.Outcome = codec.MESSAGES
    return x.clone()


def replace_torch(x):
    import torch

    torch.softmax = lambda *a, **k: a[0]
    return x.clone()
