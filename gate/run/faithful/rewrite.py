"""Rewrite a kernel's source so that Python runs it with the compiler's meaning.

The rewritten function keeps its file name and line numbers, sees the globals and closure of the
original, and calls `semantics.Constructs` where Python would do something else than the compiler.
"""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Callable
from types import FunctionType
from typing import Any

from gate.run.faithful.place import HELPER
from gate.run.faithful.unsupported import Unsupported

_BUILTINS = ("min", "max", "print")


def rewritten(
    fn: FunctionType, constructs: Any, replace: Callable[[Any], Any]
) -> Callable[..., Any]:
    """Return `fn` with the compiler's meaning.

    constructs  the object behind `HELPER`.
    replace     maps each global value to what the kernel should see instead.

    Raises
        Unsupported  the source is not available or does not parse
    """
    tree, name = _parsed(fn)
    scope = _scope(fn, replace)
    scope[HELPER] = constructs
    free = inspect.getclosurevars(fn).nonlocals if fn.__closure__ else {}
    scope.update({key: replace(value) for key, value in free.items()})
    known = frozenset(scope) | _locals(tree)
    shadowed = frozenset(word for word in (*_BUILTINS, "range") if word in known)
    body = _Rewriter(shadowed).visit(tree)
    ast.fix_missing_locations(body)
    code = compile(body, fn.__code__.co_filename, "exec")
    found: dict[str, Any] = {}
    exec(code, scope, found)
    made: FunctionType = found[name]
    made.__defaults__ = fn.__defaults__
    made.__kwdefaults__ = fn.__kwdefaults__
    return made


def _scope(fn: FunctionType, replace: Callable[[Any], Any]) -> dict[str, Any]:
    return {key: replace(value) for key, value in fn.__globals__.items()}


def _parsed(fn: FunctionType) -> tuple[ast.Module, str]:
    """Return the source of `fn` as a tree with the line numbers of its file."""
    try:
        lines, first = inspect.getsourcelines(fn)
    except (OSError, TypeError) as error:
        raise Unsupported(f"the source of kernel `{fn.__name__}` is not available") from error
    text = textwrap.dedent("".join(lines))
    start = re.search(r"^(async\s+)?def\s+\w+", text, re.MULTILINE)
    if start is None:
        raise Unsupported(f"the source of kernel `{fn.__name__}` holds no function definition")
    skipped = text[: start.start()].count("\n")
    try:
        tree = ast.parse(text[start.start() :])
    except SyntaxError as error:
        raise Unsupported(f"the source of kernel `{fn.__name__}` does not parse") from error
    ast.increment_lineno(tree, first - 1 + skipped)
    return tree, fn.__name__


