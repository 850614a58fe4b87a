"""Evaluate the closed tree over variables: numbers, dtypes, arrays and tensors alike."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any, assert_never

from gate.dtypes import DTYPES, Kind
from gate.errors import GateError, did_you_mean
from gate.schema import nodes as n
from gate.schema.nodes import Call, DtypeName, Expr, Host, Node

MAX_POWER_BITS = 4096
"""Bits of the largest integer that `**` and `<<` may make."""
Env = Mapping[str, Any]


class EvalError(GateError):
    """An expression that cannot be evaluated: an unknown variable, a wrong type, division by 0."""


def evaluate(expr: Expr, env: Env, host: Host | None = None) -> Any:
    """Return the value of an expression.

    env   name -> int, float, bool, str, None, DtypeName, array, tensor or list
    host  resolves torch names; None: pure expressions only

    Raises
        EvalError  with the expression and what went wrong
    """
    try:
        return _Evaluator(env, host).value(expr.node)
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
        return [env[name] for name in arg_order], {}
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


def _power(left: Any, right: Any) -> Any:
    if isinstance(left, int) and isinstance(right, int):
        if right >= 0 and abs(left).bit_length() * right > MAX_POWER_BITS:
            raise EvalError(f"{left} ** {right} is too large")
        if left == 0 and right < 0:
            raise EvalError("0 to a negative power")
    return left**right


def _shift(left: Any, right: Any) -> Any:
    if isinstance(left, int) and isinstance(right, int) and not 0 <= right <= MAX_POWER_BITS:
        raise EvalError(f"{left} << {right} is out of bounds")
    return left << right


_BINARY: Mapping[str, Callable[[Any, Any], Any]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv,
    "//": operator.floordiv, "%": operator.mod, "**": _power, "@": operator.matmul,
    "&": operator.and_, "|": operator.or_, "^": operator.xor, "<<": _shift,
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


class _Evaluator:
    def __init__(self, env: Env, host: Host | None) -> None:
        self.env = env
        self.host = host

    def value(self, node: Node) -> Any:
        """Return a node's value, with failures of the values' own operators as EvalError."""
        try:
            return self._value(node)
        except (TypeError, ZeroDivisionError, OverflowError, ValueError, IndexError, KeyError) as p:
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
                return _UNARY[node.op](self.value(node.operand))
            case n.Binary():
                return _BINARY[node.op](self.value(node.left), self.value(node.right))
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
        picked = value[index]
        return picked.item() if _is_numpy_number(picked) else picked

    def _attribute(self, value: Any, name: str) -> Any:
        if name == "dtype" and self.host is None and not isinstance(value, DtypeName):
            return DtypeName(_dtype_name(value.dtype))
        found = getattr(value, name)
        return tuple(found) if name == "shape" else found

    def _method(self, node: n.Method) -> Any:
        value = self.value(node.value)
        args, kwargs = self._args(node.args), self._kwargs(node.kwargs)
        if _is_numpy(value):
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
        args = self._args(node.args)
        match node.function:
            case "cdiv":
                return -(-args[0] // args[1])
            case "next_pow2":
                return 1 << max(0, int(args[0]) - 1).bit_length()
            case "min" | "max":
                return _extreme(node.function, args)
            case "abs":
                return abs(args[0])
            case "sum":
                return _number(args[0].sum()) if hasattr(args[0], "sum") else sum(args[0])
            case "len":
                return len(args[0])
            case "diff":
                return _diff(args[0])
            case "promote":
                return self._promote(args)
            case "bits":
                return DTYPES[_dtype_name(args[0])].bits
            case "is_float":
                return DTYPES[_dtype_name(args[0])].is_float
            case "dict":
                return self._kwargs(node.kwargs)
            case "tuple":
                return tuple(args[0])
            case "tl_dtype":
                return self._host("tl_dtype")(args[0])
        raise EvalError(f"no function {node.function}")

    def _promote(self, args: list[Any]) -> Any:
        name = _dtype_name(args[0])
        for other in args[1:]:
            name = promote(name, _dtype_name(other))
        return self._dtype(name)


def _extreme(which: str, args: list[Any]) -> Any:
    if len(args) == 1:
        values = args[0]
        if hasattr(values, which):
            return _number(getattr(values, which)())
        return max(values) if which == "max" else min(values)
    if any(_is_array(value) for value in args):
        raise EvalError(f"{which} of several arrays; use torch.maximum or torch.minimum")
    return max(args) if which == "max" else min(args)


def _diff(value: Any) -> Any:
    if _is_array(value):
        return value[1:] - value[:-1]
    return [b - a for a, b in zip(value, value[1:], strict=False)]


def _number(value: Any) -> Any:
    return value.item() if hasattr(value, "item") else value


def _is_array(value: Any) -> bool:
    return hasattr(value, "shape") and hasattr(value, "dtype")


def _is_numpy(value: Any) -> bool:
    return type(value).__module__.partition(".")[0] == "numpy"


def _is_numpy_number(value: Any) -> bool:
    return _is_numpy(value) and getattr(value, "shape", None) == ()


def _dtype_name(value: Any) -> str:
    name = str(value).removeprefix("torch.")
    if name not in DTYPES:
        raise EvalError(f"{value!r} is not a dtype")
    return name


def promote(a: str, b: str) -> str:
    """Return the dtype that torch promotes two tensor dtypes to (`torch.promote_types`).

    Raises
        EvalError  torch has no promotion for them (float8 with another float8, uint16 and wider)
    """
    if a == b:
        return a
    one, two = sorted((DTYPES[a], DTYPES[b]), key=lambda d: (_RANK[d.kind], d.bits))
    if two.is_float:
        if not one.is_float:
            return two.name
        if one.bits == 8:
            if two.bits == 8:
                raise EvalError(f"torch does not promote {a} with {b}")
            return two.name
        if one.bits == two.bits == 16:
            return "float32"
        return two.name
    if one.kind is Kind.BOOL:
        return two.name
    if one.kind is two.kind:
        return two.name
    unsigned, signed = (one, two) if one.kind is Kind.UINT else (two, one)
    if unsigned.bits > 8:
        raise EvalError(f"torch does not promote {a} with {b}")
    return signed.name if signed.bits > 8 else "int16"


_RANK = {Kind.BOOL: 0, Kind.UINT: 1, Kind.INT: 1, Kind.FLOAT: 2}
