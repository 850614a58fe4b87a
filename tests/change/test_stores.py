import pytest
from change_repo import scan_text

from gate.change.stores import store_lines

HEAD = "import triton\nimport triton.language as tl\nfrom other import put\n\n@triton.jit\n"
LAUNCH = "\ndef f(x):\n    k[(1,)](x)\n"
OTHER = HEAD.replace("from other import put\n", "") + "def put(p, v):\n    tl.store(p, v)\n"


def stores(kernel: str) -> tuple[tuple[str, int], ...]:
    return store_lines(scan_text({"a.py": HEAD + kernel + LAUNCH, "other.py": OTHER}), "a.py::k")


KNOWN = {
    "an address by its parameter": ("def k(y_ptr):\n    tl.store(y_ptr, 1)\n", (("y_ptr", 7),)),
    "an offset": (
        "def k(x, y, n):\n    i = tl.arange(0, 8)\n"
        "    tl.store(y + i, tl.load(x + i), mask=i < n)\n",
        (("y", 8),),
    ),
    "a pointer to a row, with a stride": (
        "def k(y, s):\n    row = y + tl.program_id(0) * s\n    tl.store(row + 1, 0)\n",
        (("y", 8),),
    ),
    "a pointer that advances": (
        "def k(y, n):\n    for _ in range(n):\n        tl.store(y, 0)\n        y += 8\n",
        (("y", 8),),
    ),
    "a number beside the pointer": (
        "def k(y, start, n):\n    i = start + tl.arange(0, 8)\n"
        "    tl.store(y + i, 0, mask=start < n)\n",
        (("y", 8),),
    ),
    "a block pointer": (
        "def k(y, n):\n    b = tl.make_block_ptr(base=y, shape=(n,))\n"
        "    tl.store(tl.advance(b, (8,)), 0)\n",
        (("y", 8),),
    ),
    "a descriptor": ("def k(desc):\n    desc.store([0], 1)\n", (("desc", 7),)),
    "an atomic": ("def k(y):\n    tl.atomic_add(y, 1)\n", (("y", 7),)),
    "a pointer of another type": (
        "def k(y):\n    p = y.to(tl.pointer_type(tl.int8))\n    tl.store(p, 1)\n",
        (("y", 8),),
    ),
    "two stores": (
        "def k(y, s):\n    tl.store(y, 1)\n    tl.store(s, 2)\n    tl.store(y + 1, 3)\n",
        (("y", 7), ("s", 8), ("y", 9)),
    ),
}


@pytest.mark.parametrize("name", KNOWN)
def test_each_store_is_told_with_the_parameter_that_it_goes_through(name: str) -> None:
    kernel, expected = KNOWN[name]
    assert stores(kernel) == expected


UNKNOWN = {
    "one of two pointers": "def k(y, z, c):\n    p = y if c else z\n    tl.store(p, 1)\n",
    "a number that may be a pointer": "def k(y, at):\n    tl.store(y + at, 1)\n",
    "an address out of memory": "def k(y):\n    tl.store(tl.load(y), 1)\n",
    "a helper that stores": "def k(y):\n    put(y, 1)\n    tl.store(y, 1)\n",
}


@pytest.mark.parametrize("name", UNKNOWN)
def test_where_the_source_leaves_a_doubt_no_store_is_told(name: str) -> None:
    assert stores(UNKNOWN[name]) == ()
