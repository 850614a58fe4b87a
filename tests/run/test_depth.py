"""Which specialisations go through the whole compiler: first ones, and those that may not fit."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("triton")
pytestmark = pytest.mark.triton

from gate.run.faithful.depth import Depth  # noqa: E402 - its package needs triton


def described(
    block: int = 64, width: int = 64, stages: int = 1, pointer: str = "*fp16", flag: bool = True
) -> dict[str, Any]:
    return {
        "file": "k.py", "function": "k", "signature": {"x": pointer, "B": "constexpr"},
        "constants": {"B": block, "D": width, "ONE": 1, "FLAG": flag},
        "options": {"num_stages": stages},
    }  # fmt: skip


def test_the_first_of_each_kernel_set_of_types_and_flags_is_compiled_to_the_end():
    depth = Depth(complete=False)
    assert depth.whole(described())
    assert not depth.whole(described())
    assert depth.whole(described(pointer="*fp32"))
    assert depth.whole(described(flag=False))
    assert not depth.whole(described(block=32))


def test_one_that_grows_is_compiled_again_once_its_shared_memory_may_not_suffice():
    depth = Depth(complete=False)
    assert depth.whole(described())
    depth.learn(described(), 0.2)
    assert not depth.whole(described(block=128, width=128))  # 0.8 at most
    assert not depth.whole(described(block=256))
    assert depth.whole(described(block=256, stages=2))  # 1.6
    depth.learn(described(block=256, stages=2), 0.5)
    assert not depth.whole(described(block=512, stages=2))
    assert depth.whole(described(block=512, stages=3))


def test_one_that_needs_nothing_yet_may_need_some_when_it_grows():
    depth = Depth(complete=False)
    depth.whole(described())
    depth.learn(described(), 0.0)
    assert not depth.whole(described(block=1024))
    assert depth.whole(described(block=2048))


def test_growth_without_an_answer_is_compiled():
    depth = Depth(complete=False)
    assert depth.whole(described()) and depth.whole(described(block=128))
    depth.learn(described(), 0.01)  # of the smaller one, which says nothing of what is held now
    assert depth.whole(described(block=256))


def test_completeness_takes_all():
    depth = Depth(complete=True)
    assert all(depth.whole(described()) for _ in range(3))


SIZES = st.lists(
    st.tuples(st.integers(4, 10), st.integers(4, 10), st.integers(1, 4)), min_size=1, max_size=12
)


@given(SIZES, st.integers(1, 512))
def test_the_first_tile_that_does_not_fit_is_always_compiled(found, bytes_each: int):
    """Shared memory as a product of sizes, the fastest that a kernel of tiles grows."""
    depth = Depth(complete=False)
    room = 232_448
    for block, width, stages in found:
        one = described(2**block, 2**width, stages)
        need = bytes_each * 2 ** (block + width) * stages
        whole = depth.whole(one)
        assert whole or need <= room
        if need > room:
            break  # it is found, and the kernel with it
        if whole:
            depth.learn(one, need / room)
