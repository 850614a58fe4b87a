"""No write outside a worker's own places: Landlock, which needs no privilege (Linux 5.19 on).

Before 5.19 a file could not be moved from one folder to another under it at all, which Triton's
cache does: there the fence is not raised. See `Documentation/userspace-api/landlock.rst` of Linux.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import stat
import struct
from collections.abc import Iterable, Mapping
from pathlib import Path

NAME = "no writes elsewhere"
"""The fence's name in reports."""
_CREATE, _ADD, _RESTRICT = 444, 445, 446
"""Numbers of the system calls, on every machine."""
_ASK_VERSION = 1
_PATH_BENEATH = 1
_ON_FILES = 1 << 1 | 1 << 14
"""To write a file, and to cut it short."""
_IN_FOLDERS = sum(1 << bit for bit in range(4, 14))
"""To remove, make and move whatever a folder can hold."""
_NEEDED, _CUTS = 2, 3
"""Versions of Landlock: moving between folders; cutting short."""
_DEVICES = ("null", "zero", "full", "random", "urandom", "tty", "ptmx", "pts", "shm", "nvidia*",
            "kfd", "dri", "dxg")  # fmt: skip
"""Of /dev, what a kernel's process may need; not the disks, which root may open without more."""
_MPS = "/tmp/nvidia-mps"
"""Pipes of CUDA's multi-process service."""


def own_places(environment: Mapping[str, str]) -> tuple[str, ...]:
    """Return what a worker may write to: its private folder, Triton's cache, and devices."""
    named = [environment.get(name, "") for name in ("HOME", "TMPDIR", "TRITON_CACHE_DIR")]
    pipes = environment.get("CUDA_MPS_PIPE_DIRECTORY") or _MPS
    devices = [str(path) for name in _DEVICES for path in Path("/dev").glob(name)]
    found = (*named, pipes, *devices, f"/proc/{os.getpid()}")
    return tuple(dict.fromkeys(place for place in found if place and os.path.exists(place)))


def forbid_writes_elsewhere(places: Iterable[str]) -> bool:
    """Let this process and its children write beneath these places only; return whether it stands.

    Needs `no new privileges`. What is open already stays so.

    places  files and folders that are there
    """
    libc = ctypes.CDLL(None, use_errno=True)
    version = libc.syscall(_CREATE, None, ctypes.c_size_t(0), _ASK_VERSION)
    if version < _NEEDED:
        return False
    rights = _IN_FOLDERS | _ON_FILES if version >= _CUTS else (_IN_FOLDERS | _ON_FILES) & ~(1 << 14)
    wanted = struct.pack("=Q", rights)
    rules = libc.syscall(_CREATE, wanted, ctypes.c_size_t(len(wanted)), 0)
    if rules < 0:
        return False
    try:
        if not all(_allow(libc, rules, place, rights) for place in places):
            return False
        return bool(libc.syscall(_RESTRICT, rules, 0) == 0)
    finally:
        os.close(rules)


def _allow(libc: ctypes.CDLL, rules: int, place: str, rights: int) -> bool:
    fd = -1
    with contextlib.suppress(OSError):
        fd = os.open(place, os.O_PATH | os.O_CLOEXEC)
    if fd < 0:
        return True  # gone meanwhile: nothing to allow
    try:
        folder = stat.S_ISDIR(os.fstat(fd).st_mode)
        rule = struct.pack("=Qi", rights if folder else rights & _ON_FILES, fd)
        return bool(libc.syscall(_ADD, rules, _PATH_BENEATH, rule, 0) == 0)
    finally:
        os.close(fd)
