"""What an op schema must satisfy beyond its form: names, cycles, and keys that must agree."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from gate.dtypes import DTYPES
from gate.errors import did_you_mean
from gate.schema.expr import Call, DtypeName, EvalError, Expr, evaluate
from gate.schema.model import (
    CompareKind,
    DimKind,
    Domain,
    Io,
    OpSchema,
    ScalarArg,
    TensorArg,
    Values,
)
from gate.schema.names import reserved
from gate.schema.reader import Reader


def check(
    reader: Reader, schema: OpSchema, declared: frozenset[str] = frozenset(), *, whole: bool = True
) -> None:
    """Note everything about a schema that cannot be right.

    declared  names that the document declares, those of parts that could not be read included
    whole     whether everything could be read: only then can a name be said to be unused
    """
    checker = _Checker(reader, schema, declared)
    checker.names()
    checker.expressions()
    checker.dims()
    checker.args()
    checker.returns()
    checker.lists()
    checker.assignments()
    if whole:
        checker.unused()


@dataclass(slots=True)
class _Checker:
    reader: Reader
    schema: OpSchema
    declared: frozenset[str] = frozenset()
    used: set[str] = field(default_factory=set)

    def bad(self, line: int, path: str, what: str) -> None:
        self.reader.bad(line or self.schema.line, path, what)

    # --- names ----------------------------------------------------------------------------------

    @property
    def variables(self) -> dict[str, str]:
        """name -> its path, for dims, dtype variables and args."""
        schema = self.schema
        found = {dim.name: f"$.dims.{dim.name}" for dim in schema.dims}
        found |= {name: f"$.dtypes.{name}" for name, _ in schema.dtypes}
        return found | {arg.name: f"$.args.{arg.name}" for arg in schema.args}

    def names(self) -> None:
        schema = self.schema
        rows = [(d.name, d.line, f"$.dims.{d.name}") for d in schema.dims]
        rows += [(n, 0, f"$.dtypes.{n}") for n, _ in schema.dtypes]
        rows += [(a.name, a.line, f"$.args.{a.name}") for a in schema.args]
        rows += [(r.name, r.line, f"$.returns.{r.name}") for r in schema.returns]
        seen: dict[str, str] = {}
        for name, line, path in rows:
            why = reserved(name)
            if why:
                self.bad(line, path, f"{why}; choose another name")
            if name in seen:
                self.bad(line, path, f"{name} is {seen[name]} already; choose another name")
            seen.setdefault(name, path)

    def expressions(self) -> None:
        """Note every variable that is not declared; remember those that are used."""
        known = set(self.variables) | self.declared
        returns = {ret.name for ret in self.schema.returns}
        for expr, path, more in self._places():
            allowed = known | (returns if more else set())
            for name in sorted(expr.names - allowed):
                near = did_you_mean(name, allowed)
                self.bad(expr.line, path, f"no variable {name}{near}")
            self.used |= expr.names
        self._grid_names(known)

    def _grid_names(self, known: set[str]) -> None:
        """A grid may name constexprs of the kernel; arguments may not."""
        call = self.schema.entry
        parts = [*(call.args or ()), *(expr for _, expr in call.kwargs)]
        for expr in parts:
            for name in sorted(expr.names - known):
                near = did_you_mean(name, known)
                self.bad(call.line, "$.entry", f"no variable {name}{near}")
            self.used |= expr.names
        if call.grid is not None:
            self.used |= call.grid.names
        if call.args is None and not call.kwargs:
            self.used |= {arg.name for arg in self.schema.args}

    def _places(self) -> Iterator[tuple[Expr | Call, str, bool]]:
        """Yield every expression with its path, and whether it may name returns."""
        schema = self.schema
        if schema.reference is not None:
            given = any(ret.given for ret in schema.returns)
            yield schema.reference, "$.reference", given
            if isinstance(schema.reference, Call) and schema.reference.args is None:
                self.used |= {arg.name for arg in schema.args}
        for dim in schema.dims:
            ends = [dim.range.lo, dim.range.hi] if dim.range else []
            for expr in (*ends, dim.derived, dim.multiple_of):
                if expr is not None:
                    yield expr, f"$.dims.{dim.name}", False
        for arg in schema.args:
            yield from ((expr, path, False) for expr, path in _arg_places(arg))
        for ret in schema.returns:
            path = f"$.returns.{ret.name}"
            axis = ret.compare and (ret.compare.axis or ret.compare.mean)
            extra = [expr for _, expr in ret.live.lengths] if ret.live else []
            for maybe in (*(ret.shape or ()), ret.dtype, ret.when, axis, *extra):
                if maybe is not None:
                    yield maybe, path, False
        yield from ((expr, "$.where", False) for expr in schema.where)
        yield from ((e, f"$.raises.{n}", False) for n, some in schema.raises for e in some)
        yield from ((expr, "$.properties", True) for expr in schema.properties)
        if schema.grad is not None and schema.grad.clobbers is not None:
            yield schema.grad.clobbers, "$.grad.clobbers", False

    # --- dims -----------------------------------------------------------------------------------

    def dims(self) -> None:
        needs: dict[str, set[str]] = {}
        for dim in self.schema.dims:
            ends = [dim.range.lo, dim.range.hi] if dim.range else []
            exprs = [e for e in (*ends, dim.derived, dim.multiple_of) if e is not None]
            needs[dim.name] = set().union(*(expr.names for expr in exprs)) if exprs else set()
            if dim.kind is DimKind.RANGE and dim.range is not None:
                self._ends(dim.name, dim.line, dim.range.lo, dim.range.hi)
        for name in needs:
            cycle = _cycle(name, needs)
            if cycle and min(cycle) == name:
                words = " -> ".join([*cycle, cycle[0]])
                self.bad(self._dim_line(name), f"$.dims.{name}", f"depends on itself: {words}")

    def _dim_line(self, name: str) -> int:
        return next(dim.line for dim in self.schema.dims if dim.name == name)

    def _ends(self, name: str, line: int, lo: Expr, hi: Expr) -> None:
        if lo.names or hi.names:
            return
        path = f"$.dims.{name}"
        try:
            low, high = evaluate(lo, {}), evaluate(hi, {})
        except EvalError as problem:
            self.bad(line, path, problem.message)
            return
        if not all(isinstance(v, int) and not isinstance(v, bool) for v in (low, high)):
            self.bad(line, path, f"{lo.text}..{hi.text}: an extent is a whole number")
        elif low < 0:
            self.bad(line, path, f"{low}..{high}: an extent is at least 0")
        elif low > high:
            self.bad(line, path, f"{low}..{high} is empty; write {high}..{low}")

    # --- args and returns -----------------------------------------------------------------------

    def args(self) -> None:
        dims = {dim.name for dim in self.schema.dims}
        before: set[str] = set()
        for arg in self.schema.args:
            path = f"$.args.{arg.name}"
            if isinstance(arg, TensorArg):
                self._tensor(arg, path, dims)
            self._order(arg, path, before)
            before.add(arg.name)

    def _order(self, arg: Any, path: str, before: set[str]) -> None:
        """`make` and elementwise bounds see earlier args only."""
        args = {other.name for other in self.schema.args}
        for expr, where in _later_places(arg):
            for name in sorted((expr.names & args) - before - _scalars(self.schema)):
                self.bad(
                    expr.line or arg.line, where, f"{name} comes later; move it before {arg.name}"
                )

    def _tensor(self, arg: TensorArg, path: str, dims: set[str]) -> None:
        if arg.group and self.schema.group is None:
            self.bad(
                arg.line, f"{path}.tensor", '`...` needs a dim group: dims: {"...": {rank: 0..3}}'
            )
        if not arg.dtype.names:
            self._dtype(arg.dtype, arg.line, f"{path}.dtype")
        if isinstance(arg.broadcast, tuple):
            self._known_axes(arg.broadcast, arg, f"{path}.broadcast")
        if arg.vary:
            for name in arg.vary:
                if name not in dims:
                    near = did_you_mean(name, dims)
                    self.bad(arg.line, f"{path}.vary", f"{name} is not a dim{near}")
        if arg.io in (Io.OUT, Io.SCRATCH) and arg.values != Values():
            words = f"`io: {arg.io.value}` is poisoned before the call; it has no values"
            self.bad(arg.line, f"{path}.values", words)
        if arg.values.distinct:
            self._known_axes((arg.values.distinct,), arg, f"{path}.values.distinct")
        if arg.live is not None and arg.live.lengths:
            self._known_axes(tuple(n for n, _ in arg.live.lengths), arg, f"{path}.live")

    def _known_axes(self, names: Iterable[str], arg: TensorArg, path: str) -> None:
        axes = {expr.text for expr in arg.shape or ()}
        for name in names:
            if name not in axes:
                near = did_you_mean(name, axes)
                self.bad(arg.line, path, f"{name} is not an axis of {arg.name}{near}")

    def _dtype(self, expr: Expr, line: int, path: str) -> None:
        known = [*DTYPES, *(name for name, _ in self.schema.dtypes)]
        try:
            value = evaluate(expr, {})
        except EvalError as problem:
            self.bad(line, path, problem.message)
            return
        if not isinstance(value, DtypeName):
            self.bad(line, path, f"{expr.text} is not a dtype{did_you_mean(expr.text, known)}")

    def returns(self) -> None:
        args = {arg.name: arg for arg in self.schema.args}
        for ret in self.schema.returns:
            path = f"$.returns.{ret.name}"
            if ret.is_arg:
                self._is(ret.is_arg, args, ret.line, f"{path}.is")
            if ret.group and self.schema.group is None:
                self.bad(ret.line, f"{path}.tensor", "`...` needs a dim group")
            compare = ret.compare
            if compare is not None and compare.kind is CompareKind.PICKS:
                if not isinstance(args.get(compare.picks), TensorArg):
                    tensors = [n for n, a in args.items() if isinstance(a, TensorArg)]
                    near = did_you_mean(compare.picks, tensors)
                    self.bad(ret.line, f"{path}.compare.picks", f"no tensor {compare.picks}{near}")
                self.used.add(compare.picks)
        entry = self.schema.entry
        if entry.grid is not None and self.schema.returns:
            words = "a raw kernel returns nothing; say `io: out` or `inout` on its args"
            self.bad(self.schema.returns[0].line, "$.returns", words)
        if self.schema.reference is None and not self.schema.properties:
            self.bad(0, "$.reference", "the key is missing (only `properties` can stand in for it)")

    def _is(self, name: str, args: dict[str, Any], line: int, path: str) -> None:
        arg = args.get(name)
        if not isinstance(arg, TensorArg):
            self.bad(line, path, f"no tensor {name}{did_you_mean(name, args)}")
        elif arg.io not in (Io.INOUT, Io.OUT):
            self.bad(line, path, f"{name} is io: {arg.io.value}; make it out or inout")

    def lists(self) -> None:
        """Names in grad, nondeterministic and independent."""
        schema = self.schema
        tensors = [arg.name for arg in schema.args if isinstance(arg, TensorArg)]
        returns = [ret.name for ret in schema.returns]
        dims = [dim.name for dim in schema.dims]
        if schema.grad is not None:
            self._among(schema.grad.args, tensors, "$.grad", "a tensor arg")
            self._among(schema.grad.returns or (), returns, "$.grad.returns", "a return")
        if isinstance(schema.nondeterministic, tuple):
            known = [*returns, *tensors]
            self._among(schema.nondeterministic, known, "$.nondeterministic", "a return or an arg")
        self._among(schema.independent, dims, "$.independent", "a dim")

    def _among(self, names: Iterable[str], known: list[str], path: str, what: str) -> None:
        for name in names:
            if name not in known:
                self.bad(0, path, f"{name} is not {what}{did_you_mean(name, known)}")

    # --- assignments and use --------------------------------------------------------------------

    def assignments(self) -> None:
        rows = [("$.benchmark", self.schema.benchmark)]
        rows += [
            (f"$.cases[{i}]", case)
            for i, case in enumerate(self.schema.cases)
            if not isinstance(case, str)
        ]
        derived = {d.name for d in self.schema.dims if d.kind in (DimKind.DERIVED, DimKind.FIXED)}
        made = {arg.name for arg in self.schema.args if arg.make is not None}
        known = set(self.variables) | self.declared
        for path, assignment in rows:
            for name, _ in assignment:
                if name not in known:
                    self.bad(0, f"{path}.{name}", f"no variable {name}{did_you_mean(name, known)}")
                elif name in derived | made:
                    self.bad(0, f"{path}.{name}", f"{name} follows from others; leave it out")

    def unused(self) -> None:
        """A name that nothing uses is an error: it is a mistyped one, or a leftover."""
        schema = self.schema
        live = [*(a.live for a in schema.args if isinstance(a, TensorArg)),
                *(r.live for r in schema.returns)]  # fmt: skip
        self.used |= {name for held in live if held for name, _ in held.lengths}
        for arg in schema.args:
            if isinstance(arg, TensorArg):
                self.used |= set(arg.vary)
        self.used |= {ret.is_arg for ret in schema.returns if ret.is_arg}
        for name, path in self.variables.items():
            if name not in self.used:
                line = next((d.line for d in schema.dims if d.name == name), 0)
                line = line or next((a.line for a in schema.args if a.name == name), 0)
                self.bad(line, path, "is used nowhere")


def _arg_places(arg: TensorArg | ScalarArg) -> Iterator[tuple[Expr | Call, str]]:
    path = f"$.args.{arg.name}"
    if isinstance(arg, TensorArg):
        yield from ((expr, f"{path}.tensor") for expr in arg.shape or ())
        yield arg.dtype, f"{path}.dtype"
        if arg.live is not None:
            yield from ((expr, f"{path}.live.{name}") for name, expr in arg.live.lengths)
    yield from _later_places(arg)


def _later_places(arg: TensorArg | ScalarArg) -> Iterator[tuple[Expr | Call, str]]:
    """Expressions of an arg that may see earlier args."""
    path = f"$.args.{arg.name}"
    values = arg.values
    for ends in (values.range, values.each):
        if ends is not None:
            yield ends.lo, f"{path}.values"
            yield ends.hi, f"{path}.values"
    if values.domain is Domain.OFFSETS and values.offsets is not None:
        yield values.offsets, f"{path}.values.offsets"
    if arg.make is not None:
        yield arg.make, f"{path}.make"


def _scalars(schema: OpSchema) -> set[str]:
    """Scalars are drawn before tensors, wherever they stand."""
    return {a.name for a in schema.args if isinstance(a, ScalarArg) and a.make is None}


def _cycle(start: str, needs: dict[str, set[str]]) -> list[str]:
    """Return a path of dims from `start` back to itself, or nothing."""
    stack = [(start, [start])]
    seen = set()
    while stack:
        name, path = stack.pop()
        for other in sorted(needs.get(name, ())):
            if other == start:
                return path
            if other in needs and other not in seen:
                seen.add(other)
                stack.append((other, [*path, other]))
    return []
