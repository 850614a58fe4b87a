"""What a change takes from the gate through `.kernel-gate.yml`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from gate.schema.config import GateConfig

_UNMATCHED = ("fail", "warn", "ignore")


def config_relaxations(base: GateConfig, head: GateConfig) -> tuple[str, ...]:
    """Return a sentence for each way in which the head's configuration demands less."""
    return tuple(f"configuration: {text}" for text in _found(base, head))


def _found(old: GateConfig, new: GateConfig) -> Iterator[str]:
    gone = [glob for glob in old.schemas if glob not in new.schemas]
    if gone:
        yield f"schemas are no longer read from {', '.join(gone)}"
    for kernel, why in new.ignore:
        if kernel not in dict(old.ignore):
            yield f"{kernel} is ignored: {why}"
    was, now = set(old.fail_on or ("defect",)), set(new.fail_on or ("defect",))
    if was - now:
        yield f"fail-on drops {', '.join(sorted(was - now))}"
    if "never" in now - was:
        yield "fail-on is never: nothing blocks"
    before, after = old.unmatched or "warn", new.unmatched or "warn"
    if _UNMATCHED.index(after) > _UNMATCHED.index(before):
        yield f"unmatched goes from {before} to {after}"
    yield from _budget(old, new)
    if new.device == "interpreter" and old.device != "interpreter":
        yield f"device goes from {old.device or 'auto'} to interpreter"
    paths = [glob for glob in old.protected_paths if glob not in new.protected_paths]
    if paths:
        yield f"protected-paths drops {', '.join(paths)}"


def _budget(old: GateConfig, new: GateConfig) -> Iterator[str]:
    if _less(old.cases, new.cases):
        yield f"cases an op go from {_count(old.cases)} to {new.cases}"
    if _less(old.seconds, new.seconds):
        yield f"the budget goes from {_count(old.seconds)} to {new.seconds:g} seconds"
    yield from _per_op(old.op_cases, new.op_cases)


def _per_op(old: Mapping[str, int], new: Mapping[str, int]) -> Iterator[str]:
    for op in sorted({*old, *new}):
        was, now = old.get(op), new.get(op)
        if was is not None and now is None:
            yield f"op {op} loses its {was} cases"
        elif _less(was, now):
            yield f"cases of op {op} go from {_count(was)} to {now}"


def _less(was: float | None, now: float | None) -> bool:
    """Whether a figure falls; a figure where there was none counts as a fall."""
    return now is not None and (was is None or now < was)


def _count(value: float | None) -> str:
    return "the default" if value is None else f"{value:g}"
