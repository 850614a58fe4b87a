"""The JSON Schema of result.json, made from the types themselves so that the two cannot part."""

from __future__ import annotations

import dataclasses
import enum
import json
import types
import typing
from typing import Any

from gate.report.limits import MAX_INTEGER, MAX_ITEMS, MAX_TEXT, SHA256, SPECIAL_FLOATS
from gate.result import RESULT_VERSION, RunResult

SCHEMA_ID = "https://kernel-gate.dev/result-1.schema.json"
"""`$id` of the schema."""


def describe() -> str:
    """Return the JSON Schema (2020-12) of result.json as text.

    The package ships it as `result.schema.json`; `python tests/report/report_golden.py` writes
    that file anew, and a test compares the two.
    """
    defs: dict[str, Any] = {}
    root = _object(RunResult, defs)
    root["properties"] = {"format": {"const": RESULT_VERSION}, **root["properties"]}
    root["required"] = ["format", *root["required"]]
    head = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": SCHEMA_ID,
        "title": f"kernel-gate result, format {RESULT_VERSION}",
    }
    return json.dumps({**head, **root, "$defs": dict(sorted(defs.items()))}, indent=1) + "\n"


def required(field: dataclasses.Field[Any]) -> bool:
    """Whether a field has no default, so that a file must have it."""
    return field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING


def _object(cls: type[Any], defs: dict[str, Any]) -> dict[str, Any]:
    hints = typing.get_type_hints(cls)
    fields = dataclasses.fields(cls)
    properties = {field.name: _of(hints[field.name], defs) for field in fields}
    if "sha256" in properties:
        properties["sha256"] = {"type": "string", "pattern": f"^{SHA256}$"}
    return {
        "type": "object",
        "properties": properties,
        "required": [field.name for field in fields if required(field)],
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
        return {"type": "array", "items": _of(args[0], defs), "maxItems": MAX_ITEMS}
    if origin is tuple:
        prefix = [_of(arg, defs) for arg in args]
        return {"type": "array", "prefixItems": prefix, "items": False, "minItems": len(prefix)}
    if origin in (types.UnionType, typing.Union):
        return {"anyOf": [_of(arg, defs) for arg in args]}
    return _plain(hint)


def _plain(hint: Any) -> dict[str, Any]:
    if hint is float:
        return {"anyOf": [{"type": "number"}, {"enum": list(SPECIAL_FLOATS)}]}
    if hint is int:
        return {"type": "integer", "minimum": 0, "maximum": MAX_INTEGER}
    if hint is str:
        return {"type": "string", "maxLength": MAX_TEXT}
    return {"type": {bool: "boolean", type(None): "null"}[hint]}
