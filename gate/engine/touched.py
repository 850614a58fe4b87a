"""Which ops a change touches beside their kernels: by their schema, their reference, or a package
that reaches into their entry."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gate.change.effects import changed_packages, packages_of
from gate.change.git import ChangedFile
from gate.change.kernels import KernelIndex
from gate.change.model import ChangeReason
from gate.change.references import Functions
from gate.change.tree import Tree
from gate.schema.expr import Target
from gate.schema.model import OpSchema


def touched_ops(
    rules: Mapping[str, OpSchema],
    head_schemas: Mapping[str, OpSchema],
    base_schemas: Mapping[str, OpSchema],
    index: KernelIndex,
    files: Sequence[ChangedFile],
    trees: tuple[Tree | None, Tree],
) -> dict[str, ChangeReason]:
    """Return op -> why its kernels count as changed whatever became of themselves.

    rules  the schema that decides for each op
    index  every kernel of the head
    files  every difference between the trees
    trees  the base, if there is one, and the head

    Raises
        GitError  a tree cannot be read
    """
    base, head = trees
    schemas = _touched_rules(rules, files, head_schemas, base_schemas)
    if base is None:
        return schemas
    functions = Functions(index.graph, base, files)
    references = _touched_references(rules, files, functions)
    return {**_patched(rules, index, files, base, head), **schemas, **references}


def _touched_rules(
    rules: Mapping[str, OpSchema],
    files: Sequence[ChangedFile],
    head: Mapping[str, OpSchema],
    base: Mapping[str, OpSchema],
) -> dict[str, ChangeReason]:
    """Ops whose schema the change touches, and how to say it."""
    touched: dict[str, ChangeReason] = {}
    for op, schema in rules.items():
        before, after = base.get(op), head.get(op)
        if (before.digest if before else "") != (after.digest if after else "") and files:
            touched[op] = ChangeReason(what="schema", name=op, file=schema.file)
    return touched


def _touched_references(
    rules: Mapping[str, OpSchema], files: Sequence[ChangedFile], functions: Functions
) -> dict[str, ChangeReason]:
    """Ops of which the change touches the reference, or what makes an arg. A file may hold a
    kernel beside it: that the file changed says nothing."""
    changed = {file.path for file in files} | {f.old_path for f in files if f.old_path}
    return {
        op: ChangeReason(what="reference", name=op, file=target.module)
        for op, schema in rules.items()
        for target in _reference_targets(schema)
        if target.module in changed and functions.changed(target.module, target.name)
    }


def _patched(
    rules: Mapping[str, OpSchema],
    index: KernelIndex,
    files: Sequence[ChangedFile],
    base: Tree,
    head: Tree,
) -> dict[str, ChangeReason]:
    """Ops whose entry lies in a package that does other things on import than at the base."""
    packages = changed_packages((file.path for file in files), base, head)
    patched: dict[str, ChangeReason] = {}
    for op, schema in rules.items() if packages else ():
        target = schema.entry.target
        path = target.module if target.is_path else index.file_of_module(target.module)
        for package in packages.intersection(packages_of(path)):
            name = package.rpartition("/")[0].replace("/", ".")
            patched[op] = ChangeReason(what="package", name=name, file=package)
    return patched


def _reference_targets(schema: OpSchema) -> list[Target]:
    calls = [schema.reference, *(arg.make for arg in schema.args)]
    targets = [getattr(call, "target", None) for call in calls]
    return [target for target in targets if target is not None and target.is_path]
