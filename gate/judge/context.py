"""What the judgement of one case needs beside an output and its reference."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from gate.case.bound import BoundCase
from gate.judge.caps import Caps
from gate.judge.mixing import Mixing
from gate.judge.nearby import Nearby
from gate.judge.nonfinite import Dependence
from gate.judge.oracle import References
from gate.judge.side import Side
from gate.schema.model import OpSchema


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeSettings:
    """What the judge must know beside the case."""

    kernels: tuple[str, ...] = ()
    """Kernel ids of which one must be launched; empty for an op that gates no Triton kernel."""
    device: str = ""
    """`cuda` or `interpreter`; empty: as the observation says."""
    dots: bool = True
    """Whether the op's kernels may hold a dot."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """One case while it is judged."""

    bound: BoundCase
    """The case with numbers."""
    inputs: Mapping[str, Any]
    """All inputs by arg name."""
    env: Mapping[str, Any]
    """Variables for the schema's expressions."""
    references: References
    """The reference, with the kernel's own `given` values."""
    dependence: Dependence
    """Where the reference depends on special inputs."""
    mixing: Mixing
    """How many inputs one output is made of."""
    nearby: Nearby
    """The float32 reference on slightly other inputs."""
    caps: Caps
    """Scalar args that cap."""
    specials: bool
    """Whether NaN or Inf went in where they mean something."""
    working: str
    """The working dtype; empty when no float goes in."""
    device: str
    """`cuda` or `interpreter`."""
    reach: float = 0.0
    """Largest finite magnitude among the float inputs."""
    product: float = 0.0
    """Largest product of two values of different float inputs; of one input alone: its `reach`."""
    gain: float = 1.0
    """What a norm of this op multiplies by at most: 1/sqrt(eps), 1 without an eps."""
    tiles: tuple[int, ...] = ()
    """Tile sizes seen in the launches, for the words on where it is wrong."""
    dots: bool = True
    """Whether the op's kernels may hold a dot."""
    told: bool = True
    """Whether what is wrong is put into words, numbers and a picture; otherwise it is only named,
    for one who asks whether something is wrong at all."""
    sides: dict[tuple[int, int | None, str], Side] = field(default_factory=dict)
    """(place among the reference's values, place in a list, output dtype) -> the reference where
    every element is compared: it is the same for every output that is shown."""

    @property
    def schema(self) -> OpSchema:
        """The op's schema."""
        return self.bound.schema

    @property
    def strict(self) -> bool:
        """Whether a swallowed NaN is wrong."""
        return self.schema.nonfinite == "strict"
