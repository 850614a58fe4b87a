"""Rules of the house that no linter knows: room sizes, data classes, and what may import what."""

import ast
from collections.abc import Iterator

import pytest
from meta_tree import ROOT, gate_modules

MODULE_LINES = 400
FUNCTION_LINES = 60
POSITIONAL_FIELDS = 2
"""A data class of at most so many fields may take them by position."""


def functions(module: ast.Module) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(module):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def dataclasses(module: ast.Module) -> Iterator[tuple[ast.ClassDef, dict[str, bool]]]:
    for node in ast.walk(module):
        if not isinstance(node, ast.ClassDef):
            continue
        for decorator in node.decorator_list:
            call = decorator.func if isinstance(decorator, ast.Call) else decorator
            if ast.unparse(call).split(".")[-1] != "dataclass":
                continue
            words = decorator.keywords if isinstance(decorator, ast.Call) else []
            yield node, {w.arg or "": ast.unparse(w.value) == "True" for w in words}


def imports(module: ast.Module) -> Iterator[str]:
    for node in ast.walk(module):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module


def test_no_module_is_longer_than_a_reader_can_hold() -> None:
    lines = {name: (ROOT / name).read_text().count("\n") for name in gate_modules()}
    assert {name: n for name, n in lines.items() if n > MODULE_LINES} == {}


def test_no_function_is_longer_than_a_screen() -> None:
    long = {
        f"{name}::{node.name}": node.end_lineno - node.lineno + 1
        for name, module in gate_modules().items()
        for node in functions(module)
        if node.end_lineno is not None and node.end_lineno - node.lineno + 1 > FUNCTION_LINES
    }
    assert long == {}


def test_every_dataclass_has_slots() -> None:
    loose = [
        f"{name}::{node.name}"
        for name, module in gate_modules().items()
        for node, words in dataclasses(module)
        if not words.get("slots")
    ]
    assert loose == []


def test_every_public_frozen_dataclass_of_more_than_two_fields_is_keyword_only() -> None:
    loose = [
        f"{name}::{node.name}"
        for name, module in gate_modules().items()
        for node, words in dataclasses(module)
        if words.get("frozen") and not words.get("kw_only") and not node.name.startswith("_")
        if len(fields(node)) > POSITIONAL_FIELDS
    ]
    assert loose == []


def test_a_dataclass_that_others_may_hold_is_frozen() -> None:
    """What is exchanged between rooms (a model, a protocol, a result) never changes."""
    exchanged = ("model.py", "protocol.py", "result.py", "bound.py", "settings.py", "errors.py")
    loose = [
        f"{name}::{node.name}"
        for name, module in gate_modules().items()
        for node, words in dataclasses(module)
        if name.endswith(exchanged) and not words.get("frozen")
    ]
    assert loose == []


def fields(node: ast.ClassDef) -> list[ast.AnnAssign]:
    return [line for line in node.body if isinstance(line, ast.AnnAssign)]


def test_every_field_of_a_public_dataclass_says_what_it_is() -> None:
    silent = []
    for name, module in gate_modules().items():
        for node, _ in dataclasses(module):
            if node.name.startswith("_"):
                continue
            for field in fields(node):
                if ast.unparse(field.target).startswith("_"):
                    continue
                after = node.body.index(field) + 1
                following = node.body[after] if after < len(node.body) else None
                said = isinstance(following, ast.Expr) and isinstance(following.value, ast.Constant)
                if not said:
                    silent.append(f"{name}::{node.name}.{ast.unparse(field.target)}")
    assert silent == []


def test_only_run_imports_torch_or_triton() -> None:
    guilty = [
        f"{name}: {module_name}"
        for name, module in gate_modules().items()
        if not name.startswith("gate/run/")
        for module_name in imports(module)
        if module_name.split(".")[0] in ("torch", "triton")
    ]
    assert guilty == []


@pytest.mark.parametrize("banned", ["pickle", "marshal", "shelve", "dill", "cloudpickle"])
def test_nothing_that_crosses_a_process_is_an_object(banned: str) -> None:
    guilty = [
        name
        for name, module in gate_modules().items()
        if any(found.split(".")[0] == banned for found in imports(module))
    ]
    assert guilty == []


def test_nothing_outside_the_workers_evaluates_text_as_python() -> None:
    guilty = [
        f"{name}:{node.lineno}"
        for name, module in gate_modules().items()
        if not name.startswith("gate/run/")
        for node in ast.walk(module)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in ("eval", "exec")
    ]
    assert guilty == []


def test_a_subpackage_is_not_an_interface() -> None:
    full = [
        name
        for name in gate_modules()
        if name.endswith("/__init__.py")
        and name != "gate/__init__.py"
        and (ROOT / name).read_bytes()
    ]
    assert full == []
