"""Comparisons that report their operands: each operand is computed once, however many stand inside one another."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ksp.check.typed import In, Op
from ksp.compile import code
from ksp.compile.holds import holds_doubles
from ksp.compile.runtime import contains, same

NAMES: Mapping[str, str] = {
    "==": "_equal", "!=": "_not_equal", "<": "_less", "<=": "_less_equal", ">": "_greater", ">=": "_greater_equal",
}  # fmt: skip


def reporting(site: int, expr: In | Op, operands: Sequence[ast.expr]) -> ast.expr:
    """The code that compares, and tells the trace what and with what result."""
    return code.call("_reported", code.name("trace"), code.constant(site), code.name(_how(expr)), *operands)


def _how(expr: In | Op) -> str:
    match expr:
        case In(container=container):
            return "_is_among_doubles" if holds_doubles(container.type) else "_is_among"
        case Op(operator="==" | "!=" as sign, operands=(left, _)) if holds_doubles(left.type):
            return "_same" if sign == "==" else "_not_same"
    return NAMES[expr.operator]


def _reported(trace: Callable[..., Any], site: int, how: Callable[..., Any], *operands: Any) -> Any:
    return trace(site, how(*operands), *operands)


def _is_among(item: Any, container: Any) -> bool:
    return item in container


def _is_among_doubles(item: Any, container: Any) -> bool:
    return contains(container, item)


def _not_same(a: Any, b: Any) -> bool:
    return not same(a, b)


TRACED_RUNTIME: dict[str, object] = {
    "_reported": _reported,
    "_is_among": _is_among,
    "_is_among_doubles": _is_among_doubles,
    "_not_same": _not_same,
    "_equal": operator.eq,
    "_not_equal": operator.ne,
    "_less": operator.lt,
    "_less_equal": operator.le,
    "_greater": operator.gt,
    "_greater_equal": operator.ge,
}
