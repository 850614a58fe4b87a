"""What the judge asks of a reference, and the answers held for one case.

The judge never evaluates a reference: it asks an `Oracle`, which runs it in another process, and
asks as little as decides. `References` remembers what was asked and turns a failure of the less
important questions (torch in the working dtype, perturbed inputs) into "no answer".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np

from gate.dtypes import Array
from gate.errors import did_you_mean
from gate.run.protocol import ErrorFact, Mode
from gate.schema.model import Io, OpSchema, Return, TensorArg

Values = tuple[Any, ...]
"""One a judged value: an ndarray, a list of ndarrays, or None."""


class ReferenceFault(Exception):
    """The reference raised, or did not answer.

    error  what its process saw
    """

    def __init__(self, error: ErrorFact) -> None:
        super().__init__(error)

    @property
    def error(self) -> ErrorFact:
        """What its process saw."""
        fact = self.args[0]
        assert isinstance(fact, ErrorFact)
        return fact

    def __str__(self) -> str:
        where = f" ({self.error.file}:{self.error.line})" if self.error.file else ""
        return f"{self.error.type}: {self.error.message}{where}"


class Oracle(Protocol):
    """The reference of one case, in every arithmetic."""

    def values(
        self,
        mode: Mode,
        roundoff: float = 0.0,
        inputs: Mapping[str, Any] | None = None,
        given: Mapping[str, Any] | None = None,
    ) -> Values:
        """Return one value for each judged name (`judged_names`), in that order.

        roundoff  u of `Mode.SPREAD`: each input element is multiplied by 1 + u or 1 - u; of
                  `Mode.INTEGERS`: what integers become as floats
        inputs    all inputs by arg name, in place of the case's own
        given     the kernel's own values of `given` returns

        Raises
            ReferenceFault  the reference raised or did not answer
        """
        ...


def judged(schema: OpSchema) -> tuple[Return | TensorArg, ...]:
    """Return what the reference gives a value for: returns but `is:` ones, then changed args."""
    returns: list[Return | TensorArg] = [ret for ret in schema.returns if not ret.is_arg]
    changed = [
        arg for arg in schema.args if isinstance(arg, TensorArg) and arg.io in (Io.INOUT, Io.OUT)
    ]
    return (*returns, *changed)


def judged_names(schema: OpSchema) -> tuple[str, ...]:
    """Return the names of the reference's values, in the order that an `Oracle` gives them."""
    return tuple(item.name for item in judged(schema))


def by_name(schema: OpSchema, names: tuple[str, ...], values: Values) -> Values:
    """Return the values of a reference that answered with a dict, in the schema's order.

    names  the dict's keys, in the order of `values`

    A return that may be None (`when`) may be left out.

    Raises
        ReferenceFault  a name is missing, or is none that the schema declares
    """
    items = judged(schema)
    held = dict(zip(names, values, strict=True))
    wanted = [item.name for item in items]
    unknown = [name for name in names if name not in wanted]
    missing = [
        item.name
        for item in items
        if item.name not in held
        and not (isinstance(item, Return) and (item.never or item.when is not None))
    ]
    if not unknown and not missing:
        return tuple(held.get(name) for name in wanted)
    told = [f"`{name}` is missing" for name in missing]
    told += [f"`{name}` is none of them{did_you_mean(name, wanted)}" for name in unknown]
    words = (
        f"its dict must have one entry for each of {', '.join(wanted)}; {'; '.join(told)}: "
        "rename the keys of the reference, or the returns of the schema"
    )
    raise ReferenceFault(
        ErrorFact(type="wrong names", message=words, file=schema.file, line=schema.line)
    )


class References:
    """The answers of one oracle on one case, each asked at most once."""

    def __init__(
        self, oracle: Oracle, given: Mapping[str, Any] | None = None, *, integers: bool = True
    ) -> None:
        """Hold an oracle; integers: whether integer tensors go in."""
        self._oracle = oracle
        self._integers = integers
        self._given = dict(given or {})
        self._held: dict[tuple[Mode, float], Values | None] = {}

    def truth(self) -> Values:
        """Return the float64 values.

        Raises
            ReferenceFault  there is no truth to judge by
        """
        key = (Mode.FLOAT64, 0.0)
        if key not in self._held:
            self._held[key] = self._oracle.values(Mode.FLOAT64, given=self._given or None)
        held = self._held[key]
        assert held is not None
        return held

    def ask(self, mode: Mode, roundoff: float = 0.0) -> Values | None:
        """Return the values in another arithmetic, or None where the reference has none there."""
        if mode is Mode.INTEGERS and not self._integers:
            return None
        key = (mode, roundoff)
        if key not in self._held:
            try:
                held = self._oracle.values(mode, roundoff, given=self._given or None)
            except ReferenceFault:
                held = None
            self._held[key] = held
        return self._held[key]

    def replaced(self, inputs: Mapping[str, Any], mode: Mode = Mode.FLOAT64) -> Values | None:
        """Return the values for other inputs, or None where the reference fails there."""
        try:
            return self._oracle.values(mode, inputs=inputs, given=self._given or None)
        except ReferenceFault:
            return None

    def witness(self, index: int, item: int | None) -> Witness:
        """Return the answers for one tensor: value `index`, perhaps `item` of its list."""
        return Witness(self, index, item)


class Witness:
    """What the reference says of one output tensor in other arithmetics, asked on demand."""

    def __init__(self, references: References, index: int, item: int | None) -> None:
        self._references = references
        self._index = index
        self._item = item

    def native(self) -> Array | None:
        """Return the values that torch gives in the inputs' own dtypes."""
        return self._one(self._references.ask(Mode.NATIVE))

    def float32(self) -> Array | None:
        """Return the values of the reference in float32, not rounded further."""
        return self._one(self._references.ask(Mode.FLOAT32))

    def spread(self, roundoff: float) -> Array | None:
        """Return s for u = roundoff, element by element; NaN stays NaN."""
        return self._one(self._references.ask(Mode.SPREAD, roundoff))

    def integers(self, roundoff: float) -> Array | None:
        """Return how far the truth moves when what integers become is moved by u = roundoff."""
        return self._one(self._references.ask(Mode.INTEGERS, roundoff))

    def _one(self, values: Values | None) -> Array | None:
        if values is None or self._index >= len(values):
            return None
        return pick(values[self._index], self._item)


def pick(value: Any, item: int | None) -> Array | None:
    """Return the array itself, or item `item` of a list of arrays; None where there is none."""
    if item is not None:
        if not isinstance(value, (list, tuple)) or item >= len(value):
            return None
        value = value[item]
    if value is None or isinstance(value, (list, tuple)):
        return None
    return np.asarray(value)
