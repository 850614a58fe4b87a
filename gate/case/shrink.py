"""Shrinking: the simplest case that still fails.

Simplicity, written once (`sort_key`), most important first:

1. fewer elements in all tensors: what a person can print and look at;
2. fewer args in an unusual layout, then plainer layouts;
3. no axes broadcast or left out, no list longer than it must be;
4. plainer fills (`normal` before `ramp` before needles before NaN);
5. options at the value that the schema lists first (or False, 0, None before others);
6. float32 before other dtypes, in the order of the schema otherwise;
7. smaller dims one by one, in the order of the schema;
8. the text, so that the order is total.

Named attempts come first: everything plain at once, smallest sizes, each arg and dtype plain, then
for each dim 0, 1, 2, 3, one past each tile, one short of it, half. Then each dim goes down by
halving steps until no single step is left. All of it is repeated until nothing helps. No case is
accepted that does not fail, none is run twice, and each is simpler than the one before.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from gate.case.axes import GROUP
from gate.case.bind import bind
from gate.case.candidates import (
    made_plain,
    named_sizes,
    simpler_choices,
    simpler_groups,
    smallest,
    with_arg,
    with_dim,
    with_dtype,
)
from gate.case.frame import Frame
from gate.case.model import Case
from gate.case.simplicity import case_key, dtype_rank, size_of
from gate.case.text import format_case
from gate.errors import CaseTextError
from gate.schema.model import OpSchema

Still = Callable[[Case], bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class ShrinkResult:
    """What shrinking came to."""

    case: Case
    """The simplest failing case that was found; the given one if nothing simpler failed."""
    runs: int
    """Cases that were run."""
    finished: bool
    """False when the number of runs or the deadline ended it."""


def sort_key(schema: OpSchema, case: Case) -> tuple[Any, ...]:
    """Return what orders cases from simple to complicated, as the module's text says.

    Raises
        CaseTextError  the case does not fit the schema
    """
    return case_key(Frame(schema), case)


def shrink(
    schema: OpSchema,
    case: Case,
    still_fails: Still,
    *,
    max_runs: int = 60,
    deadline: Callable[[], bool] = lambda: False,
    tiles: tuple[int, ...] = (),
) -> ShrinkResult:
    """Return the simplest case that still fails.

    still_fails  runs a case; only called on cases that fit the schema, never twice on one
    max_runs     calls of `still_fails` at most
    deadline     asked before each run; True ends shrinking
    tiles        tile sizes of the kernels: their edges are tried first

    Raises
        CaseTextError  the case does not fit the schema
    """
    search = _Search(Frame(schema), case, still_fails, max_runs, deadline)
    finished = True
    try:
        while search.sweep(tiles):
            pass
    except _OutOfBudget:
        finished = False
    return ShrinkResult(case=search.best, runs=search.runs, finished=finished)


class _OutOfBudget(Exception):
    """The number of runs or the deadline is reached."""


class _Search:
    """The best case so far, and what was tried."""

    def __init__(
        self, frame: Frame, case: Case, still_fails: Still, max_runs: int,
        deadline: Callable[[], bool],
    ) -> None:  # fmt: skip
        self.frame = frame
        self.best = case
        self.key = case_key(frame, case)
        self.still_fails = still_fails
        self.max_runs = max_runs
        self.deadline = deadline
        self.runs = 0
        self.tried = {format_case(case)}

    def accept(self, case: Case | None) -> bool:
        """Take a candidate if it is simpler, fits and fails."""
        if case is None:
            return False
        try:
            text = format_case(case)
            if text in self.tried:
                return False
            self.tried.add(text)
            bind(self.frame.schema, case, self.frame)
            key = case_key(self.frame, case)
        except (CaseTextError, ValueError):
            return False
        if key >= self.key:
            return False
        if self.runs >= self.max_runs or self.deadline():
            raise _OutOfBudget
        self.runs += 1
        if not self.still_fails(case):
            return False
        self.best, self.key = case, key
        return True

    def sweep(self, tiles: tuple[int, ...]) -> bool:
        """Try every kind of step once; return whether one helped."""
        before = self.key
        self.accept(made_plain(self.frame, self.best))
        self.accept(smallest(self.frame, self.best))
        self._args()
        self._dtypes()
        self.accept(replace(self.best, seed=0))
        self._sizes(tiles)
        return self.key < before

    def _args(self) -> None:
        for layouts, fills in ((True, False), (False, True)):
            self.accept(made_plain(self.frame, self.best, layouts=layouts, fills=fills, rest=False))
        for arg in self.frame.drawn_args:
            for choice in simpler_choices(self.frame, self.best, arg):
                self.accept(with_arg(self.best, arg.name, choice))

    def _dtypes(self) -> None:
        for name, dtypes in self.frame.schema.dtypes:
            for dtype in sorted(dtypes, key=lambda d: dtype_rank(dtypes, d)):
                self.accept(with_dtype(self.frame, self.best, name, dtype))

    def _sizes(self, tiles: tuple[int, ...]) -> None:
        dims = dict(self.best.dims)
        for name in sorted(dims, key=lambda n: size_of(dims[n])):
            if name == GROUP:
                self._group()
            else:
                self._dim(name, tiles)

    def _dim(self, name: str, tiles: tuple[int, ...]) -> None:
        value = size_of(self.best.dim(name))
        known = (*self.frame.dims[name].tile, *tiles)
        for wanted in named_sizes(value, known):
            if wanted >= size_of(self.best.dim(name)):
                break
            if self.accept(with_dim(self.frame, self.best, name, wanted)):
                break
        self._descend(name)

    def _descend(self, name: str) -> None:
        """Go down by halving steps: a step that fails is halved, one that holds is repeated."""
        step = max(size_of(self.best.dim(name)) // 2, 1)
        while step:
            wanted = size_of(self.best.dim(name)) - step
            if wanted < 0 or not self.accept(with_dim(self.frame, self.best, name, wanted)):
                step //= 2

    def _group(self) -> None:
        extents = self.best.dim(GROUP)
        assert isinstance(extents, tuple)
        for fewer in simpler_groups(extents):
            self.accept(with_dim(self.frame, self.best, GROUP, fewer))
