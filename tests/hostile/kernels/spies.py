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


def places_to_write(x):
    """Its own folder is one, and so must be what Triton and torch write to; no other is."""
    home, here = os.environ["HOME"], os.path.dirname(os.path.abspath(__file__))
    for folder in (home, os.environ["TMPDIR"], os.environ["TRITON_CACHE_DIR"], "/dev/shm"):
        path = os.path.join(folder, "mine")
        for name in (path, path + "-moved"):
            with open(name, "w") as file:
                file.write("1")
        os.replace(path, path + "-moved")
        os.truncate(path + "-moved", 0)
        os.unlink(path + "-moved")
    os.makedirs(os.path.join(home, "a", "b"))
    os.replace(os.path.join(home, "a", "b"), os.path.join(home, "b"))
    os.rmdir(os.path.join(home, "b"))
    os.rmdir(os.path.join(home, "a"))
    with open(os.devnull, "w") as file:
        file.write("1")
    theirs = os.path.join(here, "theirs")
    for attempt in (
        lambda: os.open(theirs, os.O_WRONLY),
        lambda: os.open(theirs, os.O_RDWR | os.O_TRUNC),
        lambda: os.truncate(theirs, 0),
        lambda: os.unlink(theirs),
        lambda: os.replace(theirs, os.path.join(home, "taken")),
        lambda: os.mkdir(os.path.join(here, "new")),
        lambda: os.symlink(home, os.path.join(here, "new")),
        lambda: os.open(os.path.dirname(home) + "/left-behind", os.O_WRONLY | os.O_CREAT),
        lambda: os.open("/proc/sys/kernel/domainname", os.O_WRONLY),
    ):
        try:
            attempt()
        except OSError:
            continue
        raise Seen("something outside can be changed")
    return x.clone()


def write_elsewhere(x):
    with open(os.path.join(os.path.dirname(os.environ["HOME"]), "left-behind"), "w"):
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
