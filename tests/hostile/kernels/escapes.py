"""Launchers that look for a way out of the sandbox's container; each raises `Seen` with it."""

import os
import socket
import stat


class Seen(Exception):
    pass


ALLOWED = {
    "PATH", "HOME", "TMPDIR", "USER", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "LD_LIBRARY_PATH",
    "PYTHONHASHSEED", "PYTHONDONTWRITEBYTECODE", "PYTHONSAFEPATH", "OMP_NUM_THREADS",
    "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE",
    "CUBLAS_WORKSPACE_CONFIG", "TRITON_CACHE_DIR", "TRITON_INTERPRET", "CUDA_VISIBLE_DEVICES",
}  # fmt: skip


def the_variables(x):
    more = set(os.environ) - ALLOWED
    if more:
        raise Seen(f"the environment has {sorted(more)}")
    return x.clone()


def the_sockets_and_files_of_the_runner(x):
    for path in (
        "/var/run/docker.sock", "/run/docker.sock", "/github", "/home/runner", "/repo.git",
        "/objects", "/event.json", "/out", "/trees/base",
    ):  # fmt: skip
        if os.path.exists(path):
            raise Seen(f"{path} is here")
    return x.clone()


def the_rest_of_the_machine(x):
    held = [
        os.path.join(folder, name)
        for folder, folders, files in os.walk("/trees")
        for name in (*folders, *files)
    ]
    if [path for path in held if path.endswith(".git")] or not held:
        raise Seen(f"the tree holds {held}")
    if os.getuid() != 10001 or os.getgroups() not in ([], [10001]):
        raise Seen(f"this is user {os.getuid()} of {os.getgroups()}")
    try:
        with open("/proc/1/environ", "rb") as file:
            raise Seen(f"the first process's environment: {file.read()!r}")
    except PermissionError:
        return x.clone()


def a_place_to_write(x):
    for folder in ("/", "/trees/head", "/trees", "/socket", "/opt", "/usr/lib", "/etc", "/root"):
        try:
            with open(os.path.join(folder, "left-behind"), "w"):
                raise Seen(f"{folder} can be written")
        except OSError:
            continue
    return x.clone()


def the_server_s_socket(x):
    """Take its place: the gate's next connection would then be ours."""
    path = "/socket/head.sock"
    if not stat.S_ISSOCK(os.stat(path).st_mode):
        raise Seen(f"{path} is no socket")
    for attempt in (
        lambda: os.unlink(path),
        lambda: os.rename(path, "/socket/gone"),
        lambda: socket.socket(socket.AF_UNIX).bind("/socket/other.sock"),
    ):
        try:
            attempt()
        except OSError:
            continue
        raise Seen("the socket can be replaced")
    return x.clone()


def an_executable_place(x):
    """Triton must be able to run what it compiles: not a way out, but a need."""
    path = os.path.join(os.environ["TMPDIR"], "program")
    with open(path, "w") as file:
        file.write("#!/bin/sh\nexit 7\n")
    os.chmod(path, 0o700)
    if os.waitstatus_to_exitcode(os.system(path)) != 7:
        raise Seen("nothing can be executed")
    return x.clone()
