"""Schemas for tests, written as short Python instead of YAML files."""

from __future__ import annotations

from typing import Any

from gate.schema.expr import Call, Expr, Level, Target, parse_expr
from gate.schema.model import (
    Arg,
    Dim,
    DimGroup,
    DimKind,
    Domain,
    Io,
    Layouts,
    Live,
    OpSchema,
    Range,
    Return,
    ScalarArg,
    TensorArg,
    Values,
)


def expr(text: str | int) -> Expr:
    return parse_expr(str(text), level=Level.PURE)


def span(text: str) -> Range:
    lo, hi = text.split("..")
    return Range(lo=expr(lo), hi=expr(hi))


def dim(name: str, rule: str | int | list[int], **more: Any) -> Dim:
    if isinstance(rule, list):
        return Dim(name=name, kind=DimKind.CHOICES, choices=tuple(rule))
    if isinstance(rule, int):
        return Dim(name=name, kind=DimKind.FIXED, choices=(rule,))
    if ".." in rule:
        multiple = more.pop("multiple_of", None)
        return Dim(
            name=name, kind=DimKind.RANGE, range=span(rule),
            multiple_of=None if multiple is None else expr(multiple), **more,
        )  # fmt: skip
    return Dim(name=name, kind=DimKind.DERIVED, derived=expr(rule))


def values(rule: str | list[Any] | None = None, **more: Any) -> Values:
    if "each" in more:
        more["each"] = span(more["each"])
    if "offsets" in more:
        return Values(domain=Domain.OFFSETS, offsets=expr(more.pop("offsets")), **more)
    if rule in ("probabilities", "nonempty"):
        return Values(domain=Domain(rule))
    if isinstance(rule, list):
        return Values(domain=Domain.CHOICES, choices=tuple(rule))
    if rule is None:
        return Values(**more)
    return Values(domain=Domain.RANGE, range=span(rule), **more)


def tensor(name: str, shape: str, dtype: str = "T", **more: Any) -> TensorArg:
    words = shape.split()
    group = bool(words) and words[0] == "..."
    for key, kind in (("layouts", Layouts), ("io", Io)):
        if key in more:
            more[key] = kind(more[key])
    if "live" in more:
        more["live"] = Live(lengths=tuple((k, expr(v)) for k, v in more["live"].items()))
    return TensorArg(
        name=name, shape=tuple(expr(word) for word in words[group:]), group=group,
        dtype=expr(dtype), **more,
    )  # fmt: skip


def scalar(name: str, type: str, rule: Any = None, **more: Any) -> ScalarArg:
    held = values(rule) if rule is not None else Values()
    return ScalarArg(name=name, type=type, values=held, **more)


def ret(name: str, shape: str | None, dtype: str = "T") -> Return:
    words = (shape or "").split()
    group = bool(words) and words[0] == "..."
    dims = None if shape is None else tuple(expr(word) for word in words[group:])
    return Return(name=name, shape=dims, group=group, dtype=expr(dtype))


def schema(
    op: str = "op",
    dims: tuple[Dim, ...] = (),
    args: tuple[Arg, ...] = (),
    returns: tuple[Return, ...] = (),
    dtypes: tuple[tuple[str, tuple[str, ...]], ...] = (("T", ("float32", "float16", "bfloat16")),),
    where: tuple[str, ...] = (),
    group: tuple[int, int, int, int] | None = None,
    raises: tuple[tuple[str, tuple[str, ...]], ...] = (),
    **more: Any,
) -> OpSchema:
    lines = dict(zip(("rank_lo", "rank_hi", "lo", "hi"), group, strict=True)) if group else None
    return OpSchema(
        op=op, file=f"ops/{op}.op.yaml", line=1,
        entry=Call(text=f"ops/{op}.py::{op}", target=Target(module=f"ops/{op}.py", name=op)),
        dims=dims, args=args, returns=returns, dtypes=dtypes,
        where=tuple(expr(text) for text in where),
        raises=tuple((name, tuple(expr(c) for c in conditions)) for name, conditions in raises),
        group=DimGroup(**lines) if lines else None, **more,
    )  # fmt: skip


