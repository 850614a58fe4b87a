"""What a worker takes from itself before it imports anything of the change.

Linux only, each fence by itself: what the system does not allow is reported, never assumed.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import platform
import resource
import struct
import sys
from collections.abc import Sequence

from gate.run import writefence

_CLONE_NEWNET = 0x40000000
_PR_SET_DUMPABLE = 4
_PR_CAPBSET_DROP = 24
_PR_SET_NO_NEW_PRIVS = 38
_PR_SET_SECCOMP = 22
_SECCOMP_MODE_FILTER = 2
_LAST_CAPABILITY = 63
_MACHINES = {"x86_64": (0xC000003E, 41, 126), "aarch64": (0xC00000B7, 198, 91)}
"""machine -> (audit architecture, number of socket(2), number of capset(2))."""
_X32_BIT = 0x40000000
"""Set in the call numbers of x86-64's second ABI, which would pass a filter by number."""
_IO_URING_SETUP = 425
"""On every machine; a ring opens sockets without socket(2)."""
_CAPABILITY_VERSION = 0x20080522
_AF_INET, _AF_INET6 = 2, 10
_ALLOW, _ERRNO_EPERM = 0x7FFF0000, 0x00050001
_MAX_FILE = 8 * 2**30
"""Bytes of one file that a worker may write."""

_TRANSPORT = "NV_SANITIZER_INJECTION_TRANSPORT_TYPE"
"""Set by compute-sanitizer for the process that it starts: `uds` for sockets of Unix."""

Fences = tuple[tuple[str, bool], ...]


def raise_fences(
    supervisor: int,
    around: frozenset[str] = frozenset(),
    *,
    under_tool: bool = False,
    places: Sequence[str] | None = None,
) -> Fences:
    """Raise every fence that the system allows; return which stand.

    supervisor  its process id, whose environment must not be readable
    around      the names of fences that the keeper has raised around this process
    under_tool  this runs under compute-sanitizer, which speaks to it by sockets and by files
    places      where it may write; None: anywhere
    """
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_FSIZE, (_MAX_FILE, _MAX_FILE))
    if not sys.platform.startswith("linux"):
        missing = ("network", "token", "no new privileges", writefence.NAME)
        return tuple((name, False) for name in missing)
    _first_to_go()
    libc = ctypes.CDLL(None, use_errno=True)
    network = "network" in around or (not under_tool and libc.unshare(_CLONE_NEWNET) == 0)
    bare = _drop_capabilities(libc)
    quiet = libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
    if not network and quiet and not (under_tool and _tool_needs_internet_sockets()):
        network = _no_internet_sockets(libc)
    tidy = quiet and not under_tool and places is not None
    return (
        ("network", network),
        ("token", not _readable(f"/proc/{supervisor}/environ")),
        ("no new privileges", quiet),
        ("no capabilities", bare),
        (writefence.NAME, tidy and writefence.forbid_writes_elsewhere(places or ())),
        ("own process group", _own_group(supervisor)),
        ("own process namespace", "own process namespace" in around),
        ("own shared memory", "own shared memory" in around),
        ("process count", "process count" in around),
        ("unprivileged user", os.geteuid() != 0),
    )


def hide_from_workers() -> None:
    """Let no process without privileges read this process's memory and environment.

    Called by the supervisor, which may hold a token that a worker of the same user must not see.
    """
    if sys.platform.startswith("linux"):
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)


def _tool_needs_internet_sockets() -> bool:
    """Whether compute-sanitizer speaks to this process by TCP; it tells its library the way.

    A namespace of one's own would cut the other way, too: sockets of Unix without a file belong to
    a network namespace.
    """
    return os.environ.get(_TRANSPORT) != "uds"


def _own_group(supervisor: int) -> bool:
    """Whether signals to the supervisor's process group leave this process out."""
    if os.getpgid(0) == os.getpid():
        return True
    try:
        return os.getpgid(supervisor) != os.getpgid(0)
    except ProcessLookupError:
        return True  # it lives in another process namespace


def _first_to_go() -> None:
    """When the machine runs out of memory, take the worker and not what started it."""
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:
        file.write("1000")


def _readable(path: str) -> bool:
    try:
        with open(path, "rb") as file:
            file.read(1)
    except OSError:
        return False
    return True


def _drop_capabilities(libc: ctypes.CDLL) -> bool:
    """Give up every capability for good; return whether none is left."""
    for capability in range(_LAST_CAPABILITY + 1):
        libc.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0)
    known = _MACHINES.get(platform.machine())
    if known is not None:
        head = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION, 0)
        nothing = (ctypes.c_uint32 * 6)()
        libc.syscall(known[2], ctypes.byref(head), ctypes.byref(nothing))
    try:
        with open("/proc/self/status", encoding="ascii") as file:
            held = [line.split()[1] for line in file if line.startswith(("CapEff", "CapPrm"))]
    except OSError:
        return False
    return bool(held) and all(int(mask, 16) == 0 for mask in held)


def _no_internet_sockets(libc: ctypes.CDLL) -> bool:
    """Make socket(AF_INET or AF_INET6) fail with EPERM by a seccomp filter; other calls pass."""
    known = _MACHINES.get(platform.machine())
    if known is None:
        return False
    arch, number, _ = known
    held = ctypes.create_string_buffer(_filter(arch, number))

    class Filter(ctypes.Structure):
        """struct sock_fprog."""

        _fields_ = (("length", ctypes.c_ushort), ("program", ctypes.c_void_p))

    rules = Filter((len(held) - 1) // 8, ctypes.addressof(held))
    done = libc.prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, ctypes.byref(rules), 0, 0)
    return bool(done == 0)


def _filter(arch: int, number: int) -> bytes:
    """Return the filter: another ABI, io_uring and internet sockets are refused."""

    def step(code: int, yes: int, no: int, value: int) -> bytes:
        return struct.pack("HBBI", code, yes, no, value)

    load, equal, at_least, give = 0x20, 0x15, 0x35, 0x06
    return b"".join(
        [
            step(load, 0, 0, 4),
            step(equal, 0, 8, arch),
            step(load, 0, 0, 0),
            step(at_least, 6, 0, _X32_BIT),
            step(equal, 5, 0, _IO_URING_SETUP),
            step(equal, 0, 3, number),
            step(load, 0, 0, 16),
            step(equal, 2, 0, _AF_INET),
            step(equal, 1, 0, _AF_INET6),
            step(give, 0, 0, _ALLOW),
            step(give, 0, 0, _ERRNO_EPERM),
        ]
    )
