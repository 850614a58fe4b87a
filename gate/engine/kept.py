"""What a run need not do: the ops of its scope whose verdict is kept, and keeping the others'."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Protocol

from gate.engine.ingredients import Machine, Recipes, key_of, scope_digest, this_machine
from gate.engine.scope import Scope
from gate.engine.settings import RunSettings
from gate.engine.verdicts import covered_verdict
from gate.result import OpReport, RunInfo, RunResult


class Store(Protocol):
    """Where reports are kept by key; written by the trusted side of a run only."""

    warnings: list[str]
    """What was left out or could not be done, and why."""

    def get(self, key: str, op: str) -> tuple[OpReport, RunInfo] | None:
        """Return the report that was kept under a key, and the run that made it."""

    def put(self, key: str, report: OpReport, info: RunInfo) -> bool:
        """Keep a report if it was decided; return whether it was."""

    def settle(self) -> None:
        """Undo what others did to it while workers ran."""


@dataclass(slots=True, eq=False)
class Kept:
    """The reports that are at hand before anything is run."""

    reports: tuple[OpReport, ...] = ()
    """Of ops that need not be run."""
    info: RunInfo | None = None
    """Of the run that made the first of them."""
    notes: list[str] = field(default_factory=list)
    """What the report should say of it."""
    scope: str = ""
    """Digest of what is to be run; empty when nobody asks for it."""
    _store: Store | None = None
    _machine: Machine | None = None
    _keys: dict[str, str] = field(default_factory=dict)

    @staticmethod
    def of(scope: Scope, settings: RunSettings, store: Store | None) -> Kept:
        """Look up every op of a scope; `settings.device` is settled.

        Raises
            GitError  a tree cannot be read
        """
        kept = Kept()
        if store is None and settings.shard is None:
            return kept
        recipes = Recipes(scope, settings)
        kept.scope = scope_digest(recipes, scope)
        if store is not None:
            kept._open(store, scope, settings, recipes)
        return kept

    def _open(self, store: Store, scope: Scope, settings: RunSettings, recipes: Recipes) -> None:
        machine = this_machine(settings.device)
        if settings.worker_socket or not machine.name:
            self.notes.append(
                "--cache was not used: what runs the kernels cannot be named from here "
                + ("(--worker-socket)" if settings.worker_socket else "(no GPU in /proc/driver)")
            )
            return
        self._store, self._machine = store, machine
        found = []
        for schema in scope.op_schemas:
            made = recipes.ingredients(schema)
            if made is None:
                gone = bool(scope.gone.of(schema.op))
                why = "its kernels are gone" if gone else "its code is an installed package's"
                self.notes.append(f"{schema.op} is not kept: {why}")
                continue
            key = self._keys[schema.op] = key_of(made, machine)
            held = store.get(key, schema.op)
            if held is not None:
                found.append(held[0])
                self.info = self.info or held[1]
        self.reports = tuple(found)
        self.notes += store.warnings
        if found:
            self.notes.append(
                f"{len(found)} of {len(scope.op_schemas)} ops were not run again: nothing that "
                "their verdict is made of has changed since (--cache)"
            )
        store.warnings.clear()

    def left(self, scope: Scope) -> Scope:
        """Return the scope without the ops that are at hand."""
        done = {report.op for report in self.reports}
        rest = tuple(schema for schema in scope.op_schemas if schema.op not in done)
        return replace(scope, op_schemas=rest)

    def settle(self) -> None:
        """Undo what others did to the cache; the workers are gone when this is called."""
        if self._store is not None:
            self._store.settle()
            self.notes += self._store.warnings
            self._store.warnings.clear()

    def joined(
        self, scope: Scope, result: RunResult, *, seconds: float, keep: bool = True
    ) -> RunResult:
        """Keep what was decided now, and return the result with the reports that were at hand.

        result   of the scope that `left` gave
        seconds  of the whole run
        keep     whether what was decided now can be trusted later
        """
        if keep and result.ops and not result.interrupted:
            self._keep(result.ops, result.info)
        by_op = {report.op: report for report in (*self.reports, *result.ops)}
        info = result.info
        if not info.device and self.info is not None:
            known = self.info
            info = replace(
                info, device=known.device, device_name=known.device_name, versions=known.versions,
                fences=known.fences,
            )  # fmt: skip
        return replace(
            result,
            info=replace(info, scope=self.scope, seconds=round(seconds, 3)),
            kernels=tuple(
                replace(k, verdict=covered_verdict(k.kernel, k.ops, by_op)) for k in result.kernels
            ),
            ops=tuple(by_op[s.op] for s in scope.op_schemas if s.op in by_op),
            notes=(*result.notes, *self.notes),
        )

    def _keep(self, reports: Iterable[OpReport], info: RunInfo) -> None:
        if self._store is None or self._machine is None:
            return
        seen = dict(info.versions)
        expected = {name: self._machine.versions.get(name, "") for name in seen}
        if info.device_name != self._machine.name or seen != expected:
            self.notes.append(
                "nothing was kept: the workers have other versions, or another device, than was "
                "told before they were started"
            )
            return
        for report in reports:
            if report.op in self._keys:
                self._store.put(self._keys[report.op], report, info)
        self.notes += self._store.warnings
