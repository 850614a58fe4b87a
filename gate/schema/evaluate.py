"""Evaluate the closed tree over variables: numbers, dtypes, arrays and tensors alike."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any, assert_never

import numpy as np

from gate.errors import did_you_mean
from gate.schema import functions
from gate.schema import nodes as n
from gate.schema.functions import EvalError
from gate.schema.nodes import Call, DtypeName, Expr, Host, Node

MAX_BITS = 4096
"""Bits of the largest integer that an operator may make."""
MAX_JOINED = 4096
"""Members of the longest list or tuple that `+` may make."""
Env = Mapping[str, Any]


def evaluate(expr: Expr, env: Env, host: Host | None = None) -> Any:
    """Return the value of an expression.

    env   name -> int, float, bool, str, None, DtypeName, array, tensor or list
    host  resolves torch names; None: pure expressions only

    Raises
        EvalError  with the expression and what went wrong
    """
    node = expr.node
    if isinstance(node, n.Const):  # as most bounds are; like whole numbers, it needs no guard
        return node.value
    try:
        if host is None and all(type(env.get(name)) is int for name in expr.names):
            return _Evaluator(env, host).value(node)
        with np.errstate(divide="raise", invalid="raise"):
            return _Evaluator(env, host).value(node)
    except EvalError as problem:
        raise EvalError(f"in `{expr.text}`: {problem.message}") from None


def call_arguments(
    call: Call, env: Env, arg_order: Sequence[str], host: Host | None = None
) -> tuple[list[Any], dict[str, Any]]:
    """Return positional and keyword arguments of a call.

    arg_order  what is passed, by position, when the call has no parentheses

    Raises
        EvalError  an argument cannot be evaluated
    """
    if call.args is None and not call.kwargs:
        evaluator = _Evaluator(env, host)
        return [evaluator.value(n.Name(id=name)) for name in arg_order], {}
    positional = [evaluate(expr, env, host) for expr in call.args or ()]
    return positional, {name: evaluate(expr, env, host) for name, expr in call.kwargs}


def call_grid(call: Call, env: Env, host: Host | None = None) -> tuple[int, ...]:
    """Return the launch grid of a raw kernel.

    Raises
        EvalError  there is none, or it is not one to three whole numbers
    """
    if call.grid is None:
        raise EvalError(f"`{call.text}` has no grid")
    value = evaluate(call.grid, env, host)
    axes = tuple(value) if isinstance(value, (tuple, list)) else (value,)
    if not 1 <= len(axes) <= 3 or any(isinstance(a, bool) or not isinstance(a, int) for a in axes):
        raise EvalError(f"the grid `{call.grid.text}` is {axes!r}, not one to three whole numbers")
    return axes


def _operand(value: Any) -> bool:
    """Whether arithmetic may touch a value: numbers and arrays; no text, no dtype, no list."""
    return isinstance(value, (int, float)) or functions.is_array(value)


def _binary(op: str, left: Any, right: Any) -> Any:
    """Apply an operator; what would fill the memory is refused before it is computed."""
    for kind in (list, tuple):
        if op == "+" and isinstance(left, kind) and isinstance(right, kind):
            if len(left) + len(right) > MAX_JOINED:
                raise EvalError(f"a list of more than {MAX_JOINED} members")
            return kind((*left, *right))
    for value in (left, right):
        if not _operand(value):
            raise EvalError(f"`{op}` takes numbers and tensors, not {_shown(value)}")
    if isinstance(left, int) and isinstance(right, int):
        _fits(op, int(left), int(right))
    result = _BINARY[op](left, right)
    if isinstance(result, complex):
        raise EvalError(f"{left} {op} {right} is not a real number")
    return result


def _fits(op: str, left: int, right: int) -> None:
    match op:
        case "**":
            bits = left.bit_length() * max(right, 0)
        case "<<":
            bits = left.bit_length() + right
        case "*":
            bits = left.bit_length() + right.bit_length()
        case _:
            return
    if bits > MAX_BITS:
        raise EvalError(f"the result of `{op}` is too large (more than {MAX_BITS} bits)")


def _shown(value: Any) -> str:
    if isinstance(value, n.DtypeName):
        return f"the dtype {value}"
    return "None" if value is None else f"a {type(value).__name__}"


_BINARY: Mapping[str, Callable[[Any, Any], Any]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv,
    "//": operator.floordiv, "%": operator.mod, "**": operator.pow, "@": operator.matmul,
    "&": operator.and_, "|": operator.or_, "^": operator.xor, "<<": operator.lshift,
    ">>": operator.rshift,
}  # fmt: skip
_COMPARE: Mapping[str, Callable[[Any, Any], Any]] = {
    "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le,
    ">": operator.gt, ">=": operator.ge,
}  # fmt: skip
_UNARY: Mapping[str, Callable[[Any], Any]] = {
    "-": operator.neg, "+": operator.pos, "~": operator.invert,
    "not": operator.not_,
}  # fmt: skip


def _unary(op: str, value: Any) -> Any:
    if op != "not" and not _operand(value):
        raise EvalError(f"`{op}` takes a number or a tensor, not {_shown(value)}")
    return _UNARY[op](value)


class _Evaluator:
    def __init__(self, env: Env, host: Host | None) -> None:
        self.env = env
        self.host = host

    def value(self, node: Node) -> Any:
        """Return a node's value, with failures of the values' own operators as EvalError."""
        if isinstance(node, n.Name) and type(held := self.env.get(node.id)) is int:
            return held
        try:
            return self._value(node)
        except (TypeError, ArithmeticError, ValueError, LookupError, AttributeError) as p:
            if self.host is not None and isinstance(node, (n.HostCall, n.Method)):
                raise  # torch's own words and traceback say more than ours
            raise EvalError(f"{type(p).__name__}: {p}") from p

    def _value(self, node: Node) -> Any:
        match node:
            case n.Const():
                return node.value
            case n.Name():
                return self._name(node.id)
            case n.DtypeLiteral():
                return self._dtype(node.name)
            case n.HostName():
                return self._host(node.path)
            case n.Unary():
                return _unary(node.op, self.value(node.operand))
            case n.Binary():
                return _binary(node.op, self.value(node.left), self.value(node.right))
            case n.Logic():
                return self._logic(node)
            case n.Compare():
                return self._compare(node)
            case n.Member():
                value = self.value(node.value)
                return (value in [self.value(o) for o in node.options]) is not node.negated
            case n.IsNone():
                return (self._or_none(node.value) is None) is not node.negated
            case n.Choice():
                return self.value(node.then if self.value(node.test) else node.other)
            case n.Dots():
                return Ellipsis
            case n.Slice():
                ends = (
                    self.value(e) if e is not None else None for e in (node.lo, node.hi, node.step)
                )
                return slice(*ends)
            case n.Index():
                return self._index(self.value(node.value), self.value(node.index))
            case n.Sequence():
                items = [self.value(item) for item in node.items]
                return items if node.is_list else tuple(items)
            case n.Apply():
                return self._apply(node)
            case n.HostCall():
                function = self._host(node.function.path)
                return function(*self._args(node.args), **self._kwargs(node.kwargs))
            case n.Attribute():
                return self._attribute(self.value(node.value), node.name)
            case n.Method():
                return self._method(node)
        assert_never(node)

    def _name(self, name: str) -> Any:
        if name not in self.env:
            raise EvalError(f"no variable {name}{did_you_mean(name, self.env)}")
        value = self.env[name]
        return self._dtype(value) if isinstance(value, DtypeName) else value

    def _or_none(self, node: Node) -> Any:
        if isinstance(node, n.Name) and node.id not in self.env:
            return None
        return self.value(node)

    def _dtype(self, name: str) -> Any:
        if self.host is None:
            return DtypeName(name)
        return self.host.resolve(f"torch.{name}")

    def _host(self, path: str) -> Any:
        if self.host is None:
            raise EvalError(f"`{path}` needs torch, which is not available here")
        return self.host.resolve(path)

    def _logic(self, node: n.Logic) -> Any:
        value: Any = None
        for operand in node.operands:
            value = self.value(operand)
            if bool(value) is (node.op == "or"):
                return value
        return value

    def _compare(self, node: n.Compare) -> Any:
        left = self.value(node.first)
        result: Any = True
        for op, right_node in node.rest:
            right = self.value(right_node)
            result = _COMPARE[op](left, right)
            if len(node.rest) > 1 and not bool(result):
                return False
            left = right
        return result

    def _index(self, value: Any, index: Any) -> Any:
        if isinstance(value, str):
            raise EvalError("a text has no elements here")
        picked = value[index]
        return functions.number(picked) if functions.is_numpy(picked) else picked

    def _attribute(self, value: Any, name: str) -> Any:
        if value is None or isinstance(value, (str, int, float)):
            raise EvalError(f"{_shown(value)} has no .{name}")
        if name == "dtype" and self.host is None:
            return DtypeName(functions.dtype_name(value.dtype))
        found = getattr(value, name)
        return tuple(found) if name == "shape" else found

    def _method(self, node: n.Method) -> Any:
        value = self.value(node.value)
        args, kwargs = self._args(node.args), self._kwargs(node.kwargs)
        if value is None or isinstance(value, (str, int, float)):
            raise EvalError(f"{_shown(value)} has no .{node.name}()")
        if functions.is_numpy(value):
            if node.name == "stride":
                steps = tuple(s // value.itemsize for s in value.strides)
                return steps[args[0]] if args else steps
            if node.name == "numel":
                return int(value.size)
            if node.name == "is_contiguous":
                return bool(value.flags.c_contiguous)
        return getattr(value, node.name)(*args, **kwargs)

    def _args(self, args: tuple[Node, ...]) -> list[Any]:
        return [self.value(argument) for argument in args]

    def _kwargs(self, kwargs: tuple[tuple[str, Node], ...]) -> dict[str, Any]:
        return {name: self.value(value) for name, value in kwargs}

    def _apply(self, node: n.Apply) -> Any:
        if node.function == "dict":
            return self._kwargs(node.kwargs)
        args = self._args(node.args)
        if node.function == "tl_dtype":
            return self._host("tl_dtype")(args[0])
        if node.function == "promote":
            return self._dtype(functions.promote_all(args))
        return functions.PLAIN[node.function](*args)
