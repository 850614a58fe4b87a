"""`result.json`: a `RunResult` as strict JSON, and back, with every field checked.

A result may come from a job that ran code of strangers, so the reader takes nothing on trust: not
the size, not the nesting, not the type of any field.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import json
import math
import re
import types
import typing
from importlib import resources
from typing import Any

from gate.errors import ResultError, did_you_mean
from gate.report.describe import required
from gate.report.limits import (
    MAX_BYTES,
    MAX_INTEGER,
    MAX_ITEMS,
    MAX_TEXT,
    SHA256,
    SPECIAL_FLOATS,
)
from gate.result import RESULT_VERSION, RunResult

SCHEMA_FILE = "result.schema.json"
"""Name of the JSON Schema in this package."""
_SHA256 = re.compile(SHA256)
_HIGH_LOW = re.compile("[\ud800-\udbff](?=[\udc00-\udfff])")


def dumps(result: RunResult) -> str:
    """Return a result as JSON text, ASCII only; equal results give equal bytes.

    `loads` gives back an equal result (NaN stays NaN). Lone surrogates, by which Python carries
    the bytes of odd file names, are kept as escapes. A text beyond what `loads` takes is cut.
    """
    body = {"format": RESULT_VERSION, **_out(result)}
    return json.dumps(body, indent=1, allow_nan=False, ensure_ascii=True) + "\n"


def loads(text: str | bytes) -> RunResult:
    """Rebuild a result; the text is treated as hostile.

    Raises
        ResultError  it is not a result of this version; names the place and what is expected there
    """
    if len(text) > MAX_BYTES:
        raise ResultError(f"result.json has {len(text):,} bytes; at most {MAX_BYTES:,} are read")
    body = _parsed(text)
    if not isinstance(body, dict) or "format" not in body:
        raise ResultError("result.json has no `format`: it was not written by kernel-gate")
    version = body.pop("format")
    if version != RESULT_VERSION or isinstance(version, bool):
        raise ResultError(
            f"result.json has format {_shown(version)}; this kernel-gate reads {RESULT_VERSION}: "
            "use the version that wrote it"
        )
    made = _in(body, RunResult, "$")
    assert isinstance(made, RunResult)
    return made


def schema_text() -> str:
    """Return the JSON Schema of result.json."""
    return resources.files("gate.report").joinpath(SCHEMA_FILE).read_text(encoding="utf-8")


def _parsed(text: str | bytes) -> Any:
    try:
        plain = text.decode("utf-8") if isinstance(text, bytes) else text
        return json.loads(plain, parse_constant=_no_constant, object_pairs_hook=_no_duplicates)
    except (ValueError, RecursionError) as problem:
        why = "nested too deep" if isinstance(problem, RecursionError) else str(problem)[:200]
        raise ResultError(f"result.json is not JSON: {why}") from None


def _no_constant(word: str) -> Any:
    raise ValueError(f"{word} is not JSON")


def _no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        raise ValueError("a key is given twice in one object")
    return made


def _shown(value: Any) -> str:
    """Return the start of a value of unknown size and kind, for a message."""
    if isinstance(value, (dict, list)):
        return "an object" if isinstance(value, dict) else "a list"
    return ascii(value[:60] if isinstance(value, str) else value)[:64]


# --- writing ------------------------------------------------------------------------------------


def _out(value: Any) -> Any:
    if dataclasses.is_dataclass(value):
        return {f.name: _out(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, (tuple, list)):
        return [_out(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, str):
        # Two surrogates in a row would come back as the one character that they encode.
        return _HIGH_LOW.sub("\ufffd", value[:MAX_TEXT])
    return value


# --- reading ------------------------------------------------------------------------------------


@functools.cache
def _hints(cls: Any) -> dict[str, Any]:
    return typing.get_type_hints(cls)


@functools.cache
def _needed(cls: Any) -> frozenset[str]:
    return frozenset(field.name for field in dataclasses.fields(cls) if required(field))


def _in(value: Any, hint: Any, where: str) -> Any:
    if dataclasses.is_dataclass(hint):
        return _object(value, hint, where)
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        return _member(value, hint, where)
    origin = typing.get_origin(hint)
    if origin is tuple:
        return _tuple(value, typing.get_args(hint), where)
    if origin in (types.UnionType, typing.Union):
        return _optional(value, typing.get_args(hint), where)
    return _plain(value, hint, where)


def _object(value: Any, cls: Any, where: str) -> Any:
    if not isinstance(value, dict):
        raise ResultError(f"{where}: an object is expected, not {_shown(value)}")
    hints = _hints(cls)
    unknown = sorted(set(value) - set(hints))
    if unknown:
        near = did_you_mean(unknown[0][:60], hints)
        raise ResultError(f"{where}: there is no key {_shown(unknown[0])} here{near}")
    missing = sorted(_needed(cls) - set(value))
    if missing:
        raise ResultError(f"{where}: the key {missing[0]} is missing")
    made = {key: _in(item, hints[key], f"{where}.{key}") for key, item in value.items()}
    if "sha256" in made and not _SHA256.fullmatch(made["sha256"]):
        raise ResultError(f"{where}.sha256: 64 hex digits are expected")
    return cls(**made)


def _member(value: Any, kinds: type[enum.Enum], where: str) -> enum.Enum:
    if isinstance(value, str):
        for member in kinds:
            if member.value == value:
                return member
    known = [str(member.value) for member in kinds]
    near = did_you_mean(value[:60], known) if isinstance(value, str) else ""
    raise ResultError(f"{where}: {_shown(value)} is no {kinds.__name__}{near}")


def _tuple(value: Any, hints: tuple[Any, ...], where: str) -> tuple[Any, ...]:
    if not isinstance(value, list):
        raise ResultError(f"{where}: a list is expected, not {_shown(value)}")
    if len(hints) == 2 and hints[1] is Ellipsis:
        if len(value) > MAX_ITEMS:
            raise ResultError(f"{where}: {len(value):,} members; at most {MAX_ITEMS:,} are read")
        return tuple(_in(item, hints[0], f"{where}[{i}]") for i, item in enumerate(value))
    if len(value) != len(hints):
        raise ResultError(f"{where}: a list of {len(hints)} is expected, not of {len(value)}")
    pairs = zip(value, hints, strict=True)
    return tuple(_in(item, hint, f"{where}[{i}]") for i, (item, hint) in enumerate(pairs))


def _optional(value: Any, hints: tuple[Any, ...], where: str) -> Any:
    if value is None:
        return None
    (hint,) = (hint for hint in hints if hint is not type(None))
    return _in(value, hint, where)


def _plain(value: Any, hint: Any, where: str) -> Any:
    if hint is float:
        return _float(value, where)
    if hint is bool and isinstance(value, bool):
        return value
    if hint is str and isinstance(value, str):
        if len(value) > MAX_TEXT:
            raise ResultError(f"{where}: {len(value):,} characters; at most {MAX_TEXT:,} are read")
        return value
    if hint is int and isinstance(value, int) and not isinstance(value, bool):
        if not 0 <= value <= MAX_INTEGER:
            raise ResultError(f"{where}: {_shown(value)} is out of range")
        return value
    names = {str: "text", int: "a whole number", bool: "true or false"}
    raise ResultError(f"{where}: {names[hint]} is expected, not {_shown(value)}")


def _float(value: Any, where: str) -> float:
    if isinstance(value, str) and value in SPECIAL_FLOATS:
        return float(value.replace("Infinity", "inf"))
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        try:
            made = float(value)
        except OverflowError:
            made = math.inf
        if math.isfinite(made):
            return made
        raise ResultError(f'{where}: the number is out of range; write it as "Infinity"')
    special = ", ".join(f'"{word}"' for word in SPECIAL_FLOATS)
    raise ResultError(f"{where}: a number or one of {special} is expected, not {_shown(value)}")
