"""Launchers that end their process, or do not end at all."""

import ctypes
import faulthandler
import os
import signal
import subprocess
import sys
import threading
import time

import torch


def segfault(x):
    faulthandler.disable()
    ctypes.string_at(0)


def abort(x):
    os.abort()


def exit_quietly(x):
    sys.exit(0)


def exit_at_once(x):
    os._exit(0)


def exit_with_code(x):
    os._exit(7)


def kill_itself(x):
    os.kill(os.getpid(), signal.SIGKILL)


def kill_its_keeper(x):
    os.kill(os.getppid(), signal.SIGKILL)
    time.sleep(0.3)
    return x.clone()


def loop_for_ever(x):
    while True:
        pass


def sleep_deaf_to_signals(x):
    for number in signal.valid_signals():
        try:
            signal.signal(number, signal.SIG_IGN)
        except (OSError, ValueError):
            continue
    while True:
        time.sleep(1)


def hang_with_the_lock_held(x):
    ctypes.PyDLL(None).sleep(1000)


def recurse_for_ever(x):
    return recurse_for_ever(x)


def recurse_in_c(x):
    sys.setrecursionlimit(10**9)
    return recurse_for_ever(x)


def allocate_without_end(x):
    held = []
    while True:
        held.append(torch.ones(2**22))


def fill_shared_memory(x):
    written = 0
    try:
        with open("/dev/shm/filler", "wb", buffering=0) as file:
            while written < 2**32:
                written += file.write(bytes(2**24))
    except OSError:
        os.unlink("/dev/shm/filler")
        return x.clone()
    os.unlink("/dev/shm/filler")
    raise RuntimeError(f"{written} bytes of shared memory were written")


def fork_and_return(x):
    os.fork()
    return x.clone()


def fork_without_end(x):
    while True:
        try:
            os.fork()
        except OSError:
            time.sleep(0.01)


def leave_a_child(x):
    subprocess.Popen(["sleep", "1000"])
    return x.clone()


def leave_a_daemon(x):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            while True:
                time.sleep(1)
        os._exit(0)
    os.wait()
    return x.clone()


def die_and_leave_a_daemon(x):
    leave_a_daemon(x)
    os._exit(3)


def leave_a_thread(x):
    def spin():
        while True:
            time.sleep(0.001)

    threading.Thread(target=spin, daemon=True).start()
    return x.clone()


def leave_a_signal_handler(x):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    return x.clone()


def set_an_alarm(x):
    signal.setitimer(signal.ITIMER_REAL, 0.2)
    return x.clone()


def print_the_probe(x):
    print(f"PROBE={os.environ.get('PROBE', '')}")
    return x + 1
