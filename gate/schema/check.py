"""What an op schema must satisfy beyond its form."""

from __future__ import annotations

from gate.schema.checkargs import check_args
from gate.schema.checkcalls import check_calls
from gate.schema.checkdims import check_dims
from gate.schema.checknames import check_names
from gate.schema.checkpoints import check_points
from gate.schema.context import Context
from gate.schema.model import OpSchema
from gate.schema.names import NAME
from gate.schema.reader import Reader
from gate.schema.yamldoc import YList, YMap, YNode

PARTS = ("dims", "dtypes", "args")
"""Keys whose own keys are names."""


def check(reader: Reader, schema: OpSchema, document: YNode, *, whole: bool) -> None:
    """Note everything about a schema that cannot be right.

    document  what the schema was read from
    whole     whether all of it could be read; if not, a name that stands anywhere in the document
              is not called unused, and one that it declares is not called unknown
    """
    ctx = Context(reader, schema, document, unreadable=_unreadable(document))
    declared = _declared(document)
    check_names(ctx, declared, None if whole else _mentioned(document))
    check_dims(ctx)
    check_args(ctx)
    check_calls(ctx)
    check_points(ctx, declared)


def _declared(document: YNode) -> frozenset[str]:
    """Return every name that a document declares, whether its declaration could be read or not."""
    names: set[str] = set()
    if isinstance(document, YMap):
        for key in PARTS:
            part = document.get(key)
            if isinstance(part, YMap):
                names |= {name for name, _, _ in part.items}
    return frozenset(names)


def _unreadable(document: YNode) -> bool:
    """Whether a part that declares names is no map, so that any name may be declared."""
    parts = [document.get(key) for key in PARTS] if isinstance(document, YMap) else []
    return any(part is not None and not isinstance(part, YMap) for part in parts)


def _mentioned(document: YNode) -> frozenset[str]:
    """Return every word of a document's values, and the keys of `live`."""
    found: set[str] = set()
    waiting: list[YNode] = [document]
    while waiting:
        node = waiting.pop()
        match node:
            case YMap():
                waiting += [value for _, _, value in node.items]
                live = node.get("live")
                if isinstance(live, YMap):
                    found |= {name for name, _, _ in live.items}
            case YList():
                waiting += node.items
            case _:
                found |= set(NAME.findall(node.text))
    return frozenset(found)