def _locals(tree: ast.AST) -> frozenset[str]:
    names = {
        node.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }
    names |= {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
    return frozenset(names)


def _call(name: str, *args: ast.expr) -> ast.expr:
    helper = ast.Name(id=HELPER, ctx=ast.Load())
    return ast.Call(func=ast.Attribute(helper, name, ast.Load()), args=list(args), keywords=[])


def _lazy(node: ast.expr) -> ast.expr:
    arguments = ast.arguments(posonlyargs=[], args=[], kwonlyargs=[], kw_defaults=[], defaults=[])
    return ast.Lambda(args=arguments, body=node)


def _binds(node: ast.AST) -> bool:
    return any(isinstance(inner, ast.NamedExpr) for inner in ast.walk(node))


def _is_constexpr(annotation: ast.expr) -> bool:
    return "constexpr" in ast.unparse(annotation)


class _Rewriter(ast.NodeTransformer):
    """Replaces Python's constructs by calls; everything else stays."""

    def __init__(self, shadowed: frozenset[str]) -> None:
        self.shadowed = shadowed

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        """Drop decorators and annotations; defaults come from the original function."""
        node.decorator_list = []
        node.returns = None
        everything = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
        for arg in everything:
            arg.annotation = None
        node.args.defaults = [ast.Constant(None) for _ in node.args.defaults]
        node.args.kw_defaults = [
            None if default is None else ast.Constant(None) for default in node.args.kw_defaults
        ]
        node.body = [self.visit(statement) for statement in node.body]
        return node

    def visit_Assign(self, node: ast.Assign) -> ast.AST:
        """Numbers become scalars."""
        self.generic_visit(node)
        node.value = ast.copy_location(_call("hold", node.value), node.value)
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        """A constant stays one; another annotation means nothing."""
        if node.value is None or _is_constexpr(node.annotation):
            self.generic_visit(node)
            return node
        plain = ast.Assign(targets=[node.target], value=node.value)
        return self.visit_Assign(ast.copy_location(plain, node))

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.AST:
        """`a += b` is `a = a + b`."""
        if not isinstance(node.target, ast.Name):
            return self.generic_visit(node)
        left = ast.copy_location(ast.Name(id=node.target.id, ctx=ast.Load()), node.target)
        sum_ = ast.copy_location(ast.BinOp(left, node.op, node.value), node)
        return self.visit_Assign(
            ast.copy_location(ast.Assign(targets=[node.target], value=sum_), node)
        )

    def visit_NamedExpr(self, node: ast.NamedExpr) -> ast.AST:
        """An assignment inside an expression stores what a statement would."""
        self.generic_visit(node)
        node.value = ast.copy_location(_call("hold", node.value), node.value)
        return node

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        """`and` and `or` combine blocks."""
        if _binds(node):
            return self.generic_visit(node)
        self.generic_visit(node)
        name = "every" if isinstance(node.op, ast.And) else "some"
        return ast.copy_location(_call(name, *(_lazy(part) for part in node.values)), node)

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        """A chain is a conjunction of its links."""
        self.generic_visit(node)
        if len(node.ops) == 1 or _binds(node):
            return node
        sides = [node.left, *node.comparators]
        links: list[ast.expr] = [
            ast.copy_location(ast.Compare(sides[i], [op], [sides[i + 1]]), node)
            for i, op in enumerate(node.ops)
        ]
        return ast.copy_location(_call("every", *(_lazy(link) for link in links)), node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        """`not` works on blocks."""
        self.generic_visit(node)
        if not isinstance(node.op, ast.Not):
            return node
        return ast.copy_location(_call("negation", node.operand), node)

    def _test(self, node: ast.If | ast.While | ast.IfExp) -> ast.AST:
        self.generic_visit(node)
        node.test = ast.copy_location(_call("truth", node.test), node.test)
        return node

    visit_If = visit_While = visit_IfExp = _test

    def visit_For(self, node: ast.For) -> ast.AST:
        """`range` counts in scalars."""
        self.generic_visit(node)
        call = node.iter
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name):
            name = call.func.id
            if name == "range" and "range" not in self.shadowed:
                call.func = ast.copy_location(
                    ast.Attribute(ast.Name(HELPER, ast.Load()), "loop", ast.Load()), call.func
                )
        return node

    def visit_Assert(self, node: ast.Assert) -> ast.AST:
        """An assertion is checked in debugging only."""
        self.generic_visit(node)
        args = [node.test] if node.msg is None else [node.test, node.msg]
        return ast.copy_location(ast.Expr(_call("check", *args)), node)

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        """`.value` of a constant is the constant."""
        self.generic_visit(node)
        if node.attr == "value" and isinstance(node.ctx, ast.Load):
            return ast.copy_location(_call("value", node.value), node)
        return node

    def visit_Name(self, node: ast.Name) -> ast.AST:
        """`min`, `max` and `print` are Triton's."""
        if node.id in _BUILTINS and node.id not in self.shadowed:
            return ast.copy_location(
                ast.Attribute(ast.Name(HELPER, ast.Load()), node.id, ast.Load()), node
            )
        return node
