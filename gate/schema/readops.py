"""Read returns, tolerances and the top level of an op schema."""

from __future__ import annotations

import re
from collections.abc import Callable

from gate.dtypes import DTYPES
from gate.errors import did_you_mean
from gate.schema.expr import Call, Expr, Level, Target
from gate.schema.model import (
    Assignment,
    AssignValue,
    Compare,
    CompareKind,
    DtypeTolerance,
    Grad,
    Layouts,
    OpSchema,
    Return,
    Tolerance,
)
from gate.schema.names import NAME
from gate.schema.readargs import read_args, read_dims, read_dtypes, read_live, read_shape
from gate.schema.reader import Reader
from gate.schema.yamldoc import YList, YMap, YNode, YScalar, digest

TOP_KEYS = (
    "format", "op", "entry", "kernels", "reference", "dims", "dtypes", "args", "returns", "where",
    "grad", "tolerance", "nonfinite", "independent", "nondeterministic", "raises", "properties",
    "benchmark", "cases",
)  # fmt: skip
RETURN_KEYS = (
    "tensor", "dtype", "compare", "order", "given", "live", "when", "is", "tolerance",
)  # fmt: skip
_NO_CALL = Call(text="", target=Target(module="", name=""))
"""Stands for an entry that could not be read, so that the rest is still checked."""


def read_op(reader: Reader, node: YNode) -> OpSchema | None:
    """Return the op of one document with what of it could be read; None if it is no map.

    Whether everything could be read is told by the reader's problems.
    """
    top = reader.map(node, "$", "an op schema: a map that starts with `format: 1`")
    if top is None:
        return None
    reader.keys(
        YMap(items=tuple(i for i in top.items if not i[0].startswith("x-")), line=top.line),
        "$", TOP_KEYS, ("format", "op", "entry", "args"),
    )  # fmt: skip
    _format(reader, top)
    op = _op_name(reader, top)
    entry_node, reference_node = top.get("entry"), top.get("reference")
    entry = reader.call(entry_node, "$.entry") if entry_node is not None else None
    reference: Call | Expr | None = None
    if reference_node is not None:
        reference = reader.call_or_expr(reference_node, "$.reference")
    dims, group = read_dims(reader, top.get("dims"))
    return OpSchema(
        op=op, file=reader.file, line=top.line, entry=entry or _NO_CALL, reference=reference,
        dims=dims, group=group, digest=digest(node),
        kernels=reader.some(top.get("kernels"), "$.kernels", _kernel_id(reader)),
        dtypes=read_dtypes(reader, top.get("dtypes")),
        args=read_args(reader, top.get("args")),
        returns=_returns(reader, top.get("returns")),
        where=reader.many(top.get("where"), "$.where", reader.expr),
        grad=_grad(reader, top.get("grad")),
        tolerance=_tolerance(reader, top.get("tolerance"), "$.tolerance") or Tolerance(),
        nonfinite=_nonfinite(reader, top.get("nonfinite")),
        independent=reader.many(top.get("independent"), "$.independent", reader.text),
        nondeterministic=_nondeterministic(reader, top.get("nondeterministic")),
        raises=_raises(reader, top.get("raises")),
        properties=reader.many(top.get("properties"), "$.properties", _property(reader)),
        benchmark=_assignment(reader, top.get("benchmark"), "$.benchmark"),
        cases=_cases(reader, top.get("cases")),
    )  # fmt: skip


def _format(reader: Reader, top: YMap) -> None:
    node = top.get("format")
    if node is None:
        return
    if not (isinstance(node, YScalar) and node.value == 1 and node.value is not True):
        shown = node.text if isinstance(node, YScalar) else "that"
        reader.bad(node.line, "$.format", f"format {shown} is not known here; write format: 1")


def _op_name(reader: Reader, top: YMap) -> str:
    node = top.get("op")
    if node is None:
        return ""
    name = reader.text(node, "$.op", "a name")
    if name and not NAME.fullmatch(name):
        reader.bad(node.line, "$.op", f"{name!r}: letters, digits and _, no digit first")
        return ""
    return name


def _kernel_id(reader: Reader) -> Callable[[YNode, str], str | None]:
    def read(node: YNode, path: str) -> str | None:
        text = reader.text(node, path, "a kernel id or glob")
        if text and "::" not in text:
            reader.bad(node.line, path, f"{text!r} is no kernel id; write path/from/root.py::name")
            return None
        return text or None

    return read


