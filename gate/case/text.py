"""The case text: one line that is a case's id, its replay token and its file name stem.

    op[DIMS; DTYPES; ARGS; seed=HEX]

Four sections, always; an empty one is `-`. Items of a section are separated by one space.

    dims     `B=1`, the dim group `...=2x3` (`...=()` at rank 0)
    dtypes   `T=float16`
    args     a tensor `x=layout/fill`, with axes broadcast to 1 `~0,2` (0 is the last axis) and
             leading axes left out `~d2`; a list `xs=layout/fill*3{N=4,7,1}`; a scalar as a Python
             literal, a str in JSON's quotes, a dtype as `dtype:float16`; not passed: `w=null`;
             the incoming gradient of a return `grad(y)=layout/fill`
    seed     six hexadecimal digits

`parse_case(format_case(case)) == case` for every case that holds no NaN.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import TypeVar

from gate.case.model import ArgChoice, Case, DtypeScalar, Extent, TensorChoice
from gate.case.scan import Scanner
from gate.dtypes import DTYPES
from gate.errors import did_you_mean
from gate.schema.gradients import PREFIX

SEED_LIMIT = 1 << 24
"""Seeds of cases are below this: six hexadecimal digits."""

T = TypeVar("T")

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_ARG_NAME = re.compile(r"grad\([A-Za-z_][A-Za-z0-9_]*\)|[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_DIM_NAME = re.compile(r"\.\.\.|[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_RULE = re.compile(r"[a-z][a-z0-9_]*(?:\([A-Za-z0-9_.,+-]*\))?", re.ASCII)
_INTEGER = re.compile(r"-?[0-9]+", re.ASCII)
_EXTENT = re.compile(r"[0-9]{1,18}", re.ASCII)
_POSITIVE = re.compile(r"[1-9][0-9]{0,8}", re.ASCII)
_NUMBER = re.compile(r"-?inf|nan|-?[0-9]{1,400}(?:\.[0-9]{1,400})?(?:e[+-]?[0-9]{1,5})?", re.ASCII)
_WORD = re.compile(r"True|False|null", re.ASCII)
_HEX = re.compile(r"[0-9a-f]{6}", re.ASCII)
_WORDS: dict[str, bool | None] = {"True": True, "False": False, "null": None}


# --- writing ------------------------------------------------------------------------------------


def format_case(case: Case) -> str:
    """Return the one canonical text of a case.

    Raises
        ValueError  the seed is not below 2**24, or a layout or fill cannot be written

    >>> format_case(Case(op="relu", dims=(("N", 3),), args=(("x", TensorChoice()),), seed=255))
    'relu[N=3; -; x=contiguous/normal; seed=0000ff]'
    """
    if not 0 <= case.seed < SEED_LIMIT:
        raise ValueError(f"a case's seed is below {SEED_LIMIT}, not {case.seed}")
    dims = " ".join(f"{name}={_extent(extent)}" for name, extent in case.dims)
    dtypes = " ".join(f"{name}={dtype}" for name, dtype in case.dtypes)
    args = " ".join(f"{_written(name)}={_choice(choice)}" for name, choice in case.args)
    return f"{case.op}[{dims or '-'}; {dtypes or '-'}; {args or '-'}; seed={case.seed:06x}]"


def _written(name: str) -> str:
    """`grad of y` is written `grad(y)`, which no arg can be called."""
    return f"grad({name.removeprefix(PREFIX)})" if name.startswith(PREFIX) else name


def _read(name: str) -> str:
    return PREFIX + name[5:-1] if name.endswith(")") else name


def _extent(extent: Extent) -> str:
    if isinstance(extent, int):
        return str(extent)
    return "x".join(str(one) for one in extent) if extent else "()"


def _choice(choice: ArgChoice) -> str:
    match choice:
        case TensorChoice():
            return _tensor(choice)
        case DtypeScalar():
            return f"dtype:{choice.name}"
        case None:
            return "null"
        case str():
            return json.dumps(choice)
        case _:
            return repr(choice)


def _tensor(choice: TensorChoice) -> str:
    for rule in (choice.layout, choice.fill):
        if not _RULE.fullmatch(rule):
            raise ValueError(f"{rule!r} cannot stand in a case text")
    text = f"{choice.layout}/{choice.fill}"
    if choice.ones:
        text += "~" + ",".join(str(axis) for axis in choice.ones)
    if choice.dropped:
        text += f"~d{choice.dropped}"
    if choice.count is not None:
        text += f"*{choice.count}"
    for dim, extents in choice.vary:
        text += "{" + dim + "=" + ",".join(str(extent) for extent in extents) + "}"
    return text


# --- reading ------------------------------------------------------------------------------------


def parse_case(text: str) -> Case:
    """Return the case that a text stands for.

    Raises
        CaseTextError  the text is not a case; names the column and what was expected there
    """
    scan = Scanner(text)
    op = scan.take(_NAME, "the op's name")
    scan.expect("[")
    dims = _section(scan, _DIM_NAME, _read_extent)
    scan.expect("; ")
    dtypes = _section(scan, _NAME, _read_dtype)
    scan.expect("; ")
    args = tuple((_read(name), one) for name, one in _section(scan, _ARG_NAME, _read_choice))
    scan.expect("; ")
    scan.expect("seed=")
    seed = int(scan.take(_HEX, "six hexadecimal digits (0-9, a-f)"), 16)
    scan.expect("]")
    scan.end()
    return Case(op=op, dims=dims, dtypes=dtypes, args=args, seed=seed)


def _section(
    scan: Scanner, name_of: re.Pattern[str], read: Callable[[Scanner, str], T]
) -> tuple[tuple[str, T], ...]:
    if scan.skip("-"):
        return ()
    found: dict[str, T] = {}
    while True:
        start = scan.at
        name = scan.take(name_of, "a name" if found else "a name, or `-` for an empty section")
        if name in found:
            scan.fail(f"another name than {name}, which stands here already", at=start)
        scan.expect("=")
        found[name] = read(scan, name)
        if not scan.skip(" "):
            return tuple(found.items())


def _read_extent(scan: Scanner, name: str) -> Extent:
    if name != "...":
        return int(scan.take(_EXTENT, "an extent (0, 1, 2, ...)"))
    if scan.skip("()"):
        return ()
    extents = [int(scan.take(_EXTENT, "an extent, or `()` at rank 0"))]
    while scan.skip("x"):
        extents.append(int(scan.take(_EXTENT, "an extent after `x`")))
    return tuple(extents)


def _read_dtype(scan: Scanner, _: str) -> str:
    start = scan.at
    name = scan.take(_NAME, "a dtype")
    if name not in DTYPES:
        scan.fail(f"a dtype{did_you_mean(name, DTYPES)}", at=start)
    return name


def _read_choice(scan: Scanner, _: str) -> ArgChoice:
    if scan.looking_at('"'):
        return scan.take_string()
    if scan.skip("dtype:"):
        return DtypeScalar(name=_read_dtype(scan, ""))
    rule = scan.peek(_RULE)
    if rule is not None and scan.text.startswith("/", scan.at + len(rule)):
        return _read_tensor(scan)
    if scan.peek(_WORD):
        return _WORDS[scan.take(_WORD, "")]
    number = scan.take(
        _NUMBER, '`layout/fill`, a number, True, False, null, a "string" or `dtype:NAME`'
    )
    return int(number) if _INTEGER.fullmatch(number) else float(number)


def _read_tensor(scan: Scanner) -> TensorChoice:
    layout = scan.take(_RULE, "a layout")
    scan.expect("/")
    fill = scan.take(_RULE, "a fill")
    ones: tuple[int, ...] = ()
    dropped = 0
    if scan.looking_at("~") and not scan.looking_at("~d"):
        scan.expect("~")
        ones = _integers(scan, "an axis counted from the right")
    if scan.skip("~d"):
        dropped = int(scan.take(_POSITIVE, "a number of leading axes, at least 1"))
    count = int(scan.take(_EXTENT, "a number of tensors")) if scan.skip("*") else None
    vary: dict[str, tuple[int, ...]] = {}
    while scan.skip("{"):
        start = scan.at
        dim = scan.take(_NAME, "a dim")
        if dim in vary:
            scan.fail(f"another dim than {dim}, which stands here already", at=start)
        scan.expect("=")
        vary[dim] = _integers(scan, "an extent")
        scan.expect("}")
    return TensorChoice(
        layout=layout, fill=fill, ones=ones, dropped=dropped, count=count,
        vary=tuple(vary.items()),
    )  # fmt: skip


def _integers(scan: Scanner, expected: str) -> tuple[int, ...]:
    numbers = [int(scan.take(_EXTENT, expected))]
    while scan.skip(","):
        numbers.append(int(scan.take(_EXTENT, expected)))
    return tuple(numbers)
