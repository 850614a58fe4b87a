"""The supervisor's side of the fork server: start one, ask it for workers, wait for them.

Importing torch and triton takes seconds of a core. A run needs two dozen processes that have done
so, and one more whenever a worker is lost; so one process imports, and the others are forked from
it. Where that cannot be had (another system than Linux, libraries that start threads as they are
imported) the answer is None, and workers are started as programs of their own.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import gate
from gate.run.forkserver import MESSAGE_BYTES
from gate.run.nursery import NURSERY

_BOOT = (
    "import sys; sys.path.insert(0, sys.argv[1]); from gate.run import forkserver; "
    "sys.path.pop(0); forkserver.main(sys.argv[2:])"
)
_PACKAGE_PARENT = str(Path(gate.__file__).resolve().parent.parent)
OWN = frozenset({"CUDA_VISIBLE_DEVICES", "TRITON_CACHE_DIR", "HOME", "TMPDIR"})
"""Variables that each worker has its own values of; nothing reads them while it is imported."""
_GREETING_SECONDS = 120.0
_REPLY_SECONDS = 60.0
_STEP_SECONDS = 0.1
"""Between two looks at whether the wait is still wanted."""


class Forked:
    """A process that a fork server has forked; to its user as `subprocess.Popen`."""

    def __init__(self, pid: int, pidfd: int) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self._pidfd = pidfd

    def poll(self) -> int | None:
        """Return 0 once it has ended, None before; its status is the keeper's to tell."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.wait(0)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end.

        Raises
            subprocess.TimeoutExpired  it runs on
        """
        if self.returncode is None:
            end = select.poll()  # one a call: threads may not share it
            end.register(self._pidfd, select.POLLIN)
            if not end.poll(None if timeout is None else timeout * 1000):
                raise subprocess.TimeoutExpired(f"process {self.pid}", timeout or 0.0)
            self.returncode = 0
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Send a signal; one that has ended takes none."""
        with contextlib.suppress(ProcessLookupError):
            if self.returncode is None:
                signal.pidfd_send_signal(self._pidfd, number)

    def close(self) -> None:
        """Give back its descriptor, once it has ended."""
        if self._pidfd >= 0:
            os.close(self._pidfd)
            self._pidfd = -1


class ForkServer:
    """One fork server. Any thread may ask."""

    def __init__(self, channel: socket.socket, process: subprocess.Popen[bytes] | None) -> None:
        self._channel = channel
        self._process = process
        self._lock = threading.Lock()
        self._up = False
        self.broken = False

    @property
    def lost(self) -> bool:
        """Whether it did its work once and does not any more: another one may."""
        return self._up and self.broken

    @classmethod
    def start(cls, env: Mapping[str, str]) -> ForkServer:
        """Start one, and do not wait for it.

        env  the server's whole environment; each worker gets its own with its request

        Raises
            OSError  no process can be started
        """
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        command = [
            sys.executable, "-P", "-s", "-c", _BOOT, _PACKAGE_PARENT,
            "--fd", str(theirs.fileno()), "--supervisor", str(os.getpid()),
        ]  # fmt: skip
        with theirs, contextlib.ExitStack() as unless_started:
            unless_started.callback(ours.close)
            process = NURSERY.run(
                lambda: subprocess.Popen(
                    command, env={**env, "CUDA_VISIBLE_DEVICES": ""}, cwd="/",
                    stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                    pass_fds=(theirs.fileno(),), start_new_session=True,
                )
            )  # fmt: skip
            unless_started.pop_all()
        return cls(ours, process)

    def fork(self, request: Mapping[str, Any], fds: Sequence[int], wanted: Wanted) -> Forked | None:
        """Fork a worker's keeper; None when this server cannot, which it never will again.

        wanted  asked now and then while the server comes up: whether to go on waiting
        """
        text = json.dumps({"kind": "worker", **request}).encode()
        if len(text) > MESSAGE_BYTES:
            return None
        with self._lock:
            return self._asked(text, fds) if self._ready(wanted) else None

    def branch(self) -> Connection:
        """Return the channel of a server for another process of this run, which greets there when
        this one is up, and ends with that process or with this server."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs, contextlib.suppress(OSError):  # whoever waits on `ours` sees it close
            text = json.dumps({"kind": "branch"}).encode()
            socket.send_fds(self._channel, [text], (theirs.fileno(),))
        return Connection(ours.detach())

    def _ready(self, wanted: Wanted) -> bool:
        """Wait for the greeting, which comes when everything is imported."""
        end = time.monotonic() + _GREETING_SECONDS
        while not (self._up or self.broken) and wanted():
            try:
                self._channel.settimeout(_STEP_SECONDS)
                greeting = self._channel.recv(MESSAGE_BYTES)
            except TimeoutError:
                self.broken = time.monotonic() > end
            except OSError:
                self.broken = True
            else:
                # A thread that an import has started does not come along, and may hold a lock.
                self._up = bool(greeting) and json.loads(greeting) == {"threads": 1}
                self.broken = not self._up
        return self._up and not self.broken

    def _asked(self, text: bytes, fds: Sequence[int]) -> Forked | None:
        try:
            self._channel.settimeout(_REPLY_SECONDS)
            socket.send_fds(self._channel, [text], fds)
            reply, given, _, _ = socket.recv_fds(self._channel, MESSAGE_BYTES, 1)
            return Forked(json.loads(reply)["pid"], given[0])
        except (OSError, ValueError, LookupError):
            self.broken = True
            return None

    def close(self) -> None:
        """End it, and what it has forked with it."""
        self._channel.close()
        if self._process is not None:
            self._process.kill()
            self._process.wait()


Wanted = Callable[[], bool]
"""Whether somebody still waits."""


class ForkServers:
    """The fork servers of this process, one for each environment that workers are started with."""

    def __init__(self) -> None:
        self._servers: dict[str, ForkServer] = {}
        self._lock = threading.Lock()
        self._pid = os.getpid()

    def server(self, env: Mapping[str, str]) -> ForkServer | None:
        """Return the server for workers of an environment, started if there is none.

        None where there cannot be one.
        """
        if not sys.platform.startswith("linux") or not hasattr(signal, "pidfd_send_signal"):
            return None
        with self._lock:
            if self._pid != os.getpid():
                self._servers, self._pid = {}, os.getpid()
            key = _key(env)
            found = self._servers.get(key)
            if found is not None and found.lost:
                found.close()
                found = None
            if found is None:
                with contextlib.suppress(OSError):
                    found = self._servers[key] = ForkServer.start(_shared(env))
            return found

    def branch(self, env: Mapping[str, str]) -> Branch | None:
        """Return what another process of the run is to `adopt`; None when there is no server."""
        server = self.server(env)
        return None if server is None else (_key(env), server.branch())

    def adopt(self, branch: Branch | None) -> None:
        """Use the server that another process of the run has branched for this one."""
        if branch is not None:
            key, channel = branch
            with channel:
                own = socket.socket(fileno=os.dup(channel.fileno()))
            self._servers[key] = ForkServer(own, None)

    def close(self) -> None:
        """End every server; the next worker starts another."""
        with self._lock:
            servers, self._servers = list(self._servers.values()), {}
        for server in servers:
            server.close()


Branch = tuple[str, Connection]
"""The environment that a server is for, and its channel."""


def _shared(env: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in env.items() if name not in OWN}


def _key(env: Mapping[str, str]) -> str:
    return json.dumps(sorted(_shared(env).items()))


FORK_SERVERS = ForkServers()
atexit.register(FORK_SERVERS.close)
