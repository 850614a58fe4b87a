"""Whether the functions that a schema calls exist, told from the text of their files.

Nothing is imported. What a text leaves open (a star import, names that a module makes as it is
loaded, the methods of a base class) counts as there: a schema is only refused for a name that
loading the file cannot bring about.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from gate.change.source import UnreadableSource, parse_source
from gate.errors import Problem, did_you_mean
from gate.schema.expr import Call, Target
from gate.schema.model import OpSchema

Read = Callable[[OpSchema, str], Sequence[bytes] | None]
"""Op and path from the root -> the file's bytes, those of each file that may be meant when the root
is not certain; empty where there is no such file, None where that cannot be known."""
Function = ast.FunctionDef | ast.AsyncFunctionDef

_MAKERS = frozenset({"globals", "locals", "vars", "exec", "setattr", "__dict__"})
"""Names by which a module or a class may get members that no statement binds."""


def check_targets(schemas: Iterable[OpSchema], read: Read) -> tuple[Problem, ...]:
    """Return a problem for each `path.py::name` of these schemas that names nothing, by line.

    Dotted modules may be installed packages and are passed over.
    """
    problems = []
    for schema in schemas:
        for key, call in _calls(schema):
            what = _missing(schema, call.target, read)
            if what:
                problems.append(
                    Problem(file=schema.file, line=call.line or schema.line, path=key, what=what)
                )
    return tuple(sorted(problems, key=lambda one: (one.file, one.line)))


def _calls(schema: OpSchema) -> Iterator[tuple[str, Call]]:
    yield "$.entry", schema.entry
    if isinstance(schema.reference, Call):
        yield "$.reference", schema.reference
    for arg in schema.args:
        if isinstance(arg.make, Call):
            yield f"$.args.{arg.name}.make", arg.make


def _missing(schema: OpSchema, target: Target, read: Read) -> str:
    """Say why a target names nothing; empty when it names something, or that cannot be known."""
    texts = read(schema, target.module) if target.is_path else None
    if texts is None:
        return ""
    said = [_wrong(target, raw) for raw in texts] or [f"there is no file {target.module}"]
    return said[0] if all(said) else ""


def _wrong(target: Target, raw: bytes) -> str:
    try:
        bound = _Bound.of(parse_source(raw))
    except UnreadableSource:
        return ""  # `run` says so with the line
    first, *rest = target.name.split(".")
    if first not in bound.names:
        package = bool(rest) and target.module.endswith("__init__.py")  # `first` may be a module
        near = did_you_mean(first, bound.names)
        return "" if bound.open or package else f"{target.module} has no {first!r}{near}"
    return _wrong_member(target, first, rest[0], bound) if rest else ""


def _wrong_member(target: Target, owner: str, name: str, bound: _Bound) -> str:
    members = bound.members(owner)
    if members is None or name in members or name in bound.given:
        return ""
    near = did_you_mean(name, members)
    return f"class {owner!r} of {target.module} has no {name!r}{near}"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Bound:
    """What a module binds."""

    names: frozenset[str]
    """Names that statements of the module bind, in any branch."""
    open: bool
    """Whether it may have other names too."""
    classes: tuple[ast.ClassDef, ...]
    """Its classes."""
    others: tuple[str, ...]
    """Every binding that is no class, once each time it is bound."""
    given: frozenset[str]
    """Attributes that are assigned anywhere: `Softmax.apply = ...`."""

    @classmethod
    def of(cls, tree: ast.Module) -> _Bound:
        """Read a module."""
        classes: list[ast.ClassDef] = []
        others: list[str] = []
        stars = False
        for node in _own_nodes(tree.body):
            stars = stars or (isinstance(node, ast.alias) and node.name == "*")
            if isinstance(node, ast.ClassDef):
                classes.append(node)
            else:
                others += _binds(node)
        every = list(ast.walk(tree))
        others += [name for node in every if isinstance(node, ast.Global) for name in node.names]
        given = {
            node.attr for node in every
            if isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load)
        }  # fmt: skip
        names = frozenset(others) | {node.name for node in classes}
        return cls(
            names=names, open=stars or "__getattr__" in names or _makes_names(every),
            classes=tuple(classes), others=tuple(others), given=frozenset(given),
        )  # fmt: skip

    def members(self, owner: str) -> frozenset[str] | None:
        """Return what a class has; None where another binding, a base, a decorator, a metaclass or
        code may give it more."""
        found = [node for node in self.classes if node.name == owner]
        if len(found) != 1 or owner in self.others or self.open:
            return None
        (node,) = found
        plain = all(isinstance(base, ast.Name) and base.id == "object" for base in node.bases)
        if node.decorator_list or node.keywords or not plain:
            return None
        inner = [name for part in _own_nodes(node.body) for name in _binds(part)]
        nested = [part.name for part in _own_nodes(node.body) if isinstance(part, ast.ClassDef)]
        return frozenset((*inner, *nested, *dir(object)))


def _own_nodes(body: Sequence[ast.stmt]) -> Iterator[ast.AST]:
    """Yield the nodes of a scope, not those of the functions and classes in it."""
    waiting: list[ast.AST] = list(body)
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, Function | ast.ClassDef | ast.Lambda):
            waiting += ast.iter_child_nodes(node)


def _binds(node: ast.AST) -> Iterator[str]:
    """Yield the names that a node itself binds."""
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            yield node.name
        case ast.Name(ctx=ast.Store()):
            yield node.id
        case ast.alias():
            yield node.asname or node.name.partition(".")[0]
        case ast.ExceptHandler() | ast.MatchAs() | ast.MatchStar():
            yield from (node.name,) if node.name else ()
        case ast.MatchMapping():
            yield from (node.rest,) if node.rest else ()


def _makes_names(nodes: Iterable[ast.AST]) -> bool:
    """Whether code may bind names that no statement shows."""
    return any(
        (isinstance(node, ast.Name) and node.id in _MAKERS)
        or (isinstance(node, ast.Attribute) and node.attr in _MAKERS)
        for node in nodes
    )
