import pytest
from change_repo import difference, scan_text

from gate.change.tiles import static_tiles

HEAD = """
import functools
import triton
import triton.language as tl
from sizes import FAR, pick

"""
SIZES = "FAR = 4096\n\ndef pick(n):\n    return min(2048, triton.next_power_of_2(n)), 4\n"
KERNEL = """
@triton.jit
def k(x, n, BM: tl.constexpr, BN: tl.constexpr = 0):
    tl.store(x, n)
"""


def tiles(text: str, kernel: str = KERNEL) -> tuple[int, ...]:
    return static_tiles(scan_text({"a.py": HEAD + kernel + text, "sizes.py": SIZES}), "a.py::k")


SOURCES = {
    "a keyword of a launch": ("def f(x):\n    k[(1,)](x, 3, BM=64)\n", (64,)),
    "a positional argument of a launch": ("def f(x):\n    k[(1,)](x, 3, 64, 32)\n", (32, 64)),
    "a local name": ("def f(x):\n    B = 64\n    k[(1,)](x, 3, BM=B)\n", (64,)),
    "names in a tuple": ("def f(x):\n    B, C = 64, 16\n    k[(1,)](x, 3, B, C)\n", (16, 64)),
    "a module name": ("B = 64\ndef f(x):\n    k[(1,)](x, 3, BM=B)\n", (64,)),
    "a name of another module": ("def f(x):\n    k[(1,)](x, 3, BM=FAR)\n", (4096,)),
    "a default of the launcher": ("def f(x, B=64):\n    k[(1,)](x, 3, BM=B)\n", (64,)),
    "a condition": ("def f(x):\n    k[(1,)](x, 3, BM=64 if x else 128)\n", (64, 128)),
    "a bound": ("def f(x, n):\n    k[(1,)](x, 3, BM=min(512, n))\n", (512,)),
    "a power of two": ("def f(x):\n    k[(1,)](x, 3, BM=triton.next_power_of_2(100))\n", (128,)),
    "a product": ("def f(x):\n    k[(1,)](x, 3, BM=2 * 32, BN=1 << 8)\n", (64, 256)),
    "a power": ("def f(x):\n    k[(1,)](x, 3, BM=2 ** 5, BN=256 // 2)\n", (32, 128)),
    "a choosing function": (
        "def f(x, n):\n    B, w = pick(n)\n    k[(1,)](x, 3, BM=B, num_warps=w)\n",
        (2048,),
    ),
    "a loop": ("def f(x):\n    for B in (16, 32):\n        k[(1,)](x, 3, BM=B)\n", (16, 32)),
    "a dict": ("def f(x):\n    meta = {'BM': 64}\n    k[(1,)](x, 3, **meta)\n", (64,)),
    "a dict call": ("def f(x):\n    meta = dict(BM=64)\n    k[(1,)](x, 3, **meta)\n", (64,)),
    "a dict item": ("def f(x):\n    m = {}\n    m['BM'] = 64\n    k[(1,)](x, 3, **m)\n", (64,)),
    "a partial": ("p = functools.partial(k, BM=64)\ndef f(x):\n    p[(1,)](x, 3)\n", (64,)),
    "a variable kernel": ("def f(x):\n    g = k\n    g[(1,)](x, 3, 64)\n", (64,)),
    "a keyword-only default": ("def f(x, *, z, B=64):\n    k[(1,)](x, 3, BM=B)\n", (64,)),
    "a sum": ("def f(x):\n    B: int = 60 + 4\n    k[(1,)](x, 3, BM=B)\n", (64,)),
    "a difference": ("def f(x):\n    k[(1,)](x, 3, BM=64 - 32)\n", (32,)),
    "a list": ("def f(x):\n    [B, C] = pair = [64, 32]\n    k[(1,)](x, 3, B, C)\n", (32, 64)),
    "a growing name": ("def f(x):\n    B = 16\n    B *= 4\n    k[(1,)](x, 3, B)\n", (16,)),
    "two functions": (
        "def g(n):\n    if n:\n        return None\n    return 512\n"
        "def f(x):\n    k[(1,)](x, 3, BM=g(x))\n",
        (512,),
    ),
    "a walrus": ("def f(x):\n    k[(1,)](x, 3, BM=(B := 64), BN=B)\n", (64,)),
}


