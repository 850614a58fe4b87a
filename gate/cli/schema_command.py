"""`kernel-gate schema`: check op schemas, or show one as it is understood."""

from __future__ import annotations

import argparse
from pathlib import Path

from gate.cli.options import read_plain
from gate.errors import SchemaError, UsageError
from gate.schema.checktargets import check_targets
from gate.schema.hints import hints
from gate.schema.load import load_files
from gate.schema.model import OpSchema
from gate.schema.show import render


def add(verbs: argparse._SubParsersAction[argparse.ArgumentParser], help_line: str) -> None:
    """Add the command to the parser."""
    parser = verbs.add_parser("schema", help=help_line, allow_abbrev=False)
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    check = actions.add_parser(
        "check", help="report every problem of these files", allow_abbrev=False
    )
    show = actions.add_parser("show", help="print schemas with every default", allow_abbrev=False)
    for action, function in ((check, check_command), (show, show_command)):
        action.add_argument("files", nargs="+", type=Path, metavar="FILE", help="files or folders")
        action.set_defaults(command=function)


def check_command(options: argparse.Namespace) -> int:
    """Check files; 2 and every problem when something is wrong."""
    schemas = _load(options.files)
    problems = check_targets(schemas, _sources)
    if problems:
        raise SchemaError(problems)
    for schema in schemas:
        for hint in hints(schema):
            print(f"hint: {hint}")
    print(f"{len(schemas)} op{'s' if len(schemas) != 1 else ''}: no problems")
    return 0


def _sources(schema: OpSchema, path: str) -> tuple[bytes, ...] | None:
    """Return the files that a path of a schema may mean: its root is the repository's, or a folder
    on the way there that holds a tree of its own; None without a repository that has it."""
    places = Path(schema.file).resolve().parents
    depth = next((n for n, place in enumerate(places) if (place / ".git").exists()), None)
    roots = places[: len(places) if depth is None else depth + 1]
    found = [root / path for root in reversed(roots) if (root / path).is_file()]
    try:
        return tuple(file.read_bytes() for file in found) if found or depth is not None else None
    except OSError:
        return None


def show_command(options: argparse.Namespace) -> int:
    """Print each op as it is understood."""
    print("---\n".join(render(schema) for schema in _load(options.files)), end="")
    return 0


def _load(files: list[Path]) -> tuple[OpSchema, ...]:
    texts: dict[str, bytes] = {}
    for path in files:
        found = sorted(path.rglob("*.op.yaml")) if path.is_dir() else [path]
        for file in found:
            texts[file.as_posix()] = read_plain(file)
    if not texts:
        raise UsageError(f"no *.op.yaml under {', '.join(map(str, files))}")
    return load_files(texts)