def _property(reader: Reader) -> Callable[[YNode, str], Expr | None]:
    def read(node: YNode, path: str) -> Expr | None:
        return reader.expr(node, path, Level.PROPERTY)

    return read


# --- returns ------------------------------------------------------------------------------------


def _returns(reader: Reader, node: YNode | None) -> tuple[Return, ...]:
    held = reader.map(node, "$.returns")
    made = []
    for name, line, value in held.items if held else ():
        path = f"$.returns.{name}"
        body = reader.map(value, path, "a map with `tensor:` and `dtype:`")
        if body is not None:
            made.append(_return(reader, name, line, body, path))
    return tuple(made)


def _return(reader: Reader, name: str, line: int, node: YMap, path: str) -> Return:
    reader.keys(node, path, RETURN_KEYS)
    shape, group = read_shape(reader, node.get("tensor"), f"{path}.tensor")
    kind, when, same = node.get("dtype"), node.get("when"), node.get("is")
    never = isinstance(when, YScalar) and when.value is False
    if kind is None and same is None and not never:
        reader.bad(
            line, f"{path}.dtype", "the key is missing (only `is` and `when: false` do without)"
        )
    order = node.get("order")
    if order is not None:
        reader.word(order, f"{path}.order", ("any",))
    condition = None
    if when is not None and not never and not (isinstance(when, YScalar) and when.value is True):
        condition = reader.expr(when, f"{path}.when")
    return Return(
        name=name, shape=shape, group=group,
        dtype=reader.expr(kind, f"{path}.dtype") if kind is not None else None,
        compare=_compare(reader, node.get("compare"), f"{path}.compare"),
        order_any=order is not None,
        given=reader.flag(node.get("given"), f"{path}.given"),
        live=read_live(reader, node.get("live"), f"{path}.live", arg=False),
        when=condition, never=never,
        is_arg=reader.text(same, f"{path}.is", "an arg's name") if same is not None else "",
        tolerance=_tolerance(reader, node.get("tolerance"), f"{path}.tolerance"),
        line=line,
    )  # fmt: skip


def _compare(reader: Reader, node: YNode | None, path: str) -> Compare | None:
    if node is None:
        return None
    if not isinstance(node, YMap):
        word = reader.word(node, path, ("close", "exact"))
        return Compare(kind=CompareKind(word)) if word else None
    reader.keys(node, path, ("picks", "axis", "mean"))
    picks, axis, mean = node.get("picks"), node.get("axis"), node.get("mean")
    if (picks is None) == (mean is None):
        reader.bad(node.line, path, "one of `picks: arg` and `mean: expression` is expected")
        return None
    if mean is not None:
        return Compare(kind=CompareKind.MEAN, mean=_nullable(reader, mean, f"{path}.mean"))
    assert picks is not None
    return Compare(
        kind=CompareKind.PICKS, picks=reader.text(picks, f"{path}.picks", "an arg's name"),
        axis=_nullable(reader, axis, f"{path}.axis") if axis is not None else None,
    )  # fmt: skip


def _nullable(reader: Reader, node: YNode, path: str) -> Expr | None:
    """Return an expression where YAML's null means None."""
    if isinstance(node, YScalar) and node.value is None:
        node = YScalar(value="None", text="None", line=node.line)
    return reader.expr(node, path)


# --- tolerance ----------------------------------------------------------------------------------

_FORMS = ("factor", "rtol", "atol", "why")


def _tolerance(reader: Reader, node: YNode | None, path: str) -> Tolerance | None:
    if node is None:
        return None
    if not isinstance(node, YMap) or any(key in _FORMS for key, _, _ in node.items):
        one = _dtype_tolerance(reader, node, path)
        return Tolerance(default=one) if one else None
    made = []
    for key, line, value in node.items:
        if key not in DTYPES or not DTYPES[key].is_float:
            floats = [name for name, kind in DTYPES.items() if kind.is_float]
            reader.bad(
                line, f"{path}.{key}",
                f"{key} is not a float dtype{did_you_mean(key, [*floats, *_FORMS])}; keys are the "
                "working dtypes, or factor, rtol, atol and why",
            )  # fmt: skip
            continue
        one = _dtype_tolerance(reader, value, f"{path}.{key}")
        if one is not None:
            made.append((key, one))
    return Tolerance(by_dtype=tuple(made))