@pytest.mark.parametrize("source", SOURCES)
def test_tiles_are_read_from_launches(source: str) -> None:
    text, expected = SOURCES[source]
    assert tiles(text) == expected


DEVICE = {
    "a default": ("def k(x, BM: tl.constexpr = 64):\n    tl.store(x, 0)\n", (64,)),
    "a default as text": ("def k(x, BM: 'tl.constexpr' = 64):\n    tl.store(x, 0)\n", (64,)),
    "an arange": ("def k(x):\n    tl.store(x + tl.arange(0, 32), 0)\n", (32,)),
    "a local constexpr": ("def k(x):\n    B: tl.constexpr = 32\n    tl.store(x, B)\n", (32,)),
    "a constant": ("def k(x):\n    tl.store(x, B)\n\nB = tl.constexpr(256)\n", (256,)),
    "an annotated constant": ("def k(x):\n    tl.store(x, B)\n\nB: tl.constexpr = 256\n", (256,)),
    "a far constant": ("def k(x):\n    tl.store(x, FAR)\n", (4096,)),
    "a helper": (
        "def k(x):\n    h(x)\n\n@triton.jit\ndef h(x):\n    tl.store(x + tl.arange(0, 16), 0)\n",
        (16,),
    ),
}


@pytest.mark.parametrize("source", DEVICE)
def test_tiles_are_read_from_device_code(source: str) -> None:
    text, expected = DEVICE[source]
    assert tiles("", "@triton.jit\n" + text) == expected


def test_tiles_are_read_from_autotune_configs_and_heuristics() -> None:
    kernel = """
def configs():
    for bm in [16, 32]:
        yield triton.Config({"BM": bm, "GROUP": 1024}, num_warps=8, num_stages=512)

@triton.heuristics({"BN": lambda args: 64 if args["n"] > 2048 else 128})
@triton.autotune(configs=[*configs(), triton.Config(kwargs=dict(BM=256))], key=["n"])
@triton.jit
def k(x, n, BM: tl.constexpr, BN: tl.constexpr):
    tl.store(x, n)
"""
    assert tiles("", kernel) == (16, 32, 64, 128, 256, 2048)


def test_only_constexprs_and_only_powers_of_two_between_8_and_8192_count() -> None:
    text = """
def f(x):
    k[(256,)](x, 512, BM=4, BN=16384, num_warps=8, num_stages=16)
    k[(1,)](x, 512, BM=96, BN=True, other=64)
    k[(1,)](x, 512, BM=-64, BN=64.0)

def g(x):
    other[(1,)](x, 3, 1024)
"""
    other = "@triton.jit\ndef other(x, n, C: tl.constexpr):\n    tl.store(x, n)\n"
    assert tiles(text + other) == ()
    assert tiles("def f(x, *a):\n    k[(1,)](*a, 128)\n") == ()


def test_an_expression_of_any_size_ends() -> None:
    chain = "".join(f"    a{i + 1} = a{i} + a{i}\n" for i in range(60))
    text = f"def f(x, a0=32):\n{chain}    k[(1,)](x, 3, BM=a60, BN={'+'.join(['x'] * 2000)})\n"
    assert tiles(text) == (32,)
    loop = "def f(x):\n    a = b\n    b = a + 64\n    k[(1,)](x, 3, BM=a)\n"
    assert tiles(loop) == (64,)
    assert tiles("def f(x):\n    k[(1,)](x, 3, BM=2 ** (2 ** 40), BN=10 ** 9 ** 9)\n") == ()


def test_a_kernel_whose_file_cannot_be_parsed_has_no_tiles() -> None:
    base = {"a.py": HEAD + KERNEL, "sizes.py": SIZES}
    changes = difference(base, {**base, "a.py": HEAD + KERNEL + "(jit"})
    assert static_tiles(changes.index, "a.py::k") == ()


def test_an_unknown_kernel_is_an_error() -> None:
    with pytest.raises(KeyError):
        static_tiles(scan_text({}), "a.py::k")
