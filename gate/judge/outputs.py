"""Every output of a case: its form, its values against the reference, and the words for what is
wrong."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from gate.dtypes import DTYPES, Array, to_float64
from gate.judge.compare import Compared, Subject, compare
from gate.judge.context import Context
from gate.judge.env import live_elements, value_env
from gate.judge.errormap import error_map
from gate.judge.form import (
    check_form,
    check_is,
    expects_none,
    extra_values,
    has_gradient,
    missing,
)
from gate.judge.imprecise import name_error
from gate.judge.model import Comparison, Failure, FailureKind, Margin
from gate.judge.oracle import judged
from gate.judge.pattern import find_pattern
from gate.judge.unwritten import held_fill
from gate.judge.wording import value_words
from gate.run.protocol import Observation, OutputFact
from gate.schema.gradients import own_returns
from gate.schema.model import OpSchema, Return, TensorArg


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputsJudgement:
    """What the outputs of a case came to."""

    failures: tuple[Failure, ...] = ()
    """What is wrong, kernel not named yet; in the order of the schema."""
    comparisons: tuple[Comparison, ...] = ()
    """Every output that was compared."""
    notes: tuple[str, ...] = ()
    """Worth saying."""
    judged: int = 0
    """Elements that were judged."""
    undecided: bool = False
    """Whether some output could not be judged."""
    margins: tuple[Margin, ...] = ()
    """What the outputs took of their tolerance."""


@dataclass(slots=True)
class _Tally:
    """Gathers judgements; the frozen result is made at the end."""

    failures: list[Failure] = field(default_factory=list)
    """What is wrong."""
    comparisons: list[Comparison] = field(default_factory=list)
    """What was compared."""
    notes: list[str] = field(default_factory=list)
    """Worth saying."""
    judged: int = 0
    """Elements judged."""
    undecided: bool = False
    """Whether some output could not be judged."""
    margins: list[Margin] = field(default_factory=list)
    """What they took of their tolerance."""

    def result(self) -> OutputsJudgement:
        """Return what was gathered."""
        return OutputsJudgement(
            failures=tuple(self.failures), comparisons=tuple(self.comparisons),
            notes=tuple(dict.fromkeys(self.notes)), judged=self.judged, undecided=self.undecided,
            margins=tuple(self.margins),
        )  # fmt: skip


def given_values(schema: OpSchema, observation: Observation) -> dict[str, Any]:
    """Return the kernel's own values of the `given` returns, by name."""
    names = {ret.name for ret in schema.returns if ret.given}
    return {f.name: f.data for f in observation.outputs if f.name in names and f.data is not None}


def judge_outputs(ctx: Context, observation: Observation) -> OutputsJudgement:
    """Judge every output of a call that returned.

    Raises
        ReferenceFault  the reference failed on the case itself
    """
    tally = _Tally()
    facts = {fact.name: fact for fact in observation.outputs}
    extra = extra_values(observation.outputs, len(own_returns(ctx.schema)))
    if extra is not None:
        tally.failures.append(extra)
    for ret in ctx.schema.returns:
        if ret.is_arg:
            fact = facts.get(ret.name)
            wrong = missing(ret.name) if fact is None else check_is(fact, ret)
            if wrong is not None:
                tally.failures.append(wrong)
    items = list(enumerate(judged(ctx.schema)))
    truth = _truth(ctx, len(items), tally)
    chosen = {item.name for _, item in items if isinstance(item, Return) and item.given}
    for index, item in sorted(items, key=lambda pair: pair[1].name not in chosen):
        value = truth[index] if truth is not None else None
        _judge_item(ctx, facts, item, index, value, tally, skip_values=truth is None)
        if item.name in chosen and tally.failures:
            tally.notes.append(f"outputs that depend on `{item.name}` are not judged: it is wrong")
            break
    return tally.result()


def _truth(ctx: Context, count: int, tally: _Tally) -> tuple[Any, ...] | None:
    """Return the reference's values; None for an op without one, or with too few values."""
    if ctx.schema.reference is None or not count:
        return None
    values = ctx.references.truth()
    if len(values) == count:
        return values
    tally.undecided = True
    tally.notes.append(
        f"the reference gives {len(values)} values, the schema declares {count}: one for each "
        "return except `is:` ones, then one for each inout or out arg"
    )
    return None


def _judge_item(
    ctx: Context, facts: Mapping[str, OutputFact], item: Return | TensorArg, index: int,
    value: Any, tally: _Tally, *, skip_values: bool,
) -> None:  # fmt: skip
    if isinstance(item, Return) and item.gradient and not skip_values:
        if not has_gradient(item, ctx):
            return
        if value is None:
            _judge_no_gradient(facts, item, tally)
            return
    for fact, ref, part in _pairs(facts, item, value, tally):
        wrong = check_form(fact, item, ref, ctx)
        if wrong is not None:
            tally.failures.append(wrong)
            continue
        if fact.overlaps and isinstance(item, Return) and not item.gradient:
            shared = ", ".join(f"`{name}`" for name in fact.overlaps)
            tally.notes.append(f"`{fact.name}` shares memory with {shared}")
        if expects_none(item, ctx) or skip_values:
            continue
        if ref is None or fact.data is None:
            tally.undecided = True
            tally.notes.append(f"`{fact.name}` cannot be compared: the reference gives no tensor")
            continue
        _judge_values(ctx, fact, item, index, part, ref, tally)


