"""Read dims, dtype variables and args of an op schema."""

from __future__ import annotations

import math

from gate.schema.expr import Expr
from gate.schema.model import (
    Arg,
    Dim,
    DimGroup,
    DimKind,
    Domain,
    Io,
    Layouts,
    Live,
    ScalarArg,
    ScalarValue,
    TensorArg,
    Values,
)
from gate.schema.reader import Reader, is_range
from gate.schema.yamldoc import YList, YMap, YNode, YScalar

TENSOR_KEYS = (
    "tensor", "dtype", "values", "optional", "layouts", "io", "live", "broadcast", "make", "list",
    "vary", "device",
)  # fmt: skip
SCALAR_KEYS = ("scalar", "values", "optional", "make")
VALUES_KEYS = ("range", "also", "except", "distinct", "offsets", "each")
SCALAR_TYPES = ("int", "float", "bool", "str", "dtype")
GROUP = "..."
_SPECIAL = {".inf": math.inf, "inf": math.inf, "-inf": -math.inf, "-.inf": -math.inf,
            "nan": math.nan, ".nan": math.nan}  # fmt: skip


# --- dims ---------------------------------------------------------------------------------------


def read_dims(reader: Reader, node: YNode | None) -> tuple[tuple[Dim, ...], DimGroup | None]:
    """Return the dims in order, and the dim group if there is one."""
    held = reader.map(node, "$.dims")
    dims: list[Dim] = []
    group = None
    for name, line, value in held.items if held else ():
        if name == GROUP:
            group = _group(reader, value, line)
            continue
        dim = _dim(reader, name, line, value)
        if dim is not None:
            dims.append(dim)
    return tuple(dims), group


def _dim(reader: Reader, name: str, line: int, node: YNode) -> Dim | None:
    path = f"$.dims.{name}"
    if isinstance(node, YMap):
        return _dim_map(reader, name, line, node, path)
    if isinstance(node, YList):
        return _dim_choices(reader, name, line, node, path)
    if (
        isinstance(node, YScalar)
        and isinstance(node.value, int)
        and not isinstance(node.value, bool)
    ):
        extent = reader.whole(node, path)
        return Dim(name=name, kind=DimKind.FIXED, choices=(extent,), line=line)
    if is_range(node):
        ends = reader.range(node, path)
        return Dim(name=name, kind=DimKind.RANGE, range=ends, line=line) if ends else None
    derived = reader.expr(node, path)
    return Dim(name=name, kind=DimKind.DERIVED, derived=derived, line=line) if derived else None


def _dim_map(reader: Reader, name: str, line: int, node: YMap, path: str) -> Dim | None:
    reader.keys(node, path, ("range", "multiple_of", "tile"), ("range",))
    where = node.get("range")
    ends = reader.range(where, f"{path}.range") if where is not None else None
    step = node.get("multiple_of")
    multiple = reader.expr(step, f"{path}.multiple_of") if step is not None else None
    tiles = reader.many(node.get("tile"), f"{path}.tile", lambda n, p: reader.whole(n, p, 1))
    if ends is None:
        return None
    return Dim(
        name=name, kind=DimKind.RANGE, range=ends, multiple_of=multiple, tile=tiles, line=line
    )


def _dim_choices(reader: Reader, name: str, line: int, node: YList, path: str) -> Dim | None:
    extents = reader.many(node, path, lambda n, p: reader.whole(n, p))
    if not extents:
        reader.bad(line, path, "an empty list; name the extents that may occur")
        return None
    if len(set(extents)) < len(extents):
        reader.bad(line, path, "an extent stands twice")
    if len(extents) == 2 and extents[1] >= max(256, 64 * extents[0]):
        lo, hi = extents
        reader.bad(
            line, path,
            f"[{lo}, {hi}] means these two extents only; write {lo}..{hi} for a range, "
            f"or [{hi}, {lo}] for the two",
        )  # fmt: skip
    return Dim(name=name, kind=DimKind.CHOICES, choices=extents, line=line)


