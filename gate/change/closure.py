"""What a kernel is made of: itself, its helpers and constants, its launchers and theirs."""

from __future__ import annotations

import enum
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass

from gate.change.facts import Kind
from gate.change.graph import Graph
from gate.change.project import Key


class Role(enum.Enum):
    """What a part is to its kernel; the values are those of `ChangeReason.what`."""

    KERNEL = "kernel"
    """The jit function, and the value that names it if it is made by a call."""
    HELPER = "helper"
    """A function or class that the kernel, or a launcher, uses."""
    CONSTANT = "constant"
    """A value of a module or class that one of them reads."""
    LAUNCHER = "launcher"
    """A function between the public entry and the kernel, or a value that it goes through."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One thing that a kernel is made of."""

    role: Role
    """What it is to the kernel."""
    key: Key
    """Where it is defined."""
    device: bool
    """Whether the kernel reaches it by itself, without its launchers."""


_STEPS_AWAY = 2
"""How far host code is followed outside the kernel's file: a launcher's `settings(n)` and what that
uses, but not the configuration and logging of a whole library."""


class Closures:
    """Collects the parts of kernels."""

    def __init__(
        self,
        graph: Graph,
        jit: frozenset[Key],
        kernels: frozenset[Key],
        aliases: dict[Key, frozenset[Key]],
        launchers: dict[Key, tuple[Key, ...]],
    ) -> None:
        self._graph = graph
        self._jit = jit
        self._aliases = aliases
        self._launchers = launchers
        self._others = kernels.union(*launchers.values())

    def parts(self, kernel: Key) -> tuple[Part, ...]:
        """Return the parts of a kernel: itself first, then what it reaches, then its launchers.

        What device code reaches is followed to its end, host code as `_STEPS_AWAY` says. From
        launchers on, other kernels and their launchers are left out: they are parts of those.
        """
        own = (kernel, *sorted(filter(self._decorates, self._aliases.get(kernel, ()))))
        launchers = self._launchers.get(kernel, ())
        home = frozenset(key.path for key in own)
        found: dict[Key, Part] = {key: Part(role=Role.KERNEL, key=key, device=True) for key in own}
        self._reach(own, found, home, device=True)
        for key in launchers:
            found.setdefault(key, Part(role=Role.LAUNCHER, key=key, device=False))
        self._reach(launchers, found, home, device=False)
        return tuple(found.values())

    def _decorates(self, alias: Key) -> bool:
        """Whether an alias makes the kernel what it is: `a = autotune(...)(k)`, not `a = k`."""
        return bool(self._graph.project.definition(alias).chain)

    def _reach(
        self, start: Iterable[Key], found: dict[Key, Part], home: frozenset[str], *, device: bool
    ) -> None:
        waiting = deque((key, 0) for key in start)
        while waiting:
            key, away = waiting.popleft()
            for used in self._graph.uses(key):
                if used in found or (not device and used in self._others):
                    continue
                step = 0 if used.path in home or self._is_device(key, used) else away + 1
                if step <= _STEPS_AWAY:
                    found[used] = Part(role=self._role(used, found), key=used, device=device)
                    waiting.append((used, step))

    def _is_device(self, user: Key, used: Key) -> bool:
        """Whether a definition is compiled: jit code, or a constant that jit code reads."""
        kind = self._graph.project.definition(used).kind
        return used in self._jit or (kind is Kind.VALUE and user in self._jit)

    def _role(self, key: Key, found: dict[Key, Part]) -> Role:
        if self._graph.project.definition(key).kind is not Kind.VALUE:
            return Role.HELPER
        goes_through = any(
            used in found and found[used].role in (Role.KERNEL, Role.LAUNCHER)
            for used in self._graph.uses(key)
        )
        return Role.LAUNCHER if goes_through else Role.CONSTANT
