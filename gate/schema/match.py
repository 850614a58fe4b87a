"""Which op schemas cover which kernels."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from gate.errors import Problem, SchemaError, did_you_mean
from gate.schema.model import OpSchema
from gate.schema.paths import glob_match


class HasKernels(Protocol):
    """An index of kernels; `gate.change.kernels.KernelIndex` is one."""

    @property
    def kernels(self) -> Mapping[str, object]:
        """kernel id -> whatever is known of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """The ops that cover one kernel."""

    ops: tuple[str, ...]
    """Their names, sorted."""
    near: str
    """For none: the op that comes nearest and what it names; empty when nothing is near."""


def patterns(schema: OpSchema) -> tuple[str, ...]:
    """Return the kernel ids or globs of an op, defaults applied.

    Without `kernels`: the kernel of `entry[grid]`, else every kernel in the entry's file.
    """
    if schema.kernels:
        return schema.kernels
    target = schema.entry.target
    return (str(target),) if schema.entry.grid is not None else (f"{target.module}::*",)


def covered(schema: OpSchema, index: HasKernels) -> tuple[str, ...]:
    """Return the ids of the kernels that an op gates, sorted; perhaps none."""
    wanted = patterns(schema)
    return tuple(
        sorted(
            kernel
            for kernel in index.kernels
            if any(names_kernel(p, one) for p in wanted for one in ids_of(index, kernel))
        )
    )


def match(schemas: Sequence[OpSchema], index: HasKernels, kernel: str) -> Match:
    """Return the ops that cover a kernel, or the nearest miss."""
    ops = sorted(
        schema.op
        for schema in schemas
        if any(names_kernel(p, one) for p in patterns(schema) for one in ids_of(index, kernel))
    )
    return Match(ops=tuple(ops), near="" if ops else _nearest(schemas, kernel))


def ids_of(index: HasKernels, kernel: str) -> tuple[str, ...]:
    """Return a kernel's id and the ids under which it is reachable too (`fast = triton.jit(k)`)."""
    return (kernel, *getattr(index.kernels.get(kernel), "aliases", ()))


def names_kernel(pattern: str, kernel: str) -> bool:
    """Whether an id or glob of a schema names a kernel.

    A dotted module names the file of that module wherever its packages lie in the tree:
    `a.b::k` is `a/b.py::k`, `src/a/b.py::k`, `a/b/__init__.py::k`.
    """
    if pattern == kernel:
        return True
    module, _, name = pattern.partition("::")
    file, _, function = kernel.partition("::")
    if not name:
        return glob_match(file, module)
    if not glob_match(function, name):
        return False
    if module.endswith(".py") or "/" in module:
        return glob_match(file, module)
    path = module.replace(".", "/")
    return any(
        glob_match(file, form)
        for form in (f"{path}.py", f"**/{path}.py", f"{path}/__init__.py", f"**/{path}/__init__.py")
    )


def asks_for(pattern: str, kernel: str) -> bool:
    """Whether `--kernel` names a kernel: by its id or the path of its file, or without a folder by
    its file and function.

    >>> asks_for("*softmax*", "src/ops/softmax.py::fused_softmax_kernel")
    True
    >>> asks_for("src/ops/softmax.py", "src/ops/softmax.py::fused_softmax_kernel")
    True
    """
    pattern = pattern.removeprefix("./")
    if glob_match(kernel, pattern):
        return True
    file, _, function = kernel.partition("::")
    if "/" in pattern:
        return "::" not in pattern and glob_match(file, pattern)
    name = file.rpartition("/")[2]
    if "::" in pattern:
        return glob_match(f"{name}::{function}", pattern)
    return glob_match(function, pattern) or glob_match(name, pattern)


def check_kernels(schemas: Iterable[OpSchema], index: HasKernels) -> None:
    """Refuse schemas that gate nothing: an id or glob, written or by default, names no kernel.

    Raises
        SchemaError  with each such id and the nearest kernel
    """
    problems = []
    for schema in schemas:
        for position, pattern in enumerate(patterns(schema)):
            if not any(
                names_kernel(pattern, one) for k in index.kernels for one in ids_of(index, k)
            ):
                near = did_you_mean(pattern, index.kernels)
                what = f"{pattern!r} names no kernel of the tree{near}"
                path = f"$.kernels[{position}]"
                if not schema.kernels:
                    path = "$.kernels"
                    what = (
                        f"the default {pattern!r} names no kernel{near}; name those that it gates"
                    )
                problems.append(Problem(file=schema.file, line=schema.line, path=path, what=what))
    if problems:
        raise SchemaError(problems)


def _nearest(schemas: Sequence[OpSchema], kernel: str) -> str:
    """Say which op comes nearest to a kernel: the same file, else the most alike id."""
    file = kernel.partition("::")[0]
    written = {pattern: schema for schema in schemas for pattern in patterns(schema)}
    same = [p for p in written if names_kernel(f"{p.partition('::')[0]}::*", f"{file}::_")]
    close = same or difflib.get_close_matches(kernel, list(written), n=1, cutoff=0.5)
    if not close:
        return ""
    schema = written[close[0]]
    return f"{schema.op} in {schema.file} gates {close[0]}"