def _judge_no_gradient(facts: Mapping[str, OutputFact], item: Return, tally: _Tally) -> None:
    """Judge a gradient where the reference has none: None is right and zeros are as good; for
    anything else it is unknown which side forgot."""
    own = [fact for fact in facts.values() if fact.name.split("[")[0] == item.name]
    for fact in own:
        if not fact.is_none and (fact.data is None or to_float64(fact.data).any()):
            tally.undecided = True
            tally.notes.append(
                f"`{fact.name}` cannot be compared: autograd finds no way from the reference's "
                f"returns to `{item.gradient}`"
            )


def _pairs(
    facts: Mapping[str, OutputFact], item: Return | TensorArg, value: Any, tally: _Tally
) -> Iterator[tuple[OutputFact, Array | None, int | None]]:
    """Pair what came back with the reference, tensor by tensor of a list."""
    if isinstance(value, (list, tuple)):
        for part, ref in enumerate(value):
            fact = facts.get(f"{item.name}[{part}]")
            if fact is None:
                tally.failures.append(missing(f"{item.name}[{part}]"))
            else:
                yield fact, None if ref is None else np.asarray(ref), part
        if f"{item.name}[{len(value)}]" in facts:
            words = f"`{item.name}` has more than the {len(value)} tensors of the reference"
            kind = FailureKind.WRONG_RETURN
            tally.failures.append(Failure(kind=kind, key=item.name, kernel="", message=words))
        return
    fact = facts.get(item.name)
    if fact is None:
        tally.failures.append(missing(item.name))
        return
    yield fact, None if value is None else np.asarray(value), None


def _judge_values(
    ctx: Context, fact: OutputFact, item: Return | TensorArg, index: int, part: int | None,
    ref: Array, tally: _Tally,
) -> None:  # fmt: skip
    assert fact.data is not None
    if ref.shape != fact.data.shape:
        tally.undecided = True
        tally.notes.append(
            f"the reference gives `{fact.name}` the shape {list(ref.shape)}, the schema declares "
            f"{list(fact.data.shape)}"
        )
        return
    subject = Subject(
        name=fact.name, item=item, dtype=_held_dtype(fact), out=fact.data, ref=ref,
        live=_live(item, fact.data.shape, ctx), witness=ctx.references.witness(index, part),
        index=index, part=part,
    )  # fmt: skip
    compared = compare(subject, ctx)
    tally.judged += compared.judged
    tally.notes.extend(compared.notes)
    if compared.margin is not None:
        tally.margins.append(compared.margin)
    if compared.kind is None:
        tally.comparisons.append(compared.comparison)
        return
    failure = _failure(compared, subject, ctx) if ctx.told else _named(compared, subject)
    assert failure.comparison is not None
    tally.comparisons.append(failure.comparison)
    tally.failures.append(failure)


def _held_dtype(fact: OutputFact) -> str:
    """Return the dtype of an output; a Python number counts as what holds it."""
    if fact.dtype in DTYPES:
        return fact.dtype
    return {"float": "float64", "int": "int64"}.get(fact.dtype, "bool")


def _live(item: Return | TensorArg, shape: tuple[int, ...], ctx: Context) -> Any:
    env = value_env(ctx.env, ctx.inputs)
    return live_elements(item.live, item.shape, shape, env, item.name)


def _named(compared: Compared, subject: Subject) -> Failure:
    """Return the failure without words, where nobody reads them."""
    assert compared.kind is not None
    return Failure(
        kind=compared.kind, key=subject.name, kernel="", message="", comparison=compared.comparison
    )


def _failure(compared: Compared, subject: Subject, ctx: Context) -> Failure:
    """Name the error, say where it is, and put it into one sentence."""
    wrong = compared.wrong
    named = name_error(compared, subject, ctx)
    pattern = find_pattern(
        to_float64(subject.out), to_float64(subject.ref), wrong, subject.dtype, tiles=ctx.tiles,
        inputs=ctx.inputs,
    )  # fmt: skip
    where = str(pattern) if wrong.any() else ""
    comparison = replace(
        compared.comparison, pattern=where, map=error_map(wrong), hints=named.hints
    )
    return Failure(
        kind=named.kind, key=subject.name, kernel="", comparison=comparison,
        message=value_words(subject.name, comparison, compared.detail, named.hints),
        fill=held_fill(subject.out, subject.ref, wrong, subject.dtype),
    )  # fmt: skip