def _group(reader: Reader, node: YNode, line: int) -> DimGroup | None:
    path = f'$.dims["{GROUP}"]'
    held = reader.map(node, path, "a map with `rank: a..b`")
    if held is None:
        return None
    reader.keys(held, path, ("rank", "range"), ("rank",))
    ranks = _plain_range(reader, held.get("rank"), f"{path}.rank", (0, 3))
    extents = _plain_range(reader, held.get("range"), f"{path}.range", (1, 8))
    if ranks[1] > 6:
        reader.bad(line, f"{path}.rank", f"rank {ranks[1]}: at most 6 axes are drawn")
    return DimGroup(
        rank_lo=ranks[0], rank_hi=min(ranks[1], 6), lo=extents[0], hi=extents[1], line=line
    )


def _plain_range(
    reader: Reader, node: YNode | None, path: str, default: tuple[int, int]
) -> tuple[int, int]:
    """Return the ends of a range of plain numbers."""
    if node is None:
        return default
    ends = reader.range(node, path)
    if ends is None:
        return default
    if not (ends.lo.text.isdecimal() and ends.hi.text.isdecimal()):
        reader.bad(node.line, path, "both ends must be plain numbers here")
        return default
    lo, hi = int(ends.lo.text), int(ends.hi.text)
    if lo > hi:
        reader.bad(node.line, path, f"{lo}..{hi} is empty")
        return default
    return lo, hi


