"""Which kernels a change touches, and by which of their parts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from gate.change.closure import Part, Role
from gate.change.git import ChangedFile
from gate.change.kernels import Kernel, KernelIndex, scan
from gate.change.model import ChangeReason
from gate.change.normal import normal_form
from gate.change.project import Key, ParseCache
from gate.change.tree import BaseTree, Tree


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedKernel:
    """A kernel of the head that is not what it was at the base."""

    id: str
    """Kernel id in the head."""
    file: str
    """Its file, from the root."""
    line: int
    """1-based line of its `def`."""
    reasons: tuple[ChangeReason, ...]
    """Which of its parts changed: the kernel first, then helpers, constants, launchers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """What a change does to the kernels of a tree."""

    kernels: tuple[ChangedKernel, ...]
    """The changed kernels, by id."""
    removed: tuple[str, ...] = ()
    """Ids of kernels that the base has and the head has not."""
    moved: tuple[tuple[str, str], ...] = ()
    """Ids at the base and in the head of kernels that have another one now."""
    problems: tuple[str, ...] = ()
    """Files that could not be read: `path:line: why`."""
    index: KernelIndex
    """Every kernel of the head."""


def changed_kernels(base: Tree, head: Tree, files: Sequence[ChangedFile]) -> Changes:
    """Compare the kernels of two trees.

    files  every difference between the trees (`Repo.changed_files`); what it does not name is
           taken to be equal and is not read from `base`

    A kernel is changed when the normal form of any of its parts is, when it gains or loses a part,
    or when a name in one means another thing outside the tree. One whose file cannot be parsed any
    more counts as changed and keeps what the base knows of it, so that it cannot slip through.

    Raises
        GitError  a tree cannot be read
    """
    cache = ParseCache()
    after = scan(head, cache)
    if not any(_is_python(file) for file in files):
        return Changes(kernels=(), problems=after.problems, index=after)
    before = scan(BaseTree(base, after.graph.project.sources, files), cache)
    comparison = _Comparison(before, after, files)
    index = comparison.head_index()
    changed = tuple(comparison.changed())
    return Changes(
        kernels=tuple(sorted(changed, key=lambda kernel: kernel.id)),
        removed=comparison.removed(),
        moved=comparison.moved(),
        problems=index.problems,
        index=index,
    )


def all_kernels(head: Tree) -> Changes:
    """Return every kernel of a tree, each for the reason that it was asked for (`named`).

    Raises
        GitError  the tree cannot be read
    """
    index = scan(head)
    kernels = tuple(_changed(kernel, [_asked_for(kernel)]) for kernel in index.kernels.values())
    return Changes(kernels=kernels, problems=index.problems, index=index)


