"""What one Python file says about itself: its definitions, what each names, and its imports.

A name is a `Dotted`: `("tl", "load")` for `tl.load`. The empty head stands for the class that the
definition lies in: `("", "kernel")` for `self.kernel` or `cls.kernel`.
"""

from __future__ import annotations

import ast
import enum
from collections.abc import Mapping
from dataclasses import dataclass

Dotted = tuple[str, ...]
"""A name and the attributes read from it."""

OWN_CLASS = ""
"""Head of a `Dotted` that starts at the class of the definition."""

MODULE = "<module>"
"""Name of the definition that holds the statements of a file which define nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Import:
    """What an import statement binds to a name."""

    level: int
    """Leading dots; 0 for an absolute import."""
    module: str
    """The module as written, without the dots; empty for `from . import x`."""
    name: str
    """What is taken from it; empty: the module itself."""


class Kind(enum.Enum):
    """What a definition is."""

    FUNCTION = "function"
    """A `def`, anywhere; methods too."""
    CLASS = "class"
    """A class without its methods and attributes, which are definitions of their own."""
    VALUE = "value"
    """A name that a module, a class or a method (`self.x = ...`) assigns."""
    SCRIPT = "script"
    """The statements of a file that define nothing."""


@dataclass(frozen=True, slots=True)
class Applied:
    """A call `callee(given, ...)`, where both are names; `callee(...)(given)` too."""

    callee: Dotted
    """What is called."""
    given: Dotted
    """Its first argument."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """One thing that a file defines, perhaps in several branches, and what it names."""

    name: str
    """Qualified: `softmax`, `Softmax.forward`, `make.kernel` (a function within a function)."""
    kind: Kind
    """What it is."""
    line: int
    """1-based line of the first `def`, `class` or assignment."""
    nodes: tuple[ast.AST, ...]
    """Its statements, and the conditions that they stand under."""
    refs: frozenset[Dotted]
    """Every name that it reads and does not bind itself."""
    calls: frozenset[Dotted] = frozenset()
    """Those that it calls: `f(...)`, `f[...](...)`, `f(...)(...)`."""
    launches: frozenset[Dotted] = frozenset()
    """Those that it calls by index, `f[...](...)`, or through `f.run(...)`."""
    applied: frozenset[Applied] = frozenset()
    """Calls of a name on a name."""
    decorators: tuple[Dotted, ...] = ()
    """Names of its decorators, outermost first; what `partial` wraps for `@partial(f, ...)`."""
    returned_calls: frozenset[Dotted] = frozenset()
    """What a `return` calls."""
    returns_value: bool = False
    """Whether a `return` gives something other than None."""
    imports: Mapping[str, tuple[Import, ...]]
    """Names that its own body imports."""
    local: frozenset[str] = frozenset()
    """Names that its body binds to something unknown."""
    scope: str = ""
    """The function that it is nested in, or the class of a class attribute; else empty."""
    owner: str = ""
    """The class whose `self` or `cls` it sees; else empty."""
    bound: bool = False
    """Whether it needs an instance: a method that is neither static nor a class method."""
    params: tuple[str, ...] = ()
    """Names of its parameters in order."""
    bases: tuple[Dotted, ...] = ()
    """Base classes of a class."""
    chain: tuple[Dotted, ...] = ()
    """For a value `a(...)(b(x))`: the calls from the outermost in, `a`, `b`."""
    target: Dotted = ()
    """For such a value: the name at its end, `x`; empty if that is no name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModuleFacts:
    """One file."""

    path: str
    """Path from the root."""
    definitions: Mapping[str, Definition]
    """Definitions by qualified name; `MODULE` holds the rest."""
    imports: Mapping[str, tuple[Import, ...]]
    """Names that the module imports, in any branch."""
    stars: tuple[Import, ...] = ()
    """`from m import *`."""
    children: Mapping[str, tuple[str, ...]]
    """Qualified name -> the definitions that lie directly in it."""
