"""Kernels that a schema of the base gates and that the head has no more.

To delete a kernel with its schema is an ordinary change. To take the kernel from under a schema
that stays is not: the op would be gated by nothing, while its entry may still be there, computing
in another way.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from gate.change.changed import Changes
from gate.change.tree import Tree
from gate.schema.match import covered
from gate.schema.model import OpSchema


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ids:
    """An index that knows of its kernels only their names."""

    kernels: Mapping[str, object]
    """Kernel ids."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gone:
    """What became of the kernels that the head has no more."""

    kernels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Kernel id at the base -> ops that it leaves without any kernel, by name."""
    runnable: frozenset[str] = frozenset()
    """Those of the ops whose entry's file is still there."""
    notes: tuple[str, ...] = ()
    """What the report says of them, and of kernels that went in good order."""

    def of(self, op: str) -> tuple[str, ...]:
        """Return the kernels that an op lost; none for one that has any left."""
        return tuple(kernel for kernel, ops in self.kernels.items() if op in ops)


def find_gone(
    changes: Changes,
    rules: Mapping[str, OpSchema],
    base: Mapping[str, OpSchema],
    head: Mapping[str, OpSchema],
    tree: Tree,
) -> Gone:
    """Look what became of every kernel of the base that the head has no more under its id.

    rules  op -> the schema that decides
    base   op -> its schema at the base
    head   op -> its schema in the head
    tree   the files of the head

    An op whose schema is gone too, in either tree still gates a kernel, or that is ignored, loses
    nothing that would have to be judged.
    """
    lost: dict[str, list[str]] = {}
    runnable = set()
    notes = []
    old_ids = _Ids(kernels=dict.fromkeys((*changes.removed, *(old for old, _ in changes.moved))))
    for op, before in sorted(base.items()):
        kernels = covered(before, old_ids)
        if not kernels:
            continue
        removed = [kernel for kernel in kernels if kernel in changes.removed]
        after = head.get(op)
        if after is None or any(covered(s, changes.index) for s in (rules[op], after)):
            notes += [f"{kernel} is gone; op {op} gated it" for kernel in removed]
            continue
        there = _entry_is_there(rules[op], changes, tree)
        runnable |= {op} if there else set()
        for kernel in kernels:
            lost.setdefault(kernel, []).append(op)
        notes.append(_mend(op, kernels, after.file, there))
    return Gone(
        kernels={kernel: tuple(ops) for kernel, ops in sorted(lost.items())},
        runnable=frozenset(runnable), notes=tuple(notes),
    )  # fmt: skip


def _entry_is_there(schema: OpSchema, changes: Changes, tree: Tree) -> bool:
    target = schema.entry.target
    path = target.module if target.is_path else changes.index.file_of_module(target.module)
    return bool(path) and tree.read(path) is not None


def _mend(op: str, kernels: Iterable[str], schema: str, there: bool) -> str:
    """Return why an op without kernels does not pass, and the two ways out."""
    what = "its entry is run as it is now" if there else "the file of its entry is no regular file"
    return (
        f"op {op} gates no kernel any more: {', '.join(kernels)} is gone, and {schema} stays; "
        f"{what}. Name in the schema the kernels that took its place, or delete the schema in the "
        "same change: that is listed first, as a relaxation"
    )
