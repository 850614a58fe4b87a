"""Load op schemas (thin first version)."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from typing import Any

import yaml

from gate.errors import Problem, SchemaError
from gate.schema.expr import Level, looks_like_call, parse_call, parse_expr
from gate.schema.model import *  # noqa: F403
from gate.schema.model import (
    Compare,
    CompareKind,
    Dim,
    DimGroup,
    DimKind,
    Domain,
    DtypeTolerance,
    Grad,
    Io,
    Layouts,
    Live,
    OpSchema,
    Range,
    Return,
    ScalarArg,
    TensorArg,
    Tolerance,
    Values,
)


class _Loader(yaml.SafeLoader):
    pass


_Loader.yaml_implicit_resolvers = {}
for tag, rx, first in [
    ("tag:yaml.org,2002:bool", r"true|false|True|False", "tfTF"),
    ("tag:yaml.org,2002:null", r"null|~|", "n~\0"),
    ("tag:yaml.org,2002:int", r"[-+]?[0-9]+", "-+0123456789"),
    (
        "tag:yaml.org,2002:float",
        r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?\.inf|\.nan",
        "-+.0123456789",
    ),
]:
    _Loader.add_implicit_resolver(
        tag, re.compile(f"^(?:{rx})$"), list(first) if "\0" not in first else [*"n~", ""]
    )
_Loader.add_constructor("tag:yaml.org,2002:int", lambda l, n: int(n.value))
_Loader.add_constructor(
    "tag:yaml.org,2002:float",
    lambda l, n: float(n.value.replace(".inf", "inf").replace(".nan", "nan")),
)


def load_text(text: bytes, file: str) -> tuple[OpSchema, ...]:
    out = []
    for doc in yaml.load_all(text.decode(), _Loader):
        if doc is not None:
            try:
                out.append(_schema(doc, file, hashlib.sha256(text).hexdigest()))
            except SchemaError:
                raise
            except Exception as e:
                raise SchemaError(
                    [Problem(file=file, line=0, path="$", what=f"{type(e).__name__}: {e}")]
                ) from e
    return tuple(out)


def load_files(files: Mapping[str, bytes]) -> tuple[OpSchema, ...]:
    return tuple(s for f in sorted(files) for s in load_text(files[f], f))


def _ce(v: Any) -> Any:
    v = str(v)
    return (
        parse_call(v, level=Level.TORCH) if looks_like_call(v) else parse_expr(v, level=Level.TORCH)
    )


def _e(v: Any) -> Any:
    return parse_expr(str(v))


def _range(v: Any) -> Range:
    lo, hi = str(v).split("..")
    return Range(lo=_e(lo), hi=_e(hi))


def _dim(name: str, v: Any) -> Dim:
    if isinstance(v, dict):
        t = v.get("tile", ())
        return Dim(
            name=name,
            kind=DimKind.RANGE,
            range=_range(v["range"]),
            multiple_of=_e(v["multiple_of"]) if "multiple_of" in v else None,
            tile=tuple(t) if isinstance(t, list) else ((t,) if t else ()),
        )
    if isinstance(v, list):
        return Dim(name=name, kind=DimKind.CHOICES, choices=tuple(v))
    if isinstance(v, int):
        return Dim(name=name, kind=DimKind.FIXED, choices=(v,))
    if ".." in v:
        return Dim(name=name, kind=DimKind.RANGE, range=_range(v))
    return Dim(name=name, kind=DimKind.DERIVED, derived=_e(v))


_SPECIAL = {"inf": float("inf"), "-inf": float("-inf"), "nan": float("nan")}


def _num(v: Any) -> Any:
    return _SPECIAL.get(v, v) if isinstance(v, str) else v


def _values(v: Any) -> Values:
    if v is None:
        return Values()
    if isinstance(v, list):
        return Values(domain=Domain.CHOICES, choices=tuple(v))
    if v == "probabilities":
        return Values(domain=Domain.PROBABILITIES)
    if v == "nonempty":
        return Values(domain=Domain.NONEMPTY)
    if isinstance(v, str):
        return Values(domain=Domain.RANGE, range=_range(v))
    d = v.get("distinct")
    common = dict(
        also=tuple(map(_num, v.get("also", ()))),
        exclude=tuple(v.get("except", ())),
        distinct=("" if d is True else d),
    )
    if "offsets" in v:
        return Values(
            domain=Domain.OFFSETS,
            offsets=_e(v["offsets"]),
            each=_range(v["each"]) if "each" in v else None,
            **common,
        )
    if "range" in v:
        return Values(domain=Domain.RANGE, range=_range(v["range"]), **common)
    return Values(domain=Domain.ANY, **common)


def _live(v: Any) -> Live | None:
    if v is None:
        return None
    if v == "reference":
        return Live(by_reference=True)
    return Live(lengths=tuple((k, _e(x)) for k, x in v.items()))


def _shape(v: Any) -> tuple[Any, bool]:
    if v is None:
        return None, False
    group = bool(v) and v[0] == "..."
    return tuple(_e(x) for x in (v[1:] if group else v)), group


def _arg(name: str, v: Any) -> Any:
    if "scalar" in v:
        return ScalarArg(
            name=name,
            type=v["scalar"],
            values=_values(v.get("values")),
            optional=v.get("optional", False),
            make=_ce(v["make"]) if "make" in v else None,
        )
    shape, group = _shape(v.get("tensor"))
    lst = v.get("list")
    lo, hi = (
        (None, None)
        if lst is None
        else ((lst, lst) if isinstance(lst, int) else map(int, lst.split("..")))
    )
    b = v.get("broadcast", False)
    return TensorArg(
        name=name,
        shape=shape,
        group=group,
        dtype=_e(v["dtype"]),
        values=_values(v.get("values")),
        optional=v.get("optional", False),
        layouts=Layouts(v.get("layouts", "any")),
        io=Io(v.get("io", "in")),
        live=_live(v.get("live")),
        broadcast=tuple(b) if isinstance(b, list) else b,
        make=_ce(v["make"]) if "make" in v else None,
        list_lo=lo,
        list_hi=hi,
        vary=tuple(v.get("vary", ())),
        on_cpu=v.get("device") == "cpu",
    )


def _compare(v: Any) -> Compare | None:
    if v is None:
        return None
    if isinstance(v, str):
        return Compare(kind=CompareKind(v))
    if "picks" in v:
        return Compare(
            kind=CompareKind.PICKS, picks=v["picks"], axis=_e(v["axis"]) if "axis" in v else None
        )
    return Compare(kind=CompareKind.MEAN, mean=_e(v["mean"]))


def _dt(v: Any) -> DtypeTolerance:
    if isinstance(v, (int, float)):
        return DtypeTolerance(factor=float(v))
    if v == "tf32":
        return DtypeTolerance(tf32=True)
    if v == "native":
        return DtypeTolerance(native=True)
    return DtypeTolerance(rtol=v.get("rtol"), atol=v.get("atol"), why=v.get("why", ""))


def _tol(v: Any) -> Tolerance | None:
    if v is None:
        return None
    if isinstance(v, dict) and not set(v) & {"rtol", "atol", "why"}:
        return Tolerance(by_dtype=tuple((k, _dt(x)) for k, x in v.items()))
    return Tolerance(default=_dt(v))


def _ret(name: str, v: Any) -> Return:
    shape, group = _shape(v.get("tensor"))
    when = v.get("when")
    return Return(
        name=name,
        shape=shape,
        group=group,
        dtype=_e(v["dtype"]) if "dtype" in v else None,
        compare=_compare(v.get("compare")),
        order_any=v.get("order") == "any",
        given=v.get("given", False),
        live=_live(v.get("live")),
        when=_e(when) if isinstance(when, str) else None,
        never=when is False,
        is_arg=v.get("is", ""),
        tolerance=_tol(v.get("tolerance")),
    )


def _assign(d: Any) -> Any:
    if isinstance(d, str):
        return d
    return tuple((k, tuple(v) if isinstance(v, list) else v) for k, v in (d or {}).items())


def _list(v: Any) -> list[Any]:
    return [] if v is None else (v if isinstance(v, list) else [v])


def _schema(d: Any, file: str, digest: str) -> OpSchema:
    dims = dict(d.get("dims") or {})
    g = dims.pop("...", None)
    group = None
    if g is not None:
        r = list(map(int, g["rank"].split("..")))
        e = list(map(int, g.get("range", "1..8").split("..")))
        group = DimGroup(rank_lo=r[0], rank_hi=r[1], lo=e[0], hi=e[1])
    grad = d.get("grad")
    if isinstance(grad, list):
        grad = {"args": grad}
    nd = d.get("nondeterministic", False)
    return OpSchema(
        op=d["op"],
        file=file,
        line=1,
        entry=parse_call(d["entry"]),
        kernels=tuple(d.get("kernels", ())),
        reference=_ce(d["reference"]) if "reference" in d else None,
        dims=tuple(_dim(k, v) for k, v in dims.items()),
        group=group,
        dtypes=tuple((k, tuple(v)) for k, v in (d.get("dtypes") or {}).items()),
        args=tuple(_arg(k, v) for k, v in d["args"].items()),
        returns=tuple(_ret(k, v) for k, v in (d.get("returns") or {}).items()),
        where=tuple(map(_e, _list(d.get("where")))),
        grad=Grad(
            args=tuple(grad["args"]),
            returns=tuple(grad["returns"]) if "returns" in grad else None,
            clobbers=_e(grad["clobbers"]) if "clobbers" in grad else None,
            layouts=Layouts(grad.get("layouts", "any")),
        )
        if grad
        else None,
        tolerance=_tol(d.get("tolerance")) or Tolerance(),
        nonfinite=d.get("nonfinite", "note"),
        independent=tuple(_list(d.get("independent"))),
        nondeterministic=nd if isinstance(nd, bool) else tuple(nd),
        raises=tuple((k, tuple(map(_e, _list(v)))) for k, v in (d.get("raises") or {}).items()),
        properties=tuple(parse_expr(p, level=Level.PROPERTY) for p in d.get("properties", ())),
        benchmark=_assign(d.get("benchmark")),
        cases=tuple(map(_assign, d.get("cases", ()))),
        digest=digest,
    )
