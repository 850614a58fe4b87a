"""From text to the closed tree: what is not a node of `gate.schema.nodes` cannot be said."""

from __future__ import annotations

import ast
import warnings
from dataclasses import dataclass, field

from gate.dtypes import DTYPES
from gate.errors import GateError, did_you_mean
from gate.schema import nodes as n
from gate.schema import torchnames
from gate.schema.names import FUNCTIONS, HOST_ROOTS, LITERALS, PROPERTY_FUNCTIONS
from gate.schema.nodes import Expr, Level, Node

MAX_TEXT = 4_000
"""Characters of an expression."""
MAX_DEPTH = 40
"""Nesting of an expression."""

_BINARY: dict[type[ast.operator], tuple[str, Level]] = {
    ast.Add: ("+", Level.PURE), ast.Sub: ("-", Level.PURE), ast.Mult: ("*", Level.PURE),
    ast.Div: ("/", Level.PURE), ast.FloorDiv: ("//", Level.PURE), ast.Mod: ("%", Level.PURE),
    ast.Pow: ("**", Level.PURE), ast.MatMult: ("@", Level.TORCH), ast.BitAnd: ("&", Level.TORCH),
    ast.BitOr: ("|", Level.TORCH), ast.BitXor: ("^", Level.TORCH),
    ast.LShift: ("<<", Level.TORCH), ast.RShift: (">>", Level.TORCH),
}  # fmt: skip
_UNARY: dict[type[ast.unaryop], str] = {
    ast.USub: "-", ast.UAdd: "+", ast.Invert: "~", ast.Not: "not",
}  # fmt: skip
_COMPARE: dict[type[ast.cmpop], str] = {
    ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=",
}  # fmt: skip


class ExprError(GateError):
    """An expression that does not parse or may not stand where it stands."""


def parse_expr(text: str, *, level: Level = Level.PURE, line: int = 0) -> Expr:
    """Parse one expression.

    level  how much of the language its place allows
    line   1-based line in the schema, kept in the result

    Raises
        ExprError  with what is wrong and what would be right
    """
    folded = fold(text)
    walker = Walker(level)
    node = walker.walk(python_tree(folded).body)
    return Expr(text=folded, names=frozenset(walker.names), line=line, node=node)


def fold(text: str) -> str:
    """Return a text on one line, or refuse it for its length."""
    if not isinstance(text, str):
        raise ExprError(f"{text!r} is no expression; write it as text")
    folded = " ".join(text.split())
    if not folded:
        raise ExprError("an empty expression; write one, or leave the key out")
    if len(folded) > MAX_TEXT:
        raise ExprError(
            f"an expression of {len(folded):,} characters; at most {MAX_TEXT:,}: put it into a "
            "function in a file"
        )
    return folded


def open_brackets(text: str) -> int:
    """Return how many brackets are open at the end of a text (negative: closed too often).

    >>> open_brackets("cdiv(M"), open_brackets("2)"), open_brackets("f(')')")
    (1, -1, 0)
    """
    depth, quote = 0, ""
    for char in text:
        if quote:
            quote = "" if char == quote else quote
        elif char in "'\"":
            quote = char
        else:
            depth += (char in "([{") - (char in ")]}")
    return depth