def read_dtypes(reader: Reader, node: YNode | None) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Return dtype variables with their dtypes."""
    held = reader.map(node, "$.dtypes")
    made = []
    for name, line, value in held.items if held else ():
        path = f"$.dtypes.{name}"
        names = reader.many(value, path, reader.dtype)
        if not names:
            reader.bad(line, path, "an empty list; name the dtypes that may occur")
        if len(set(names)) < len(names):
            reader.bad(line, path, "a dtype stands twice")
        made.append((name, tuple(dict.fromkeys(names))))
    return tuple(made)


# --- args ---------------------------------------------------------------------------------------


def read_args(reader: Reader, node: YNode | None) -> tuple[Arg, ...]:
    """Return the args in order."""
    held = reader.map(node, "$.args")
    made: list[Arg] = []
    for name, line, value in held.items if held else ():
        path = f"$.args.{name}"
        body = reader.map(value, path, "a map with `tensor:` or `scalar:`")
        if body is None:
            continue
        arg: Arg | None
        if body.get("scalar") is not None:
            arg = _scalar(reader, name, line, body, path)
        else:
            arg = _tensor(reader, name, line, body, path)
        if arg is not None:
            made.append(arg)
    return tuple(made)


def _scalar(reader: Reader, name: str, line: int, node: YMap, path: str) -> ScalarArg | None:
    reader.keys(node, path, SCALAR_KEYS)
    kind_node = node.get("scalar")
    assert kind_node is not None
    kind = reader.word(kind_node, f"{path}.scalar", SCALAR_TYPES)
    rule = node.get("make")
    make = reader.call_or_expr(rule, f"{path}.make") if rule is not None else None
    values = _scalar_values(reader, node.get("values"), kind, f"{path}.values")
    if kind and values.domain is Domain.ANY and kind != "bool" and rule is None:
        reader.bad(line, path, f"a {kind} scalar needs `values`: a list or a range")
    optional = reader.flag(node.get("optional"), f"{path}.optional")
    if not kind:
        return None
    return ScalarArg(name=name, type=kind, values=values, optional=optional, make=make, line=line)


def _scalar_values(reader: Reader, node: YNode | None, kind: str, path: str) -> Values:
    if node is None:
        return Values()
    if is_range(node):
        ends = reader.range(node, path)
        if kind not in ("int", "float", ""):
            reader.bad(node.line, path, f"a range is for int and float, not for {kind}")
        return Values(domain=Domain.RANGE, range=ends) if ends else Values()
    if not isinstance(node, YList) or not node.items:
        reader.bad(node.line, path, "a list such as [1, 2], or a range a..b, is expected")
        return Values()
    members = [_member(reader, n, kind, f"{path}[{i}]") for i, n in enumerate(node.items)]
    return Values(domain=Domain.CHOICES, choices=tuple(m for m in members if m is not None))


def _member(reader: Reader, node: YNode, kind: str, path: str) -> ScalarValue:
    value = reader.scalar(node, path, "a value")
    text = node.text if isinstance(node, YScalar) else ""
    if value is None or text == "None":
        reader.bad(node.line, path, f"{text or 'null'!r} is not a value here; use optional: true")
        return None
    if kind == "str":
        return text
    if kind == "dtype":
        return reader.dtype(node, path)
    right = {
        "int": isinstance(value, int) and not isinstance(value, bool),
        "float": isinstance(value, (int, float)) and not isinstance(value, bool),
        "bool": isinstance(value, bool),
    }.get(kind, True)
    if not right:
        reader.bad(node.line, path, f"{text!r} is not a value of the type {kind}")
        return None
    return value


def _tensor(reader: Reader, name: str, line: int, node: YMap, path: str) -> TensorArg | None:
    reader.keys(node, path, TENSOR_KEYS, ("dtype",))
    rule = node.get("make")
    make = reader.call_or_expr(rule, f"{path}.make") if rule is not None else None
    shape, group = read_shape(reader, node.get("tensor"), f"{path}.tensor")
    if node.get("tensor") is None and rule is None:
        reader.bad(line, path, "`tensor: [dims]` is missing (it may be left out with `make` only)")
    kind = node.get("dtype")
    dtype = reader.expr(kind, f"{path}.dtype") if kind is not None else None
    lo, hi = _list_length(reader, node.get("list"), f"{path}.list")
    vary = reader.many(node.get("vary"), f"{path}.vary", reader.text)
    if vary and lo is None:
        reader.bad(node.line_of("vary"), f"{path}.vary", "`vary` goes with `list`")
    device = node.get("device")
    if device is not None:
        reader.word(device, f"{path}.device", ("cpu",))
    if dtype is None:
        return None
    return TensorArg(
        name=name, shape=shape, group=group, dtype=dtype,
        values=_values(reader, node.get("values"), f"{path}.values"),
        optional=reader.flag(node.get("optional"), f"{path}.optional"),
        layouts=_layouts(reader, node.get("layouts"), f"{path}.layouts"),
        io=_io(reader, node.get("io"), f"{path}.io"),
        live=read_live(reader, node.get("live"), f"{path}.live", arg=True),
        broadcast=_broadcast(reader, node.get("broadcast"), f"{path}.broadcast"),
        make=make, list_lo=lo, list_hi=hi, vary=vary, on_cpu=device is not None, line=line,
    )  # fmt: skip


def read_shape(
    reader: Reader, node: YNode | None, path: str
) -> tuple[tuple[Expr, ...] | None, bool]:
    """Return a shape's expressions and whether it starts with the dim group."""
    if node is None:
        return None, False
    if not isinstance(node, YList):
        reader.bad(node.line, path, "a list of dims is expected: [M, N]; [] is 0-d")
        return None, False
    items = node.items
    group = bool(items) and isinstance(items[0], YScalar) and items[0].text == GROUP
    rest = items[1:] if group else items
    start = 1 if group else 0
    made = []
    for position, item in enumerate(rest, start):
        if isinstance(item, YScalar) and item.text == GROUP:
            reader.bad(item.line, f"{path}[{position}]", "`...` stands first in a shape")
            continue
        expr = reader.expr(item, f"{path}[{position}]")
        if expr is not None:
            made.append(expr)
    return tuple(made), group


def _layouts(reader: Reader, node: YNode | None, path: str) -> Layouts:
    word = reader.word(node, path, [m.value for m in Layouts]) if node is not None else ""
    return Layouts(word) if word else Layouts.ANY


def _io(reader: Reader, node: YNode | None, path: str) -> Io:
    word = reader.word(node, path, [m.value for m in Io]) if node is not None else ""
    return Io(word) if word else Io.IN


