"""What a worker takes from itself before it imports anything of the change.

Linux only, each fence by itself: what the system does not allow is reported, never assumed.
"""

from __future__ import annotations

import ctypes
import os
import platform
import signal
import struct
import sys

_CLONE_NEWNET = 0x40000000
_PR_SET_PDEATHSIG = 1
_PR_SET_DUMPABLE = 4
_PR_SET_NO_NEW_PRIVS = 38
_PR_SET_SECCOMP = 22
_SECCOMP_MODE_FILTER = 2
_SOCKET_CALLS = {"x86_64": (0xC000003E, 41), "aarch64": (0xC00000B7, 198)}
"""machine -> (audit architecture, number of socket(2))."""
_AF_INET, _AF_INET6 = 2, 10
_ALLOW, _ERRNO_EPERM = 0x7FFF0000, 0x00050001


def raise_fences() -> tuple[tuple[str, bool], ...]:
    """Raise every fence that the system allows; return which stand."""
    if not sys.platform.startswith("linux"):
        return (("network", False), ("token", True), ("no new privileges", False))
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    quiet = libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
    network = libc.unshare(_CLONE_NEWNET) == 0 or (quiet and _no_internet_sockets(libc))
    return (
        ("network", network),
        ("token", True),
        ("no new privileges", quiet),
        ("own process group", os.getpgid(0) == os.getpid()),
        ("unprivileged user", os.geteuid() != 0),
    )


def _no_internet_sockets(libc: ctypes.CDLL) -> bool:
    """Make socket(AF_INET or AF_INET6) fail with EPERM by a seccomp filter; other calls pass."""
    known = _SOCKET_CALLS.get(platform.machine())
    if known is None:
        return False
    arch, number = known

    def step(code: int, yes: int, no: int, value: int) -> bytes:
        return struct.pack("HBBI", code, yes, no, value)

    load, equal, give = 0x20, 0x15, 0x06
    program = b"".join(
        [
            step(load, 0, 0, 4),
            step(equal, 1, 0, arch),
            step(give, 0, 0, _ERRNO_EPERM),
            step(load, 0, 0, 0),
            step(equal, 0, 4, number),
            step(load, 0, 0, 16),
            step(equal, 1, 0, _AF_INET),
            step(equal, 0, 1, _AF_INET6),
            step(give, 0, 0, _ERRNO_EPERM),
            step(give, 0, 0, _ALLOW),
        ]
    )
    held = ctypes.create_string_buffer(program)

    class Filter(ctypes.Structure):
        """struct sock_fprog."""

        _fields_ = (("length", ctypes.c_ushort), ("program", ctypes.c_void_p))

    rules = Filter(len(program) // 8, ctypes.addressof(held))
    done = libc.prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, ctypes.byref(rules), 0, 0)
    return bool(done == 0)
