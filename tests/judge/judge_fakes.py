"""A judge's world without torch: schemas in short Python, and references as NumPy functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gate.case.bind import bind
from gate.case.bound import BoundCase
from gate.case.inputs import build_inputs
from gate.case.text import parse_case
from gate.dtypes import DTYPES, encode, to_float64
from gate.judge.judge import JudgeSettings, judge_case
from gate.judge.model import CaseJudgement
from gate.judge.oracle import ReferenceFault
from gate.run.protocol import ErrorFact, LaunchFact, Mode, Observation, Outcome, OutputFact
from gate.schema.expr import Level, parse_call, parse_expr
from gate.schema.model import (
    Compare,
    CompareKind,
    Dim,
    DimKind,
    Domain,
    Io,
    OpSchema,
    Range,
    Return,
    ScalarArg,
    TensorArg,
    Values,
)
from gate.seed import Seed

KERNEL = "ops/k.py::k"


def expr(text: object) -> Any:
    return parse_expr(str(text), level=Level.PURE)


def exprs(texts: str) -> tuple[Any, ...]:
    return tuple(expr(t) for t in texts.split())


def span(text: str) -> Range:
    lo, hi = text.split("..")
    return Range(lo=expr(lo), hi=expr(hi))


def dim(name: str, rule: str = "0..4096", **more: Any) -> Dim:
    return Dim(name=name, kind=DimKind.RANGE, range=span(rule), **more)


def tensor(name: str, shape: str, dtype: str = "T", **more: Any) -> TensorArg:
    values = more.pop("values", None)
    if isinstance(values, str):
        values = Values(domain=Domain.RANGE, range=span(values))
    return TensorArg(
        name=name, shape=exprs(shape), dtype=expr(dtype), values=values or Values(), **more
    )


def scalar(name: str, kind: str, *choices: Any) -> ScalarArg:
    domain = Domain.CHOICES if choices else Domain.ANY
    return ScalarArg(name=name, type=kind, values=Values(domain=domain, choices=choices))


def ret(name: str, shape: str | None, dtype: str = "T", **more: Any) -> Return:
    held = None if shape is None else exprs(shape)
    return Return(name=name, shape=held, dtype=expr(dtype), **more)


def picking(name: str, axis: str | None = None) -> Compare:
    return Compare(kind=CompareKind.PICKS, picks=name, axis=None if axis is None else expr(axis))


def op(
    *,
    dims: tuple[Dim, ...] = (dim("B"), dim("H")),
    args: tuple[Any, ...] = (),
    returns: tuple[Return, ...] = (),
    dtypes: str = "float32 float16 bfloat16",
    reference: str = "torch.softmax(x, dim=-1)",
    **more: Any,
) -> OpSchema:
    return OpSchema(
        op="op", file="ops/k.op.yaml", line=1,
        entry=parse_call("ops/k.py::run", level=Level.CALL),
        reference=parse_expr(reference, level=Level.TORCH),
        dims=dims, dtypes=(("T", tuple(dtypes.split())),), args=args, returns=returns, **more,
    )  # fmt: skip


UNARY = op(args=(tensor("x", "B H"),), returns=(ret("y", "B H"),))
"""x[B, H] -> y[B, H]."""
MATMUL = op(
    dims=(dim("M"), dim("N"), dim("K")),
    args=(tensor("a", "M K"), tensor("b", "K N")), returns=(ret("c", "M N"),),
    reference="a @ b",
)  # fmt: skip


class NumpyOracle:
    """A reference given as a function of arrays in one floating dtype.

    fn     takes the args by name, returns a tuple of arrays (or lists, or None)
    inputs the case's inputs
    """

    def __init__(self, fn: Callable[..., tuple[Any, ...]], inputs: Mapping[str, Any]) -> None:
        self.fn = fn
        self.inputs = dict(inputs)
        self.asked: list[tuple[Mode, float]] = []

    def values(
        self, mode: Mode, roundoff: float = 0.0, inputs: Any = None, given: Any = None
    ) -> tuple[Any, ...]:
        self.asked.append((mode, roundoff))
        seen = {**(self.inputs if inputs is None else inputs), **(given or {})}
        match mode:
            case Mode.FLOAT64:
                return self._call({n: wide(v) for n, v in seen.items()})
            case Mode.NATIVE:
                return self._call(seen)
            case Mode.FLOAT32:
                return self._call({n: wide(v, np.float32) for n, v in seen.items()})
            case Mode.SPREAD:
                return self._spread(seen, roundoff)
            case Mode.INTEGERS:
                return self._spread(seen, roundoff, kinds="iu")

    def _call(self, seen: Mapping[str, Any]) -> tuple[Any, ...]:
        with np.errstate(all="ignore"):
            try:
                values = self.fn(**seen)
            except (TypeError, ValueError, FloatingPointError) as problem:
                fact = ErrorFact(type=type(problem).__name__, message=str(problem))
                raise ReferenceFault(fact) from problem
        return values if isinstance(values, tuple) else (values,)

    def _spread(self, seen: Mapping[str, Any], u: float, kinds: str = "f") -> tuple[Any, ...]:
        truth = self._call({n: wide(v) for n, v in seen.items()})
        most: list[Any] = [None] * len(truth)
        for copy in range(4):
            moved = {n: _nudged(n, wide(v), u, copy, kinds) for n, v in seen.items()}
            for i, value in enumerate(self._call(moved)):
                if isinstance(value, np.ndarray):
                    with np.errstate(invalid="ignore"):
                        gap = np.abs(to_float64(value) - to_float64(truth[i]))
                    most[i] = gap if most[i] is None else np.fmax(most[i], gap)
        return tuple(most)


def wide(value: Any, dtype: Any = np.float64) -> Any:
    if isinstance(value, list):
        return [wide(v, dtype) for v in value]
    if isinstance(value, np.ndarray) and value.dtype.kind not in "biu":
        return value.astype(dtype)
    return value


def _nudged(name: str, value: Any, u: float, copy: int, kinds: str) -> Any:
    if not isinstance(value, np.ndarray) or value.dtype.kind not in kinds:
        return value
    # Other signs for another u, mirrored ones for -u, as in the worker.
    words = Seed(7).child(f"{name}{copy}{abs(u)!r}").words(max(1, value.size))[: value.size]
    signs = np.where(words >> np.uint64(63), 1.0, -1.0).reshape(value.shape)
    return value * (1 + u * signs)


@dataclass
class World:
    """One case: its inputs, its reference, and a judge to show outputs to."""

    bound: BoundCase
    inputs: Any
    oracle: NumpyOracle

    def __getitem__(self, name: str) -> Any:
        return self.inputs.values[name]

    @property
    def truth(self) -> tuple[Any, ...]:
        return self.oracle.values(Mode.FLOAT64)

    def rounded(self, index: int = 0, dtype: str | None = None) -> Any:
        """The reference, rounded as a careful kernel rounds it."""
        return encode(
            to_float64(self.truth[index]), dtype or next(iter(self.bound.dtypes.values()))
        )

    def judge(self, *outputs: Any, **more: Any) -> CaseJudgement:
        return self.judge_seen(self.seen(*outputs, **more))

    def judge_seen(self, seen: Observation) -> CaseJudgement:
        settings = JudgeSettings(kernels=(KERNEL,), device="interpreter")
        return judge_case(self.bound, self.inputs, seen, self.oracle, settings)

    def seen(self, *outputs: Any, **more: Any) -> Observation:
        names = [r.name for r in self.bound.schema.returns]
        names += [
            a.name for a in self.bound.schema.args
            if isinstance(a, TensorArg) and a.io in (Io.OUT, Io.INOUT)
        ]  # fmt: skip
        facts = [fact(n, v) for n, v in zip(names, outputs, strict=False)]
        return observation(*facts, **more)


def observation(*facts: OutputFact, **more: Any) -> Observation:
    more.setdefault("launches", (LaunchFact(kernel=KERNEL, grid=(1, 1, 1)),))
    return Observation(
        outcome=more.pop("outcome", Outcome.RETURNED), outputs=facts, device="interpreter",
        launch_count=len(more["launches"]), **more,
    )  # fmt: skip


def fact(name: str, value: Any) -> OutputFact:
    if value is None:
        return OutputFact(name=name, is_none=True, dtype="NoneType")
    if isinstance(value, OutputFact):
        return value
    array = np.asarray(value)
    held = next(d.name for d in DTYPES.values() if d.storage == array.dtype)
    return OutputFact(name=name, dtype=held, shape=array.shape, device="cpu", data=array)


def world(
    schema: OpSchema, case: str, fn: Callable[..., Any], values: Mapping[str, Any] | None = None
) -> World:
    """Build a case from its text; `values` replaces inputs by arrays of the same form."""
    bound = bind(schema, parse_case(case))
    inputs = build_inputs(bound)
    held = dict(inputs.values)
    for name, value in (values or {}).items():
        held[name] = np.asarray(value).astype(held[name].dtype)
    inputs = _Inputs(held)
    return World(bound, inputs, NumpyOracle(fn, held))


@dataclass
class _Inputs:
    values: dict[str, Any]
    dead: dict[str, Any] = field(default_factory=dict)


# --- references ---------------------------------------------------------------------------------


def softmax(x: Any) -> Any:
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def layernorm(x: Any, eps: float = 1e-5) -> Any:
    centred = x - x.mean(axis=-1, keepdims=True)
    return centred / np.sqrt((centred * centred).mean(axis=-1, keepdims=True) + x.dtype.type(eps))


def matmul(a: Any, b: Any) -> Any:
    if a.dtype.itemsize < 4:
        return (a.astype(np.float32) @ b.astype(np.float32)).astype(a.dtype)
    return a @ b


def row_sum(x: Any) -> Any:
    return x.sum(axis=-1)