def softmax(**more: Any) -> OpSchema:
    return schema(
        op="softmax",
        dims=(dim("B", "1..4096"), dim("H", "1..16384", tile=(128,))),
        args=(tensor("x", "B H"),),
        returns=(ret("y", "B H"),),
        **more,
    )


def matmul(**more: Any) -> OpSchema:
    return schema(
        op="matmul",
        dims=(dim("M", "1..512"), dim("N", "1..512"), dim("K", "1..1024")),
        args=(tensor("a", "M K"), tensor("b", "K N")),
        returns=(ret("c", "M N"),),
        **more,
    )


def varied(**more: Any) -> OpSchema:
    """Every kind of arg at once: structured integers, options, lists, broadcasting, outputs."""
    return schema(
        op="varied",
        group=(0, 2, 1, 4),
        dims=(
            dim("NS", "1..4"),
            dim("TQ", "1..64"),
            dim("E", [4, 8]),
            dim("K", "1..min(E, 4)"),
            dim("W", "2 * E"),
            dim("G", 3),
        ),
        dtypes=(("T", ("float32", "bfloat16")), ("I", ("int32", "int64"))),
        args=(
            tensor("x", "... TQ W"),
            tensor("y", "... TQ W", broadcast=True),
            tensor("cu", "NS + 1".replace(" ", ""), "I", values=values(offsets="TQ")),
            tensor("lens", "NS", "I", values=values("diff(cu)..64")),
            tensor("ids", "TQ K", "I", values=values("0..E-1", distinct="", also=(-1,))),
            tensor("mask", "NS TQ", "bool", values=values("nonempty"), optional=True),
            tensor("p", "TQ W", "T", values=values("probabilities")),
            tensor("xs", "K TQ", "T", list_lo=1, list_hi=3, vary=("TQ",)),
            tensor("cache", "NS TQ W", "T", live={"TQ": "lens"}),
            tensor("out", "TQ W", "T", io="out"),
            scalar("scale", "float", [1, 0.5]),
            scalar("win", "int", "1..TQ", optional=True),
            scalar("mode", "str", ["mean", "sum"]),
            scalar("causal", "bool"),
            scalar("to", "dtype", ["float16", "float32"]),
        ),
        returns=(ret("z", "TQ W"),),
        where=("NS <= TQ", "not (causal and mask is not None)"),
        **more,
    )


def all_schemas() -> dict[str, OpSchema]:
    """Return the schemas of these tests by op."""
    return {
        one.op: one for one in (softmax(), matmul(), varied(), elementwise(), integers(), truths())
    }


def truths() -> OpSchema:
    return schema(
        op="truths",
        dims=(dim("B", "1..64"), dim("H", "1..512")),
        dtypes=(),
        args=(tensor("m", "B H", "bool"),),
        returns=(ret("y", "B", "bool"),),
    )


def elementwise() -> OpSchema:
    return schema(
        op="elementwise",
        group=(0, 3, 0, 64),
        dtypes=(("A", ("float32", "int32", "bool")),),
        args=(tensor("a", "...", "A", broadcast=True), tensor("b", "...", "A", io="inout")),
        returns=(ret("y", None, "A"),),
    )


def integers() -> OpSchema:
    return schema(
        op="integers",
        dims=(dim("N", "0..4096"), dim("Q", "8..512", multiple_of=8)),
        dtypes=(("I", ("int8", "uint8", "int64", "uint64")),),
        args=(
            tensor("i", "N Q", "I"),
            tensor("d", "N Q", "int32", values=values("-100..100", exclude=(0,))),
            tensor("c", "Q", "float16", values=values([0.5, 2])),
        ),
        returns=(ret("o", "N Q", "I"),),
    )
