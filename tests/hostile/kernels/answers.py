"""Launchers that return, raise or print what nobody expects."""

import os
import shutil
import sys
import warnings

import torch

INTERPRETED = os.environ.get("TRITON_INTERPRET")


def nothing(x):
    return None


def another_shape(x):
    return x[:, :-1].clone()


def another_dtype(x):
    return x.double()


def too_many(x):
    return x.clone(), x.clone(), 3


def the_input_itself(x):
    return x


def a_view_of_the_input(x):
    return x[1:]


def a_changed_input(x):
    x[0, 0] = 7
    return x.clone()


def a_string(x):
    return "y" * 10**7


def a_million_values(x):
    return [x] * 10**6


def a_nest(x):
    y = x
    for _ in range(10**5):
        y = [y]
    return y


def a_huge_expanded(x):
    return torch.zeros(1).expand(2**20, 2**20)


def a_sparse_one(x):
    return x.to_sparse()


def a_meta_one(x):
    return torch.empty(x.shape, device="meta")


def one_on_the_host(x):
    return x.cpu().clone()


def a_complex_one(x):
    return torch.complex(x, x)


class _Lying(torch.Tensor):
    @property
    def shape(self):
        os._exit(9)


def a_lying_subclass(x):
    return x.clone().as_subclass(_Lying)


class Odd(BaseException):
    pass


def raise_a_base_exception(x):
    raise Odd("not an Exception")


class Mute(Exception):
    def __str__(self):
        raise RuntimeError("no text")

    __repr__ = __str__


def raise_without_text(x):
    raise Mute


def raise_a_megabyte(x):
    raise ValueError("\x1b[31m::error::" + "x" * 2**20)


def raise_with_surrogates(x):
    raise ValueError("\ud800\x00\u202e")


class _Nameless(type):
    @property
    def __name__(cls):
        raise RuntimeError("no name")

    def mro(cls):
        return type.mro(cls)


class Nameless(Exception, metaclass=_Nameless):
    pass


def raise_without_a_name(x):
    raise Nameless("who")


def raise_keyboard_interrupt(x):
    raise KeyboardInterrupt


def print_a_flood(x):
    line = "::error file=x::pwned\n##[error]x\n" * 1000
    for _ in range(100 * 2**20 // len(line)):
        sys.stdout.write(line)
    return x.clone()


def print_from_c(x):
    os.write(1, b"from below\n")
    os.write(2, b"\xff\xfe not text\n")
    return x.clone()


def read_stdin(x):
    assert sys.stdin.read() == ""
    return x.clone()


def replace_stdout(x):
    sys.stdout = None
    return x.clone()


def warn(x):
    warnings.warn("a warning is no error", stacklevel=1)
    return x.clone()


def change_folder_and_environment(x):
    os.chdir("/")
    os.environ["PATH"] = "/nowhere"
    os.environ["TRITON_INTERPRET"] = "0"
    sys.path.insert(0, "/nowhere")
    torch.set_default_dtype(torch.float64)
    torch.set_grad_enabled(False)
    return x.clone()


def remove_its_folder(x):
    folder = os.getcwd()
    if folder != os.environ["HOME"] or len(folder.split("/")) < 3:
        return None  # nothing of anybody else's may be lost to this test
    shutil.rmtree(folder)
    return x.clone()


def folder_environment_and_modes(x):
    ok = (
        os.getcwd() == os.environ["HOME"]
        and os.environ.get("TRITON_INTERPRET") == INTERPRETED
        and "/nowhere" not in sys.path
        and torch.get_default_dtype() is torch.float32
        and torch.is_grad_enabled()
    )
    return x.clone() if ok else None