def _list_length(reader: Reader, node: YNode | None, path: str) -> tuple[int | None, int | None]:
    if node is None:
        return None, None
    if is_range(node):
        lo, hi = _plain_range(reader, node, path, (1, 1))
        return lo, hi
    count = reader.whole(node, path, 1)
    return count, count


def _broadcast(reader: Reader, node: YNode | None, path: str) -> tuple[str, ...] | bool:
    if isinstance(node, YList):
        return reader.many(node, path, reader.text)
    return reader.flag(node, path)


def read_live(reader: Reader, node: YNode | None, path: str, *, arg: bool) -> Live | None:
    """Return which elements mean anything."""
    if node is None:
        return None
    if isinstance(node, YScalar):
        if arg and node.text == "reference":
            return Live(by_reference=True)
        words = "`reference` or a map {dim: lengths}" if arg else "a map {dim: lengths}"
        reader.bad(node.line, path, f"{words} is expected")
        return None
    held = reader.map(node, path)
    if held is None:
        return None
    pairs = [(name, reader.expr(value, f"{path}.{name}")) for name, _, value in held.items]
    return Live(lengths=tuple((name, expr) for name, expr in pairs if expr is not None))


# --- values -------------------------------------------------------------------------------------


def _values(reader: Reader, node: YNode | None, path: str) -> Values:
    if node is None:
        return Values()
    if isinstance(node, YList):
        members = reader.many(node, path, lambda n, p: _number(reader, n, p))
        if not members:
            reader.bad(node.line, path, "an empty list; name the values that may occur")
        return Values(domain=Domain.CHOICES, choices=members)
    if isinstance(node, YMap):
        return _values_map(reader, node, path)
    if is_range(node):
        ends = reader.range(node, path)
        return Values(domain=Domain.RANGE, range=ends) if ends else Values()
    word = reader.word(node, path, ("probabilities", "nonempty"))
    return Values(domain=Domain(word)) if word else Values()


def _values_map(reader: Reader, node: YMap, path: str) -> Values:
    reader.keys(node, path, VALUES_KEYS)
    also = reader.many(node.get("also"), f"{path}.also", lambda n, p: _number(reader, n, p))
    banned = reader.many(node.get("except"), f"{path}.except", lambda n, p: _number(reader, n, p))
    distinct = _distinct(reader, node.get("distinct"), f"{path}.distinct")
    total, each = node.get("offsets"), node.get("each")
    if total is not None:
        if node.get("range") is not None:
            reader.bad(node.line, path, "`offsets` and `range` exclude each other")
        sum_expr = reader.expr(total, f"{path}.offsets")
        steps = reader.range(each, f"{path}.each") if each is not None else None
        return Values(
            domain=Domain.OFFSETS, offsets=sum_expr, each=steps, also=also, exclude=banned
        )
    if each is not None:
        reader.bad(each.line, f"{path}.each", "`each` goes with `offsets`")
    where = node.get("range")
    ends = reader.range(where, f"{path}.range") if where is not None else None
    return Values(
        domain=Domain.RANGE if ends else Domain.ANY, range=ends, also=also, exclude=banned,
        distinct=distinct,
    )  # fmt: skip


def _distinct(reader: Reader, node: YNode | None, path: str) -> str | None:
    if node is None:
        return None
    if isinstance(node, YScalar) and node.value is True:
        return ""
    if isinstance(node, YScalar) and isinstance(node.value, str):
        return node.text
    reader.bad(node.line, path, "true, or the dim along which no value repeats, is expected")
    return None


def _number(reader: Reader, node: YNode, path: str) -> float | int | bool | None:
    text = node.text if isinstance(node, YScalar) else ""
    if text in _SPECIAL:
        return _SPECIAL[text]
    value = node.value if isinstance(node, YScalar) else None
    if isinstance(value, (int, float)):
        return value
    reader.bad(node.line, path, f"{text!r} is not a number (inf, -inf and nan are)")
    return None
