"""What a run is about: the changed kernels, the ops that cover them, and whose word is trusted.

Schemas, references and configuration come from the base; what is new in the head is used and
marked, what the head changes in an op that the base has is listed and does not decide.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from gate.change.changed import Changes, all_kernels, changed_kernels
from gate.change.dots import may_dot
from gate.change.git import ChangedFile, Repo
from gate.change.kernels import KernelIndex
from gate.change.model import ChangeReason
from gate.change.stores import store_lines
from gate.change.tiles import static_tiles
from gate.change.tree import DirTree, GitTree, Tree
from gate.engine.gone import Gone, find_gone
from gate.engine.task import OpTask
from gate.engine.touched import touched_ops
from gate.errors import ConfigError, SchemaError, UsageError, did_you_mean
from gate.schema.config import CONFIG_FILE, GateConfig, load_config
from gate.schema.load import load_files
from gate.schema.match import asks_for, check_kernels, covered, match
from gate.schema.model import OpSchema
from gate.schema.paths import glob_match
from gate.schema.relax import relaxations
from gate.schema.relaxconfig import config_relaxations

WORKING_TREE = "working tree"
"""Name of a head that is not a commit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScopeRequest:
    """What the caller asked for."""

    repo: Path
    """A folder in the repository."""
    base: str | None = None
    """Base revision; None: no base (every kernel counts as changed)."""
    head: str | None = None
    """Head revision; None: the working tree."""
    everything: bool = False
    """Take every kernel, changed or not."""
    only: tuple[str, ...] = ()
    """Kernel ids or globs that are run whether changed or not, and no others."""
    trust_head: bool = False
    """Read schemas, references and configuration from the head (`trusted-ref: head`)."""
    config: str = CONFIG_FILE
    """Path of the configuration in the tree."""
    schemas: tuple[str, ...] = ()
    """Globs of schema files; empty: the configuration's."""
    pythonpath: tuple[str, ...] = ()
    """Import folders; empty: the configuration's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScopedKernel:
    """One changed kernel and the ops that cover it."""

    id: str
    """Kernel id."""
    file: str
    """Its file."""
    line: int
    """1-based line of its `def`."""
    reasons: tuple[ChangeReason, ...]
    """Why it counts as changed."""
    ops: tuple[str, ...]
    """Ops that cover it."""
    near: str
    """Nearest miss when there are none."""

    @property
    def touched(self) -> bool:
        """Whether its code changed, and not only its schema or reference."""
        return any(reason.what not in ("schema", "reference") for reason in self.reasons)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """Everything that a run needs to know before it starts a worker."""

    repo: Repo
    """The repository."""
    base_sha: str
    """Base commit, or empty."""
    head_sha: str
    """Head commit, or empty for the working tree."""
    head_name: str
    """Head commit or `working tree`."""
    index: KernelIndex
    """Every kernel of the head."""
    kernels: tuple[ScopedKernel, ...]
    """The changed ones, by id."""
    op_schemas: tuple[OpSchema, ...]
    """The ops to run, by name."""
    every_schema: tuple[OpSchema, ...] = ()
    """Every op that is declared, by name."""
    fresh: frozenset[str] = frozenset()
    """Ops whose schema is new in the head."""
    gone: Gone = field(default_factory=Gone)
    """Kernels of the base that left an op without any."""
    config: GateConfig = field(default_factory=GateConfig)
    """The trusted configuration."""
    trust_head: bool = False
    """Whether the head's files are trusted."""
    pythonpath: tuple[str, ...] = ()
    """Import folders."""
    relaxed: tuple[str, ...] = ()
    """What the head relaxes."""
    protected: tuple[str, ...] = ()
    """Changed files that control the gate."""
    notes: tuple[str, ...] = ()
    """What the report should mention."""
    head_tree: Tree
    """The files of the head."""
    base_tree: Tree | None = None
    """The files of the base."""

    def tasks(self, folder: Path) -> list[OpTask]:
        """Lay out the trees under `folder` and return one task an op.

        The head's tree is `folder/head` (the working tree is used where it lies), the base's
        `folder/base`.
        """
        head_root = self.repo.root
        if self.head_sha:
            head_root = folder / "head"
            self.repo.export(self.head_sha, head_root)
        base_root: Path | None = None
        if self.base_sha:
            base_root = folder / "base"
            self.repo.export(self.base_sha, base_root)
        return [self._task(schema, head_root, base_root) for schema in self.op_schemas]

    def single(self, schema: OpSchema, folder: Path) -> OpTask:
        """Return the task of one op, changed or not, with the head's tree under `folder`."""
        head_root = self.repo.root
        if self.head_sha:
            head_root = folder / "head"
            self.repo.export(self.head_sha, head_root)
        return self._task(schema, head_root, None)

    def _task(self, schema: OpSchema, head: Path, base: Path | None) -> OpTask:
        gated = covered(schema, self.index)
        gone = self.gone.of(schema.op)
        trusted = schema.op not in self.fresh
        truth = base if base is not None and trusted and not self.trust_head else head
        tiles = sorted({t for kernel in gated for t in static_tiles(self.index, kernel)})
        return OpTask(
            schema=schema,
            root=str(head),
            trusted_root=str(truth),
            pythonpath=self.pythonpath,
            setup=self.config.setup,
            kernels=(*gated, *gone),
            changed=tuple(k.id for k in self.kernels if k.id in gated and k.touched),
            dots=not gated or any(may_dot(self.index, kernel) for kernel in gated),
            must_launch=tuple(kernel for kernel in schema.kernels if kernel in gated),
            tiles=tuple(tiles),
            base_root=str(base) if base else "",
            trusted=trusted,
            untrusted_truth=not trusted and not self.trust_head,
            files={
                kernel: (self.index.kernels[kernel].file, self.index.kernels[kernel].line)
                for kernel in gated
            }
            | {kernel: (_file_of(kernel), 1) for kernel in gone},
            stores={kernel: store_lines(self.index, kernel) for kernel in gated},
        )


