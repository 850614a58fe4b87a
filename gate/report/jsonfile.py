"""`result.json`: a `RunResult` as strict JSON, and back, with every field checked."""

from __future__ import annotations

import dataclasses
import enum
import functools
import json
import math
import types
import typing
from importlib import resources
from typing import Any

from gate.errors import ResultError
from gate.result import RESULT_VERSION, RunResult

MAX_BYTES = 64 * 2**20
"""Bytes of a result file that is read."""
MAX_TEXT = 2**20
"""Characters of one string."""
MAX_ITEMS = 100_000
"""Members of one list."""
_SPECIAL = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
SCHEMA_FILE = "result.schema.json"
"""Name of the JSON Schema in this package."""


def dumps(result: RunResult) -> str:
    """Return a result as JSON text; equal results give equal bytes."""
    body = {"format": RESULT_VERSION, **_out(result)}
    return json.dumps(body, indent=1, allow_nan=False, ensure_ascii=True) + "\n"


def loads(text: str | bytes) -> RunResult:
    """Rebuild a result; the text is treated as hostile.

    Raises
        ResultError  it is not a result of this version, with the path of what is wrong
    """
    if len(text) > MAX_BYTES:
        raise ResultError(f"result.json has {len(text):,} bytes; at most {MAX_BYTES:,} are read")
    try:
        body = json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError, UnicodeDecodeError) as problem:
        raise ResultError(f"result.json is not JSON: {str(problem)[:200]}") from None
    if not isinstance(body, dict) or "format" not in body:
        raise ResultError("result.json has no `format`: it was not written by kernel-gate")
    version = body.pop("format")
    if version != RESULT_VERSION:
        raise ResultError(
            f"result.json has format {str(version)[:20]}; this kernel-gate reads {RESULT_VERSION}: "
            "use the version that wrote it"
        )
    made = _in(body, RunResult, "$")
    assert isinstance(made, RunResult)
    return made


def schema_text() -> str:
    """Return the JSON Schema of result.json."""
    return resources.files("gate.report").joinpath(SCHEMA_FILE).read_text(encoding="utf-8")


def _no_constant(word: str) -> Any:
    raise ValueError(f"{word} is not JSON")


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
        return value.encode("utf-8", "replace").decode()
    return value


@functools.cache
def _hints(cls: type[Any]) -> dict[str, Any]:
    return typing.get_type_hints(cls)


def _in(value: Any, hint: Any, where: str) -> Any:
    if dataclasses.is_dataclass(hint):
        return _object(value, typing.cast("type[Any]", hint), where)
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        for member in hint:
            if member.value == value:
                return member
        raise ResultError(f"{where}: {str(value)[:60]!r} is not known")
    origin = typing.get_origin(hint)
    if origin is tuple:
        return _tuple(value, typing.get_args(hint), where)
    if origin in (types.UnionType, typing.Union):
        return _union(value, typing.get_args(hint), where)
    return _plain(value, hint, where)


def _object(value: Any, cls: type[Any], where: str) -> Any:
    if not isinstance(value, dict):
        raise ResultError(f"{where}: an object is expected")
    hints = _hints(cls)
    unknown = sorted(set(value) - set(hints))
    if unknown:
        raise ResultError(f"{where}: unknown key {unknown[0][:60]!r}")
    needed = {f.name for f in dataclasses.fields(cls) if _required(f)}
    missing = sorted(needed - set(value))
    if missing:
        raise ResultError(f"{where}: the key {missing[0]} is missing")
    return cls(**{key: _in(item, hints[key], f"{where}.{key}") for key, item in value.items()})


def _required(field: dataclasses.Field[Any]) -> bool:
    return field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING


def _tuple(value: Any, hints: tuple[Any, ...], where: str) -> tuple[Any, ...]:
    if not isinstance(value, list) or len(value) > MAX_ITEMS:
        raise ResultError(f"{where}: a list of at most {MAX_ITEMS:,} is expected")
    if len(hints) == 2 and hints[1] is Ellipsis:
        return tuple(_in(item, hints[0], f"{where}[{i}]") for i, item in enumerate(value))
    if len(value) != len(hints):
        raise ResultError(f"{where}: a list of {len(hints)} is expected")
    pairs = zip(value, hints, strict=True)
    return tuple(_in(item, hint, f"{where}[{i}]") for i, (item, hint) in enumerate(pairs))


def _union(value: Any, hints: tuple[Any, ...], where: str) -> Any:
    if value is None and type(None) in hints:
        return None
    others = [hint for hint in hints if hint is not type(None)]
    return _in(value, others[0], where)


def _plain(value: Any, hint: Any, where: str) -> Any:
    if hint is float:
        if isinstance(value, str) and value in _SPECIAL:
            return _SPECIAL[value]
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            return float(value)
        raise ResultError(f"{where}: a number is expected")
    if hint is str and isinstance(value, str):
        if len(value) > MAX_TEXT:
            raise ResultError(f"{where}: a text of {len(value):,} characters")
        return value
    if hint is bool and isinstance(value, bool):
        return value
    if hint is int and isinstance(value, int) and not isinstance(value, bool):
        if abs(value) >= 2**64:
            raise ResultError(f"{where}: a number out of range")
        return value
    raise ResultError(f"{where}: {getattr(hint, '__name__', hint)} is expected")
