"""What a kernel is made of: itself, its helpers and constants, its launchers and theirs."""

from __future__ import annotations

import enum
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


@dataclass(frozen=True, slots=True)
class Part:
    """One thing that a kernel is made of."""

    role: Role
    """What it is to the kernel."""
    key: Key
    """Where it is defined."""
    device: bool
    """Whether the kernel reaches it by itself, without its launchers."""


class Closures:
    """Collects the parts of kernels."""

    def __init__(
        self,
        graph: Graph,
        kernels: frozenset[Key],
        aliases: dict[Key, frozenset[Key]],
        launchers: dict[Key, tuple[Key, ...]],
    ) -> None:
        self._graph = graph
        self._kernels = kernels
        self._aliases = aliases
        self._launchers = launchers
        self._launching = frozenset(key for found in launchers.values() for key in found)

    def parts(self, kernel: Key) -> tuple[Part, ...]:
        """Return the parts of a kernel: itself first, then what it reaches, then its launchers."""
        own = (kernel, *sorted(self._aliases.get(kernel, ()), key=str))
        found: dict[Key, Part] = {key: Part(Role.KERNEL, key, True) for key in own}
        self._reach(own, found, device=True, stop=frozenset())
        launchers = self._launchers.get(kernel, ())
        for key in launchers:
            found.setdefault(key, Part(Role.LAUNCHER, key, False))
        others = (self._launching | self._kernels) - set(launchers)
        self._reach(launchers, found, device=False, stop=others - set(own))
        return tuple(found.values())

    def _reach(
        self, start: Iterable[Key], found: dict[Key, Part], *, device: bool, stop: frozenset[Key]
    ) -> None:
        waiting = list(start)
        while waiting:
            key = waiting.pop(0)
            for used in sorted(self._graph.uses(key), key=str):
                if used not in found and used not in stop:
                    found[used] = Part(self._role(used, found), used, device)
                    waiting.append(used)

    def _role(self, key: Key, found: dict[Key, Part]) -> Role:
        if self._graph.project.definition(key).kind is not Kind.VALUE:
            return Role.HELPER
        goes_through = any(
            used in found and found[used].role in (Role.KERNEL, Role.LAUNCHER)
            for used in self._graph.uses(key)
        )
        return Role.LAUNCHER if goes_through else Role.CONSTANT
