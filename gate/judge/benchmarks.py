"""The checks that published benchmarks make, run on an op at its benchmark point.

They are here to be measured, never to decide: a kernel that passes one and fails the gate is an
illusion. Each is a pure function of what the kernel returned and of the golden output, which is
torch's own evaluation of the reference in the inputs' dtypes.

    KernelBench   five draws of U[0, 1) at one shape; torch.allclose with atol = rtol = 1e-4 for
                  float32 and float64, 1e-2 for narrower floats; all five must pass
    GEAK          torch.allclose with atol = rtol = 1e-3 against the golden output, one draw
    TritonBench   runs two scripts and compares what they print. 339 of its 347 scripts print
                  nothing, so that a kernel passes which merely runs. Counting that would make an
                  illusion of every wrong kernel; here it passes when the tensors *print* alike,
                  the strongest form that the published check has, and the detail says when
                  running alone would have done.

torch.allclose is |a - b| <= atol + rtol * |b| with equal infinities equal and NaN unequal to NaN,
computed in the tensors' own dtype; tensors of different shape or dtype are not close.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from gate.case.model import Case
from gate.case.text import format_case
from gate.dtypes import Array, to_float64
from gate.judge.model import BenchmarkVerdict
from gate.judge.torchtext import printed

Outputs = tuple[Array | None, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Draw:
    """One input set, run."""

    case: Case
    """The case."""
    outputs: Outputs
    """What the kernel returned; None for None, and for what has no values to compare (a `meta`
    tensor, one on another device than the inputs, no tensor at all)."""
    expected: Outputs
    """The golden output, in the outputs' dtypes; None where it has no tensor."""
    error: str = ""
    """Why the call did not return; empty when it did."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchmarkOracle:
    """One published check."""

    name: str
    """Its name."""
    draws: int
    """Input sets that it compares."""
    fill: str
    """The fill of its float inputs."""
    check: Callable[[Array, Array], bool]
    """Whether one output passes."""
    words: str
    """The check in words."""

    def verdict(self, draws: tuple[Draw, ...]) -> BenchmarkVerdict:
        """Return what the check says of these draws: all must pass."""
        passed = [self._passes(draw) for draw in draws]
        text = format_case(draws[0].case) if draws else "no case"
        failed = [draw for draw, ok in zip(draws, passed, strict=True) if not ok]
        return BenchmarkVerdict(
            oracle=self.name,
            passed=bool(draws) and not failed,
            draws=len(draws),
            passed_draws=sum(passed),
            detail=f"{self.words} at {text}{self._why(failed)}",
        )

    def _passes(self, draw: Draw) -> bool:
        return not draw.error and same_form(draw) and all(self.check(*two) for two in _both(draw))

    def _why(self, failed: list[Draw]) -> str:
        if not failed:
            return ""
        first = failed[0]
        if first.error:
            return f": {first.error.splitlines()[0]}"
        if _lacks(first):
            return ": None, or a tensor without values on the inputs' device, for a tensor"
        if not same_form(first):
            return ": another number of outputs, shape or dtype"
        if self.name == "TritonBench":
            return ": it runs, which is all that most of its scripts check, and prints otherwise"
        return f": off by {_largest_gap(first):.3g} at most"


def same_form(draw: Draw) -> bool:
    """Whether outputs and golden outputs agree in number, shape and dtype, and which are None.

    allclose raises for anything but two tensors of one device, so that nothing passes there.
    """
    return (
        len(draw.outputs) == len(draw.expected)
        and all(
            (a is None) == (b is None) for a, b in zip(draw.outputs, draw.expected, strict=True)
        )
        and all(out.shape == ref.shape and out.dtype == ref.dtype for out, ref in _both(draw))
    )


def _lacks(draw: Draw) -> bool:
    """Whether some output is no tensor with values where the golden one is."""
    pairs = zip(draw.outputs, draw.expected, strict=False)
    return any(out is None and wanted is not None for out, wanted in pairs)


def _both(draw: Draw) -> list[tuple[Array, Array]]:
    """Return the outputs that are tensors on both sides."""
    pairs = zip(draw.outputs, draw.expected, strict=True)
    return [(out, ref) for out, ref in pairs if out is not None and ref is not None]


def allclose(out: Array, wanted: Array, *, atol: float, rtol: float) -> bool:
    """Return torch.allclose(out, wanted, atol=atol, rtol=rtol)."""
    if out.shape != wanted.shape or out.dtype != wanted.dtype:
        return False
    if out.dtype.kind in "biu" or out.dtype.itemsize == 1:
        a, b = to_float64(out), to_float64(wanted)
    else:
        a, b = out, wanted
    kind = a.dtype.type
    with np.errstate(all="ignore"):
        gap = np.abs(a - b)
        allowed = kind(atol) + np.abs(kind(rtol) * b)
        close = (a == b) | (np.isfinite(to_float64(gap)) & (gap <= allowed))
    return bool(np.asarray(close).all())


def kernelbench_tolerance(dtype: np.dtype[np.generic]) -> float:
    """Return KernelBench's atol and rtol for an output dtype."""
    narrow = dtype.kind not in "biu" and dtype.itemsize < 4
    return 1e-2 if narrow else 1e-4


def _kernelbench(out: Array, wanted: Array) -> bool:
    tolerance = kernelbench_tolerance(out.dtype)
    return allclose(out, wanted, atol=tolerance, rtol=tolerance)


def _geak(out: Array, wanted: Array) -> bool:
    return allclose(out, wanted, atol=1e-3, rtol=1e-3)


def _tritonbench(out: Array, wanted: Array) -> bool:
    return printed(out) == printed(wanted)


def _largest_gap(draw: Draw) -> float:
    most = 0.0
    for out, wanted in _both(draw):
        if out.size:
            with np.errstate(invalid="ignore"):
                gap = np.abs(to_float64(out) - to_float64(wanted))
            most = max(most, float(np.where(np.isnan(gap), np.inf, gap).max()))
    return most


ORACLES = (
    BenchmarkOracle(
        name="KernelBench", draws=5, fill="uniform01", check=_kernelbench,
        words="allclose with atol = rtol = 1e-4 (1e-2 for 16-bit), 5 draws of U[0, 1)",
    ),
    BenchmarkOracle(
        name="TritonBench", draws=1, fill="normal", check=_tritonbench,
        words="equal printed text, four digits",
    ),
    BenchmarkOracle(
        name="GEAK", draws=1, fill="normal", check=_geak,
        words="allclose with atol = rtol = 1e-3 against the golden output",
    ),
)  # fmt: skip
"""The published checks, in the order of the tables."""