def make_scope(request: ScopeRequest) -> Scope:
    """Read both trees and work out what there is to run. No code of either tree is imported.

    Raises
        GitError     the repository or a revision is not what was said
        SchemaError  a schema that counts is wrong
        ConfigError  the configuration is wrong
    """
    repo = Repo.open(request.repo)
    base_sha = repo.resolve(request.base) if request.base else ""
    head_sha = repo.resolve(request.head) if request.head else ""
    head: Tree = GitTree(repo, head_sha) if head_sha else DirTree(repo.root)
    base: Tree | None = GitTree(repo, base_sha) if base_sha else None
    files = repo.changed_files(base_sha, head_sha or None) if base_sha else ()
    changes = _changes(request, base, head, files)
    trusted = head if base is None or request.trust_head else base
    config = _config(trusted, request, base is trusted)
    globs = request.schemas or config.schemas
    head_schemas = _load(head, globs)
    base_schemas, unread = _load_base(base, globs) if base is not None else ({}, ())
    # Only ids that are written: an entry in an installed package gates nothing of the tree.
    check_kernels((schema for schema in head_schemas.values() if schema.kernels), changes.index)
    rules, fresh = _trusted_rules(request, head_schemas, base_schemas)
    touched = touched_ops(rules, head_schemas, base_schemas, changes.index, files, (base, head))
    gone = Gone()
    if not request.trust_head:
        gone = find_gone(changes, rules, base_schemas, head_schemas, head)
    kernels, notes = _scoped(changes, rules, touched, config, request, gone)
    wanted = {op for kernel in kernels for op in kernel.ops if _runs(op, kernel.id, gone)}
    run_these = tuple(rules[op] for op in sorted(wanted))
    return Scope(
        repo=repo, base_sha=base_sha, head_sha=head_sha, head_name=head_sha or WORKING_TREE,
        index=changes.index, kernels=kernels, op_schemas=run_these,
        every_schema=tuple(rules[op] for op in sorted(rules)), fresh=fresh & wanted, gone=gone,
        config=config, trust_head=request.trust_head,
        pythonpath=request.pythonpath or config.pythonpath,
        relaxed=(*unread, *_relaxed(request, base, head, config, base_schemas, head_schemas)),
        protected=_protected(files, config, request),
        notes=(*changes.problems, *gone.notes, *notes), head_tree=head, base_tree=base,
    )  # fmt: skip


def _relaxed(
    request: ScopeRequest,
    base: Tree | None,
    head: Tree,
    config: GateConfig,
    before: Mapping[str, OpSchema],
    after: Mapping[str, OpSchema],
) -> tuple[str, ...]:
    """What the head demands less of than the base, in schemas and in the configuration."""
    if base is None:
        return ()
    new = load_config(head.read(request.config), request.config)
    found = relaxations(tuple(before.values()), tuple(after.values()))
    try:
        old = config
        if request.trust_head:
            old = load_config(base.read(request.config), request.config)
    except ConfigError as problem:
        first = problem.message.partition("\n")[0]
        told = (
            f"{request.config} cannot be used as it is at the base commit ({first}), so what the "
            "change relaxes in it is not known"
        )
        return (*found, told)
    return (*found, *config_relaxations(old, new))


def _config(trusted: Tree, request: ScopeRequest, at_base: bool) -> GateConfig:
    """Return the trusted configuration; a problem says on which side of the change it lies."""
    try:
        return load_config(trusted.read(request.config), request.config)
    except ConfigError as problem:
        if not at_base:
            raise
        raise ConfigError(
            f"{problem.message}\nthis is {request.config} as it is at the base commit: mend it "
            "there first, or run with --trusted-ref head"
        ) from None


def _changes(
    request: ScopeRequest, base: Tree | None, head: Tree, files: Sequence[ChangedFile]
) -> Changes:
    if base is None or request.everything or request.only:
        return all_kernels(head)
    return changed_kernels(base, head, files)