class _Comparison:
    """The kernels of two indexes, side by side."""

    def __init__(
        self, before: KernelIndex, after: KernelIndex, files: Sequence[ChangedFile]
    ) -> None:
        self._before = before
        self._after = after
        self._new_path = {file.old_path: file.path for file in files if file.old_path}
        self._forms: dict[tuple[bool, Key], str] = {}
        self._kept = {kernel.id: kernel for kernel in self._of_unreadable_files()}
        self._origin = self._origins()

    def head_index(self) -> KernelIndex:
        """Return the head's kernels, and the base's of files that cannot be parsed any more."""
        return self._after.with_kernels(self._kept) if self._kept else self._after

    def changed(self) -> Iterator[ChangedKernel]:
        """Yield the changed kernels of the head."""
        for kernel in self._after.kernels.values():
            reasons = self._reasons(kernel)
            if reasons:
                yield _changed(kernel, reasons)
        for kernel in self._kept.values():
            why = f"{kernel.name}: its file cannot be parsed any more"
            yield _changed(kernel, [ChangeReason(what="kernel", name=why, file=kernel.file)])

    def removed(self) -> tuple[str, ...]:
        """Return the kernels of the base that are gone, moved ones left out."""
        there = {*self._after.kernels, *self._origin.values()}
        return tuple(
            kernel.id
            for kernel in self._before.kernels.values()
            if kernel.id not in there and self._moved_id(kernel) not in self._kept
        )

    def moved(self) -> tuple[tuple[str, str], ...]:
        """Return the ids, old and new, of the kernels that have another one than at the base."""
        pairs = ((old, new) for new, old in self._origin.items() if new != old)
        return tuple(sorted(pairs))

    def _of_unreadable_files(self) -> Iterator[Kernel]:
        project = self._after.graph.project
        for kernel in self._before.kernels.values():
            file = self._moved(kernel.file)
            if project.facts(file) is None and file in project.unreadable:
                why = project.unreadable[file].why
                yield replace(kernel, id=self._moved_id(kernel), file=file, unreadable=why)

    def _origins(self) -> dict[str, str]:
        """Head kernel id -> its id at the base: the same, in a renamed file, or moved by hand."""
        moved = {self._moved_id(kernel): kernel.id for kernel in self._before.kernels.values()}
        found = {id: moved[id] for id in self._after.kernels if id in moved}
        lost = [k for k in self._before.kernels.values() if k.id not in set(found.values())]
        for id, kernel in self._after.kernels.items():
            if id not in found and lost:
                twins = [old for old in lost if self._is_twin(old, kernel)]
                if len(twins) == 1:
                    found[id] = twins[0].id
                    lost.remove(twins[0])
        return found

    def _is_twin(self, old: Kernel, new: Kernel) -> bool:
        if old.name != new.name:
            return False
        return self._form(old.parts[0].key, head=False) == self._form(new.parts[0].key, head=True)

    def _reasons(self, kernel: Kernel) -> list[ChangeReason]:
        if kernel.id not in self._origin:
            return [_reason_kernel(kernel)]
        old = self._before.kernels[self._origin[kernel.id]]
        before = {self._moved_key(part.key): part for part in old.parts}
        before[kernel.parts[0].key] = old.parts[0]
        if kernel.file != self._moved(old.file):
            before.pop(self._moved_key(old.parts[0].key), None)
        after = {part.key: part for part in kernel.parts}
        differ = [
            after.get(key) or replace(before[key], key=key)
            for key in {**after, **before}
            if not self._same(before.get(key), after.get(key))
        ]
        reasons = [_reason(part) for part in sorted(differ, key=_rank)]
        if old.file != kernel.file:
            why = f"moved from {old.file}"
            reasons.insert(0, ChangeReason(what="kernel", name=why, file=kernel.file))
        return list(dict.fromkeys(reasons))

    def _same(self, before: Part | None, after: Part | None) -> bool:
        if before is None or after is None:
            return False
        one, two = self._before.graph, self._after.graph
        shared = one.project.definition(before.key) is two.project.definition(after.key)
        if not shared and self._form(before.key, head=False) != self._form(after.key, head=True):
            return False
        return one.externals(before.key) == two.externals(after.key)

    def _form(self, key: Key, *, head: bool) -> str:
        if (head, key) not in self._forms:
            graph = self._after.graph if head else self._before.graph
            self._forms[head, key] = normal_form(graph.project.definition(key).nodes)
        return self._forms[head, key]

    def _moved(self, path: str) -> str:
        return self._new_path.get(path, path)

    def _moved_key(self, key: Key) -> Key:
        return Key(self._moved(key.path), key.name)

    def _moved_id(self, kernel: Kernel) -> str:
        return f"{self._moved(kernel.file)}::{kernel.name}"


def _is_python(file: ChangedFile) -> bool:
    return file.path.endswith(".py") or file.old_path.endswith(".py")


def _changed(kernel: Kernel, reasons: list[ChangeReason]) -> ChangedKernel:
    return ChangedKernel(id=kernel.id, file=kernel.file, line=kernel.line, reasons=tuple(reasons))


def _reason_kernel(kernel: Kernel) -> ChangeReason:
    return ChangeReason(what=Role.KERNEL.value, name=kernel.name, file=kernel.file)


def _asked_for(kernel: Kernel) -> ChangeReason:
    return ChangeReason(what="named", name=kernel.name, file=kernel.file)


def _reason(part: Part) -> ChangeReason:
    return ChangeReason(what=part.role.value, name=part.key.plain, file=part.key.path)


def _rank(part: Part) -> tuple[int, str, str]:
    return list(Role).index(part.role), part.key.path, part.key.name
