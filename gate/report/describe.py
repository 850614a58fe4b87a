"""The JSON Schema of result.json, made from the types themselves so that the two cannot part."""

from __future__ import annotations

import dataclasses
import enum
import json
import types
import typing
from typing import Any

from gate.result import RESULT_VERSION, RunResult

SCHEMA_ID = "https://kernel-gate.dev/result-1.schema.json"
"""`$id` of the schema."""


def describe() -> str:
    """Return the JSON Schema (2020-12) of result.json as text.

    `python -c "from gate.report.describe import describe; print(describe(), end='')"` writes the
    file that the package ships; a test compares the two.
    """
    defs: dict[str, Any] = {}
    root = _object(RunResult, defs)
    root["properties"] = {"format": {"const": RESULT_VERSION}, **root["properties"]}
    root["required"] = ["format", *root["required"]]
    head = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": SCHEMA_ID,
        "title": "kernel-gate result, format 1",
    }
    return json.dumps({**head, **root, "$defs": dict(sorted(defs.items()))}, indent=1) + "\n"


def _object(cls: type[Any], defs: dict[str, Any]) -> dict[str, Any]:
    hints = typing.get_type_hints(cls)
    fields = dataclasses.fields(cls)
    return {
        "type": "object",
        "properties": {field.name: _of(hints[field.name], defs) for field in fields},
        "required": [
            field.name
            for field in fields
            if field.default is dataclasses.MISSING
            and field.default_factory is dataclasses.MISSING
        ],
        "additionalProperties": False,
    }


def _of(hint: Any, defs: dict[str, Any]) -> dict[str, Any]:
    if dataclasses.is_dataclass(hint):
        cls = typing.cast("type[Any]", hint)
        if cls.__name__ not in defs:
            defs[cls.__name__] = {}
            defs[cls.__name__] = _object(cls, defs)
        return {"$ref": f"#/$defs/{cls.__name__}"}
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        return {"enum": [member.value for member in hint]}
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin is tuple and len(args) == 2 and args[1] is Ellipsis:
        return {"type": "array", "items": _of(args[0], defs)}
    if origin is tuple:
        prefix = [_of(arg, defs) for arg in args]
        return {"type": "array", "prefixItems": prefix, "items": False, "minItems": len(prefix)}
    if origin in (types.UnionType, typing.Union):
        return {"anyOf": [_of(arg, defs) for arg in args]}
    if hint is float:
        return {"anyOf": [{"type": "number"}, {"enum": ["NaN", "Infinity", "-Infinity"]}]}
    names = {str: "string", int: "integer", bool: "boolean", type(None): "null"}
    return {"type": names[hint]}
