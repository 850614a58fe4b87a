"""Why a kernel counts as changed between two trees."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeReason:
    """Why a kernel counts as changed."""

    what: str
    """`kernel`, `helper`, `constant`, `launcher`, `package`, `schema`, `reference`,
    `named`."""
    name: str
    """Its name, such as `_load_tile`; for a kernel also what became of it, `moved from a.py`."""
    file: str
    """Where it is, from the root."""

    def __str__(self) -> str:
        match self.what:
            case "kernel" if " " in self.name:  # not a name: what became of it
                return f"the kernel itself ({self.name})"
            case "kernel":
                return "the kernel itself"
            case "schema":
                return f"its schema {self.file}"
            case "named":
                return "named on the command line"
            case _:
                return f"{self.what} `{self.name}` in {self.file}"
