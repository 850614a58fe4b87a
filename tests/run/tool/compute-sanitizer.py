"""Stands in for compute-sanitizer: starts its target with a library in it, and talks to that.

As the real one does, by what KERNEL_GATE_TOOL says: `uds`, the library listens on a socket of Unix
with an abstract name made from its process id, and the tool connects; `tcp`, the tool listens on
localhost and the library connects. The library speaks when the target opens its device (here: when
it imports torch). A library that never answers is noted in the report, and the target runs on.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

WITH_VALUE = {"--tool", "--log-file", "--destroy-on-device-error", "--print-limit",
              "--show-backtrace", "--target-processes", "--launch-timeout",
              "--report-api-errors"}  # fmt: skip
PATIENCE = 20.0


def main(arguments: list[str]) -> int:
    """Run the target; return its exit code."""
    options = {}
    while arguments[0] in WITH_VALUE:
        options[arguments[0]] = arguments[1]
        arguments = arguments[2:]
    log = Path(options["--log-file"])
    log.write_text("========= COMPUTE-SANITIZER\n")
    way = Path(__file__).with_name("way").read_text().strip()
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parent / "library")}
    env["NV_SANITIZER_INJECTION_TRANSPORT_TYPE"] = way
    server = socket.create_server(("127.0.0.1", 0)) if way == "tcp" else None
    if server is not None:
        env["TOOL_PORT"] = str(server.getsockname()[1])
    target = subprocess.Popen(arguments, env=env, close_fds=False)

    def note(text: str) -> None:
        with log.open("a") as file:
            file.write(f"========= {text}\n")

    def attach() -> None:
        if _attached(server, target):
            Path(options["--log-file"]).with_name("attached").touch()
        elif target.poll() is None:
            note("Error: No attachable process found. compute-sanitizer timed-out.")

    threading.Thread(target=attach, daemon=True).start()
    code = target.wait()
    return code if code >= 0 else 255


def _attached(server: socket.socket | None, target: subprocess.Popen[bytes]) -> bool:
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end and target.poll() is None:
        try:
            if server is not None:
                server.settimeout(1.0)
                peer, _ = server.accept()
            else:
                peer = socket.socket(socket.AF_UNIX)
                peer.connect(f"\0nv_target_process_{target.pid}")
            with peer:
                return peer.recv(5) == b"hello"
        except OSError:
            time.sleep(0.1)
    return False


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
