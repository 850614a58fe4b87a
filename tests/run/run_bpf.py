"""Classic BPF programs, run over the calls that a seccomp filter would see."""

from __future__ import annotations

import struct


def decide(program: bytes, arch: int, number: int, first: int) -> int:
    """Run a classic BPF program (load word, compare, test, return) over a seccomp_data."""
    data = struct.pack("<IIQ6Q", number, arch, 0, first, 0, 0, 0, 0, 0)
    steps = [struct.unpack_from("HBBI", program, at) for at in range(0, len(program), 8)]
    at, held = 0, 0
    while True:
        code, yes, no, value = steps[at]
        at += 1
        match code:
            case 0x20:
                held = struct.unpack_from("<I", data, value)[0]
            case 0x15:
                at += yes if held == value else no
            case 0x35:
                at += yes if held >= value else no
            case 0x45:
                at += yes if held & value else no
            case 0x06:
                return value
            case _:
                raise AssertionError(code)
