"""The expression language of format 1: parse to a closed tree, evaluate over variables.

`gate.schema.nodes` has the tree, `gate.schema.parse` the parser, `gate.schema.evaluate` the
evaluator; other rooms import all of it from here.
"""

from gate.schema.calls import looks_like_call, parse_call
from gate.schema.evaluate import call_arguments, call_grid, evaluate
from gate.schema.functions import EvalError, promote
from gate.schema.nodes import Call, DtypeName, Expr, Host, Level, Target
from gate.schema.parse import ExprError, parse_expr

__all__ = [
    "Call",
    "DtypeName",
    "EvalError",
    "Expr",
    "ExprError",
    "Host",
    "Level",
    "Target",
    "call_arguments",
    "call_grid",
    "evaluate",
    "looks_like_call",
    "parse_call",
    "parse_expr",
    "promote",
]
