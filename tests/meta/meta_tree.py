"""What the checks on the repository share: its root, its files, its parsed modules."""

import ast
import subprocess
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


@cache
def tree_files() -> tuple[Path, ...]:
    """Files that are or would be committed, from the root, sorted; without git: all but hidden."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, check=False)
    if done.returncode == 0:
        names = [name for name in done.stdout.decode().split("\0") if name]
        found = {ROOT / name for name in names}
    else:
        found = {p for p in ROOT.rglob("*") if not any(x.startswith(".") for x in p.parts)}
    return tuple(sorted(path for path in found if path.is_file()))


@cache
def gate_modules() -> dict[str, ast.Module]:
    """Path from the root -> parsed module, for every Python file of the package."""
    return {
        path.relative_to(ROOT).as_posix(): ast.parse(path.read_text(encoding="utf-8"))
        for path in tree_files()
        if path.suffix == ".py" and path.relative_to(ROOT).parts[0] == "gate"
    }


def text_of(path: Path) -> str | None:
    """The text of a file, None for one that is not UTF-8 text."""
    raw = path.read_bytes()
    if b"\0" in raw:
        return None
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        return None