def _dtype_tolerance(reader: Reader, node: YNode, path: str) -> DtypeTolerance | None:
    if isinstance(node, YMap):
        reader.keys(node, path, _FORMS)
        rtol = _bound(reader, node.get("rtol"), f"{path}.rtol")
        atol = _bound(reader, node.get("atol"), f"{path}.atol")
        why, factor = node.get("why"), node.get("factor")
        words = reader.text(why, f"{path}.why") if why is not None else ""
        if factor is not None and (rtol is not None or atol is not None):
            reader.bad(node.line, path, "`factor` and `rtol` or `atol` exclude each other")
            return None
        if factor is not None:
            times = _bound(reader, factor, f"{path}.factor")
            return None if times is None else _times(reader, factor.line, path, times, words)
        if rtol is None and atol is None:
            reader.bad(node.line, path, "`rtol`, `atol` or `factor` is expected")
            return None
        return DtypeTolerance(rtol=rtol, atol=atol, why=words)
    value = node.value if isinstance(node, YScalar) else None
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return _times(reader, node.line, path, value)
    word = reader.word(node, path, ("tf32", "native"))
    return DtypeTolerance(tf32=word == "tf32", native=word == "native") if word else None


def _times(
    reader: Reader, line: int, path: str, value: float, why: str = ""
) -> DtypeTolerance | None:
    if not 0 < value < 1e6:
        reader.bad(line, path, f"a factor of {value} is not between 0 and 1e6")
        return None
    return DtypeTolerance(factor=float(value), why=why)


def _bound(reader: Reader, node: YNode | None, path: str) -> float | None:
    if node is None:
        return None
    value = node.value if isinstance(node, YScalar) else None
    if isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < 1e300:
        return float(value)
    reader.bad(node.line, path, "a number of at least 0 is expected")
    return None


# --- the rest of the top level ------------------------------------------------------------------


def _nonfinite(reader: Reader, node: YNode | None) -> str:
    if node is None:
        return "note"
    return reader.word(node, "$.nonfinite", ("note", "strict", "off")) or "note"


def _nondeterministic(reader: Reader, node: YNode | None) -> tuple[str, ...] | bool:
    if isinstance(node, YList):
        return reader.many(node, "$.nondeterministic", reader.text)
    return reader.flag(node, "$.nondeterministic")


def _raises(reader: Reader, node: YNode | None) -> tuple[tuple[str, tuple[Expr, ...]], ...]:
    held = reader.map(node, "$.raises", "a map of error: condition")
    made = []
    for name, line, value in held.items if held else ():
        path = f"$.raises.{name}"
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_.]*", name):
            reader.bad(line, path, f"{name!r} is not the name of an error class")
        made.append((name, reader.some(value, path, reader.expr)))
    return tuple(made)


def _grad(reader: Reader, node: YNode | None) -> Grad | None:
    if node is None:
        return None
    if not isinstance(node, YMap):
        args = reader.some(node, "$.grad", reader.text)
        return Grad(args=args) if args else None
    reader.keys(node, "$.grad", ("args", "returns", "clobbers", "layouts"), ("args",))
    returns, clobbers, layouts = node.get("returns"), node.get("clobbers"), node.get("layouts")
    word = ""
    if layouts is not None:
        word = reader.word(layouts, "$.grad.layouts", [m.value for m in Layouts])
    condition = None
    if clobbers is not None:
        if isinstance(clobbers, YScalar) and isinstance(clobbers.value, bool):
            text = str(clobbers.value)
            clobbers = YScalar(value=text, text=text, line=clobbers.line)
        condition = reader.expr(clobbers, "$.grad.clobbers")
    return Grad(
        args=reader.some(node.get("args"), "$.grad.args", reader.text),
        returns=reader.many(returns, "$.grad.returns", reader.text)
        if returns is not None else None,
        clobbers=condition,
        layouts=Layouts(word) if word else Layouts.ANY,
    )  # fmt: skip


def _assignment(reader: Reader, node: YNode | None, path: str) -> Assignment:
    held = reader.map(node, path, "a map of name: value")
    return tuple(
        (name, _assigned(reader, value, f"{path}.{name}"))
        for name, _, value in (held.items if held else ())
    )


def _assigned(reader: Reader, node: YNode, path: str) -> AssignValue:
    if isinstance(node, YList):
        return reader.many(node, path, lambda n, p: reader.whole(n, p))
    return reader.scalar(node, path, "a value")


def _cases(reader: Reader, node: YNode | None) -> tuple[Assignment | str, ...]:
    made: list[Assignment | str] = []
    for position, item in enumerate(reader.listed(node)):
        path = f"$.cases[{position}]"
        if isinstance(item, YScalar):
            made.append(reader.text(item, path, "an assignment {..} or a case text"))
        else:
            made.append(_assignment(reader, item, path))
    return tuple(made)
