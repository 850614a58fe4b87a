"""What format 1 can say and this version cannot do yet: refused by name, never ignored."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from gate.errors import Problem, SchemaError
from gate.schema.model import Io, OpSchema, TensorArg

Uses = Callable[[OpSchema], bool]


def _written_list(schema: OpSchema) -> bool:
    return any(
        isinstance(arg, TensorArg) and arg.list_lo is not None and arg.io in (Io.INOUT, Io.OUT)
        for arg in schema.args
    )


UNSUPPORTED: Mapping[str, tuple[Uses, str]] = MappingProxyType(
    {
        "$.args.*.io": (_written_list, "a list of tensors that the call writes is not judged yet"),
    }
)
"""key -> (whether a schema uses it, why it is refused)."""


def refuse_unsupported(schema: OpSchema) -> None:
    """Refuse a schema that uses what does not exist yet.

    Raises
        SchemaError  with every such key
    """
    problems = [
        Problem(
            file=schema.file, line=schema.line, path=key,
            what=f"op {schema.op}: {why}; leave the key out, or write a schema without it",
        )
        for key, (uses, why) in UNSUPPORTED.items()
        if uses(schema)
    ]  # fmt: skip
    if problems:
        raise SchemaError(problems)
