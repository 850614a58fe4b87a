"""Launchers that look for what they must not see; each raises `Seen` with what it found."""

import os
import socket

SECRET = "ghp_planted_secret"


class Seen(Exception):
    pass


def the_environment(x):
    if SECRET in "".join(os.environ.values()):
        raise Seen("the token is in the environment")
    return x.clone()


def other_processes(x):
    for pid in (name for name in os.listdir("/proc") if name.isdigit()):
        try:
            with open(f"/proc/{pid}/environ", "rb") as file:
                if SECRET.encode() in file.read():
                    raise Seen(f"the token is in the environment of process {pid}")
        except OSError:
            continue
    return x.clone()


def the_parents_memory(x):
    found = []
    for pid in range(1, os.getpid() + 1):
        if pid == os.getpid():
            continue
        try:
            with (
                open(f"/proc/{pid}/maps") as maps,
                open(f"/proc/{pid}/mem", "rb") as memory,
                open(f"/proc/{pid}/cmdline", "rb") as line,
            ):
                command = line.read()
                maps.readline()
                memory.seek(0)
                if b"keeper.py" not in command:
                    found.append(pid)
        except OSError:
            continue
    if found:
        raise Seen(f"the memory of {found} can be opened")
    return x.clone()


def the_network(x):
    for family, address in (
        (socket.AF_INET, ("127.0.0.1", PORT)), (socket.AF_INET, ("169.254.169.254", 80)),
        (socket.AF_INET6, ("::1", PORT)),
    ):  # fmt: skip
        try:
            with socket.socket(family) as peer:
                peer.settimeout(0.5)
                peer.connect(address)
        except OSError:
            continue
        raise Seen(f"{address} can be reached")
    return x.clone()


PORT = 47113


def privileges(x):
    with open("/proc/self/status") as file:
        status = dict(line.rstrip("\n").split(":\t", 1) for line in file if ":\t" in line)
    for name in ("CapPrm", "CapEff", "CapBnd"):
        if int(status[name], 16):
            raise Seen(f"{name} is {status[name]}")
    if status["NoNewPrivs"] != "1":
        raise Seen("privileges can be gained")
    return x.clone()


def kill_everything(x):
    own = {os.getpid(), os.getppid()}
    for pid in (int(name) for name in os.listdir("/proc") if name.isdigit()):
        if pid not in own:
            try:
                os.kill(pid, 9)
            except OSError:
                continue
    return x.clone()
