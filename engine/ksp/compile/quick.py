"""Calls of the function table that Python does quicker by itself: lengths, sums, quotients and conversions."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from ksp.check.typed import Apply, Comprehend, Expr
from ksp.check.types import Double, Int, List
from ksp.compile import code

if TYPE_CHECKING:
    from ksp.compile.emit import Chain, Emitter


def quick(emitter: Emitter, expr: Apply, chain: Chain) -> ast.expr | None:
    """The code of the call, if Python has an operator or a quick function of its own for it; else None."""
    first = expr.arguments[0]
    match expr.row.name, first.type:
        case "size", _:
            if isinstance(first, Comprehend) and first.kind == "filter" and isinstance(first.range.type, List):
                return _counted(emitter, first, chain)
            return code.call("len", emitter.expr(first, chain))
        case "sum", _:
            return _sum(emitter, expr, first, chain)
        case "div", _:
            return _div(emitter, expr, chain)
        case "int", Int():
            return emitter.expr(first, chain)
        case "int", Double():
            value = emitter.kept(emitter.expr(first, chain), chain)
            inside = ast.Compare(code.constant(-9e18), [ast.Lt(), ast.Lt()], [value, code.constant(9e18)])
            return ast.IfExp(inside, code.call("int", value), code.call("_to_int", value))
        case "abs", Double():
            return code.call("abs", emitter.expr(first, chain))
        case "double", Int():
            return code.call("float", emitter.expr(first, chain))
        case ("min" | "max") as function, Int() | Double() if not expr.row.method:
            return code.call(function, *(emitter.expr(a, chain) for a in expr.arguments))
    return None


def _sum(emitter: Emitter, expr: Apply, values: Expr, chain: Chain) -> ast.expr:
    """Of ints Python's own sum; of doubles one that adds from the left and does not compensate."""
    if isinstance(expr.type, Double):
        return code.call("_total", emitter.expr(values, chain), code.constant(0.0))
    if (
        isinstance(values, Comprehend)
        and values.kind == "map"
        and emitter.place(values, chain).level is chain[-1].level
    ):
        clauses, body, _ = emitter.looped(values, chain)
        return code.call("_wrap", code.call("sum", ast.ListComp(body, clauses)))
    return code.call("_wrap", code.call("sum", emitter.expr(values, chain)))


def _div(emitter: Emitter, expr: Apply, chain: Chain) -> ast.expr:
    """The quick case in place: doubles by what is not 0, ints of which neither is negative."""
    a, b = (emitter.kept(emitter.expr(part, chain), chain) for part in expr.arguments[:2])
    otherwise = emitter.expr(expr.arguments[2], chain)
    zero = code.constant(0)
    if isinstance(expr.type, Double):
        return ast.IfExp(code.compare(b, ast.NotEq(), zero), ast.BinOp(a, ast.Div(), b), otherwise)
    quick = ast.BoolOp(ast.And(), [code.compare(a, ast.GtE(), zero), code.compare(b, ast.Gt(), zero)])
    return ast.IfExp(quick, ast.BinOp(a, ast.FloorDiv(), b), code.call("_div", a, b, otherwise))


def _counted(emitter: Emitter, expr: Comprehend, chain: Chain) -> ast.expr:
    """How many elements a filter leaves, without making the list."""
    clauses, body, _ = emitter.looped(expr, chain)
    return code.count(clauses, body)