def _load(tree: Tree, globs: tuple[str, ...]) -> dict[str, OpSchema]:
    """Return the ops of a tree by name."""
    return {schema.op: schema for schema in load_files(_schema_texts(tree, globs))}


def _schema_texts(tree: Tree, globs: tuple[str, ...]) -> dict[str, bytes]:
    paths = [p for p in tree.paths() if any(glob_match(p, pattern) for pattern in globs)]
    return {path: raw for path in paths if (raw := tree.read(path)) is not None}


def _load_base(tree: Tree, globs: tuple[str, ...]) -> tuple[dict[str, OpSchema], tuple[str, ...]]:
    """Return the ops of the base by name, without those of files that are wrong there, and what a
    report says of each such file.

    A head that mends such a file is the way out, and is run. Its ops then have no rules that are
    older than the change: what they demand less of than was meant, nobody can tell, so they are
    listed as a relaxation is.
    """
    texts = _schema_texts(tree, globs)
    told: dict[str, str] = {}
    while True:
        try:
            return {schema.op: schema for schema in load_files(texts)}, tuple(told.values())
        except SchemaError as wrong:
            first = {problem.file: problem for problem in reversed(wrong.problems)}
            if not first.keys() & texts.keys():
                raise
            for file, problem in sorted(first.items()):
                texts.pop(file, None)
                told[file] = (
                    f"{file} cannot be used as it is at the base commit, so its ops are judged by "
                    "what the change says of them, and what that relaxes is not known; at the "
                    f"base, {problem}"
                )


def _trusted_rules(
    request: ScopeRequest, head: Mapping[str, OpSchema], base: Mapping[str, OpSchema]
) -> tuple[dict[str, OpSchema], frozenset[str]]:
    """The schema that decides for each op, and the ops that are new in the head."""
    if not base or request.trust_head:
        return dict(head), frozenset() if not request.base else frozenset(head) - frozenset(base)
    rules = {**head, **base}
    return rules, frozenset(head) - frozenset(base)


def _scoped(
    changes: Changes,
    rules: Mapping[str, OpSchema],
    touched: Mapping[str, ChangeReason],
    config: GateConfig,
    request: ScopeRequest,
    gone: Gone,
) -> tuple[tuple[ScopedKernel, ...], list[str]]:
    """Join changed kernels with those whose schema or reference changed, and match all."""
    schemas = tuple(rules.values())
    _check_named(request.only, changes)
    reasons: dict[str, list[ChangeReason]] = {k.id: list(k.reasons) for k in changes.kernels}
    for op, reason in touched.items():
        for kernel in covered(rules[op], changes.index):
            reasons.setdefault(kernel, []).append(reason)
    for kernel in gone.kernels:
        name = f"{kernel.partition('::')[2]}: it is gone"
        reasons[kernel] = [ChangeReason(what="kernel", name=name, file=_file_of(kernel))]
    notes = []
    made = []
    for kernel in sorted(reasons):
        if request.only and not any(asks_for(pattern, kernel) for pattern in request.only):
            continue
        why = config.ignored(kernel)
        if why is not None:
            notes.append(f"{kernel} is ignored by {request.config}: {why}")
            continue
        found = match(schemas, changes.index, kernel)
        place = changes.index.kernels.get(kernel)
        made.append(
            ScopedKernel(
                id=kernel, file=place.file if place else _file_of(kernel),
                line=place.line if place else 1, reasons=tuple(reasons[kernel]),
                ops=gone.kernels.get(kernel, found.ops), near=found.near,
            )
        )  # fmt: skip
    return tuple(made), notes


def _file_of(kernel: str) -> str:
    return kernel.partition("::")[0]


def _runs(op: str, kernel: str, gone: Gone) -> bool:
    """Whether an op is run for a kernel: not for one that is gone together with the entry."""
    return kernel not in gone.kernels or op in gone.runnable


def _check_named(only: tuple[str, ...], changes: Changes) -> None:
    """Refuse a `--kernel` that names nothing: a mistyped one must not look like a pass.

    Raises
        UsageError  with the nearest kernel
    """
    for pattern in only:
        if not any(asks_for(pattern, kernel) for kernel in changes.index.kernels):
            names = [kernel.partition("::")[2] for kernel in changes.index.kernels]
            files = [kernel.file for kernel in changes.index.kernels.values()]
            near = did_you_mean(pattern.replace("*", ""), [*changes.index.kernels, *names, *files])
            raise UsageError(
                f"--kernel {pattern}: no kernel of the tree has this id, file or name{near}; in a "
                "glob with / a * stays within its folder: **/*.py::*softmax*"
            )


def _protected(
    files: Sequence[ChangedFile], config: GateConfig, request: ScopeRequest
) -> tuple[str, ...]:
    """Changed files that control the gate: its configuration, and what `protected-paths` names."""
    patterns = (request.config, *config.protected_paths)
    hits = {f.path for f in files if any(glob_match(f.path, pattern) for pattern in patterns)}
    return tuple(sorted(hits))