def python_tree(text: str) -> ast.Expression:
    """Return Python's own tree of a text; no code of it is run."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(text, mode="eval")
    except (SyntaxError, ValueError, MemoryError, RecursionError) as problem:
        raise ExprError(_no_expression(text.removeprefix("_call_"), problem)) from None


def _no_expression(text: str, problem: Exception) -> str:
    shown = repr(text if len(text) <= 80 else f"{text[:79]}…")
    depth = open_brackets(text)
    if depth > 0:
        return f'{shown} is half an expression; quote it when it holds a comma: "{text[:60]}, ...)"'
    if depth < 0:
        return f"{shown} is half an expression: it closes what it did not open; quote the whole"
    words = text.split()
    for wrong, right in (("&&", "and"), ("||", "or"), ("!", "not"), ("=", "==")):
        if wrong in words:
            return f"{shown} is not an expression; write `{right}` for `{wrong}`"
    return f"{shown} is not an expression ({getattr(problem, 'msg', 'too deep')})"


@dataclass(slots=True)
class Walker:
    """Turns Python's tree into ours, node by node, refusing what has no node."""

    level: Level
    """What the place allows."""
    names: set[str] = field(default_factory=set)
    """Free variables met."""
    depth: int = 0
    """Current nesting."""

    def walk(self, node: ast.expr) -> Node:
        """Return our node for Python's."""
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise ExprError(f"an expression nested more than {MAX_DEPTH} deep")
        try:
            return self._walk(node)
        finally:
            self.depth -= 1

    def _walk(self, node: ast.expr) -> Node:
        match node:
            case ast.Constant():
                return self._constant(node)
            case ast.Name():
                return self._name(node.id)
            case ast.BinOp():
                return self._binary(node)
            case ast.UnaryOp():
                return self._unary(node)
            case ast.BoolOp():
                word = "and" if isinstance(node.op, ast.And) else "or"
                return n.Logic(op=word, operands=tuple(self.walk(v) for v in node.values))
            case ast.Compare():
                return self._compare(node)
            case ast.IfExp():
                return n.Choice(
                    test=self.walk(node.test), then=self.walk(node.body),
                    other=self.walk(node.orelse),
                )  # fmt: skip
            case ast.Subscript():
                return n.Index(value=self.walk(node.value), index=self._index(node.slice))
            case ast.List() | ast.Tuple():
                self._need(Level.CALL, "a list or tuple")
                return self._sequence(node.elts, isinstance(node, ast.List))
            case ast.Attribute():
                return self._attribute(node)
            case ast.Call():
                return self._call(node)
        words = _REFUSED.get(type(node).__name__, type(node).__name__)
        raise ExprError(f"{words} cannot be said here; put it into a function in a file")

    def _need(self, level: Level, what: str) -> None:
        if self.level < level:
            places = {
                Level.CALL: "the arguments of a call",
                Level.TORCH: "`reference`, `make` and `properties`",
                Level.PROPERTY: "`properties`",
            }
            raise ExprError(f"{what} may stand in {places[level]} only")

    def _constant(self, node: ast.Constant) -> Node:
        value = node.value
        if isinstance(value, (bool, int, float, str)) or value is None:
            if isinstance(value, int) and abs(value) >= 2**64:
                raise ExprError(f"{value} does not fit 64 bits")
            return n.Const(value=value)
        if value is Ellipsis:
            raise ExprError("`...` may stand first in a shape, or inside a subscript only")
        raise ExprError(f"{value!r} cannot be said here")

    def _name(self, name: str) -> Node:
        if name in LITERALS:
            raise ExprError(f"{name}: write {LITERALS[name]}")
        if name in DTYPES:
            return n.DtypeLiteral(name=name)
        if name == "device":
            self._need(Level.CALL, "`device`")
            return n.HostName(path="device")
        if name in HOST_ROOTS:
            self._need(Level.TORCH, f"`{name}`")
            raise ExprError(f"`{name}` alone means nothing; write {name}.name")
        if name in FUNCTIONS or name in PROPERTY_FUNCTIONS:
            raise ExprError(f"`{name}` is a function; call it: {name}(...)")
        self.names.add(name)
        return n.Name(id=name)

    def _binary(self, node: ast.BinOp) -> Node:
        op, level = _BINARY[type(node.op)]
        self._need(level, f"`{op}`")
        return n.Binary(op=op, left=self.walk(node.left), right=self.walk(node.right))

    def _unary(self, node: ast.UnaryOp) -> Node:
        op = _UNARY[type(node.op)]
        if op == "~":
            self._need(Level.TORCH, "`~`")
        operand = self.walk(node.operand)
        if op in "+-" and isinstance(operand, n.Const) and type(operand.value) in (int, float):
            return n.Const(value=-operand.value if op == "-" else operand.value)  # type: ignore[operator]
        return n.Unary(op=op, operand=operand)

    def _compare(self, node: ast.Compare) -> Node:
        first = self.walk(node.left)
        op, right = node.ops[0], node.comparators[0]
        if isinstance(op, (ast.Is, ast.IsNot, ast.In, ast.NotIn)):
            if len(node.ops) > 1:
                raise ExprError("`is` and `in` cannot be chained; join them with `and`")
            negated = isinstance(op, (ast.IsNot, ast.NotIn))
            if isinstance(op, (ast.Is, ast.IsNot)):
                if not (isinstance(right, ast.Constant) and right.value is None):
                    raise ExprError("`is` compares with None only; use ==")
                return n.IsNone(value=first, negated=negated)
            if not isinstance(right, (ast.List, ast.Tuple)):
                raise ExprError("`in` needs a list after it: x in [1, 2]")
            options = tuple(self.walk(item) for item in right.elts)
            return n.Member(value=first, options=options, negated=negated)
        rest = []
        for op, right in zip(node.ops, node.comparators, strict=True):
            if type(op) not in _COMPARE:
                raise ExprError("`is` and `in` cannot be chained; join them with `and`")
            rest.append((_COMPARE[type(op)], self.walk(right)))
        return n.Compare(first=first, rest=tuple(rest))

    def _index(self, node: ast.expr) -> Node:
        if isinstance(node, ast.Slice):
            self._need(Level.TORCH, "a slice")
            ends = [
                self.walk(e) if e is not None else None for e in (node.lower, node.upper, node.step)
            ]
            return n.Slice(lo=ends[0], hi=ends[1], step=ends[2])
        if isinstance(node, ast.Constant) and node.value is Ellipsis:
            self._need(Level.TORCH, "`...`")
            return n.Dots()
        if isinstance(node, ast.Tuple):
            self._need(Level.TORCH, "an index over several axes")
            return n.Sequence(items=tuple(self._index(e) for e in node.elts), is_list=False)
        return self.walk(node)

    def _sequence(self, items: list[ast.expr], is_list: bool) -> Node:
        if any(isinstance(item, ast.Starred) for item in items):
            raise ExprError("`*` cannot unpack here; write the members out")
        return n.Sequence(items=tuple(self.walk(item) for item in items), is_list=is_list)

    def _attribute(self, node: ast.Attribute) -> Node:
        path = _dotted(node)
        if path is not None and path.split(".")[0] in ("torch", "F"):
            return self._host(path)
        known = torchnames.PURE_ATTRIBUTES
        if self.level >= Level.TORCH:
            known = known | torchnames.ATTRIBUTES
        if node.attr not in known:
            near = did_you_mean(node.attr, known)
            if node.attr in (torchnames.METHODS | torchnames.PURE_METHODS):
                near = f"; it is a method: .{node.attr}()"
            raise ExprError(f"`.{node.attr}` is not an attribute of the language{near}")
        return n.Attribute(value=self.walk(node.value), name=node.attr)

    def _host(self, path: str) -> Node:
        self._need(Level.TORCH, f"`{path}`")
        short = path
        if path.startswith("torch.nn.functional."):
            short = "F." + path.removeprefix("torch.nn.functional.")
        if short not in torchnames.TORCH_NAMES:
            near = did_you_mean(short, torchnames.TORCH_NAMES)
            raise ExprError(
                f"`{path}` is not among the functions that an expression may call{near}; put it "
                "into a function in a file: path.py::name"
            )
        return n.HostName(path=short)

    def _call(self, node: ast.Call) -> Node:
        function = node.func
        if isinstance(function, ast.Name):
            if function.id in FUNCTIONS:
                return self._apply(function.id, node)
            if function.id in PROPERTY_FUNCTIONS:
                return self._property(function.id, node)
            known = {*FUNCTIONS, *(PROPERTY_FUNCTIONS if self.level >= Level.PROPERTY else ())}
            raise ExprError(f"no function {function.id}{did_you_mean(function.id, known)}")
        if isinstance(function, ast.Attribute):
            path = _dotted(function)
            if path is not None and path.split(".")[0] in ("torch", "F"):
                host_name = self._host(path)
                assert isinstance(host_name, n.HostName)
                return n.HostCall(
                    function=host_name, args=self._args(node), kwargs=self._kwargs(node)
                )
            return self._method(function, node)
        raise ExprError("only a function or a method can be called")

    def _property(self, name: str, node: ast.Call) -> Node:
        self._need(Level.PROPERTY, f"`{name}`")
        if name == "op" and node.args:
            raise ExprError("`op` takes the args that it replaces by name: op(x=2 * x)")
        if name != "op" and (len(node.args) != 2 or node.keywords):
            raise ExprError(f"`{name}` takes two values: {name}(a, b)")
        host = n.HostName(path=name)
        return n.HostCall(function=host, args=self._args(node), kwargs=self._kwargs(node))

    def _method(self, function: ast.Attribute, node: ast.Call) -> Node:
        known = torchnames.PURE_METHODS
        if self.level >= Level.TORCH:
            known = known | torchnames.METHODS
        if function.attr not in known:
            near = did_you_mean(function.attr, known)
            if function.attr in torchnames.PURE_ATTRIBUTES:
                near = f"; write .{function.attr} without parentheses"
            elif function.attr == "size":
                near = "; write .shape[i]"
            raise ExprError(f"`.{function.attr}()` is not a method of the language{near}")
        return n.Method(
            value=self.walk(function.value), name=function.attr,
            args=self._args(node), kwargs=self._kwargs(node),
        )  # fmt: skip

    def _apply(self, name: str, node: ast.Call) -> Node:
        level, least, most = FUNCTIONS[name]
        self._need(level, f"`{name}`")
        if name == "dict":
            most = 0
        if not least <= len(node.args) <= most:
            wanted = str(least) if least == most else f"{least} to {most}"
            raise ExprError(f"`{name}` takes {wanted} arguments, not {len(node.args)}")
        if node.keywords and name != "dict":
            raise ExprError(f"`{name}` takes no keyword arguments")
        return n.Apply(function=name, args=self._args(node), kwargs=self._kwargs(node))

    def _args(self, node: ast.Call) -> tuple[Node, ...]:
        if any(isinstance(argument, ast.Starred) for argument in node.args):
            raise ExprError("`*args` cannot be said here; write the arguments out")
        return tuple(self.walk(argument) for argument in node.args)

    def _kwargs(self, node: ast.Call) -> tuple[tuple[str, Node], ...]:
        return tuple((name, self.walk(value)) for name, value in keywords(node))


def keywords(node: ast.Call) -> list[tuple[str, ast.expr]]:
    """Return the keyword arguments of a call; none may be given twice or by `**`."""
    found: dict[str, ast.expr] = {}
    for word in node.keywords:
        if word.arg is None:
            raise ExprError("`**kwargs` cannot be said here; write the arguments out")
        if word.arg in found:
            raise ExprError(f"the argument {word.arg} is given twice")
        found[word.arg] = word.value
    return list(found.items())


def _dotted(node: ast.expr) -> str | None:
    parts = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return None
    return ".".join([node.id, *reversed(parts)])


_REFUSED = {
    "Lambda": "a lambda", "ListComp": "a comprehension", "SetComp": "a comprehension",
    "DictComp": "a comprehension", "GeneratorExp": "a comprehension", "NamedExpr": "`:=`",
    "Dict": "a {...} display (write dict(k=v))", "Set": "a set", "JoinedStr": "an f-string",
    "Await": "await", "Yield": "yield", "YieldFrom": "yield", "Starred": "`*`",
}  # fmt: skip
