"""How large a policy may be once its functions are put in, and what it may cost: decided before anything is compiled.

Sizes are counted over the typed tree with each `fn` in the place of its call, without building that tree: what a call
adds was counted when the `fn` was checked.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ksp.check import mistakes
from ksp.check.cost import DEGREES, LARGEST, Analysis, show_cost
from ksp.check.report import Report
from ksp.check.stages import children
from ksp.check.typed import Collect, Deny, Expr, Fail, For, Function, Invoke, Let, Rule, Statement, Stop
from ksp.source.text import Span

FILES = 64  # that one file may import, directly or not
SIZE = 20_000  # expressions of a rule or function, its functions put in
DEPTH = 220  # nested expressions, likewise

_sizes: dict[int, tuple[Function, int, int]] = {}


def extent(expr: Expr) -> tuple[int, int]:
    """How many expressions it is, and how deeply nested, with its functions put in."""
    parts = [extent(child) for child in children(expr)]
    size = 1 + sum(s for s, _ in parts)
    depth = 1 + max((d for _, d in parts), default=0)
    if isinstance(expr, Invoke):
        inner_size, inner_depth = _function_extent(expr.function)
        return size + inner_size, depth + inner_depth
    return size, depth


def _function_extent(function: Function) -> tuple[int, int]:
    known = _sizes.get(id(function))
    if known is not None and known[0] is function:
        return known[1], known[2]
    parts = [extent(let.value) for let in function.lets if let.value is not None]
    parts.append(extent(function.value))
    size, depth = sum(s for s, _ in parts), sum(d for _, d in parts)
    if len(_sizes) > 10_000:
        _sizes.clear()
    _sizes[id(function)] = (function, size, depth)
    return size, depth


def check_function(report: Report, function: Function) -> None:
    """A function by itself: its size, and what it makes of arguments of the usual size."""
    if _fits(report, function.name, function.span, [*(let.value for let in function.lets), function.value]):
        analysis = Analysis(report)
        analysis.function(function)


def check_rule(report: Report, rule: Rule) -> None:
    """A rule: size, depth, how large what it makes can grow, and how many passes are nested in one another."""
    if not _fits(report, rule.name, rule.span, expressions(rule)):
        return
    cost = Analysis(report).rule(rule)
    if any(len(product) > DEGREES for product in cost):
        mistakes.too_costly(report, rule.span, rule.name, show_cost(cost))


def _fits(report: Report, name: str, span: Span, exprs: Iterable[Expr | None]) -> bool:
    parts = [extent(expr) for expr in exprs if expr is not None]
    size, depth = sum(s for s, _ in parts), max((d for _, d in parts), default=0)
    if size > SIZE:
        mistakes.too_large(report, span, name, f"more than {SIZE} expressions")
    elif depth > DEPTH:
        mistakes.too_large(report, span, name, f"nested more than {DEPTH} deep")
    return size <= SIZE and depth <= DEPTH


def expressions(rule: Rule) -> Iterator[Expr]:
    """Every expression of a rule's own text."""
    for parameter in rule.parameters:
        if parameter.default is not None:
            yield parameter.default
    for binding in rule.views:
        if binding.view is not None:
            view = binding.view
            parts = (*(j.range for j in view.joins), view.where, *view.keys, view.amount)
            yield from (part for part in parts if part is not None)
    normalize = rule.normalize.body if rule.normalize else ()
    for statement in (*rule.before, *rule.body, *normalize):
        yield from statement_expressions(statement)
    if rule.score is not None:
        yield rule.score
    if rule.normalize is not None and rule.normalize.score is not None:
        yield rule.normalize.score


def statement_expressions(statement: Statement) -> Iterator[Expr]:
    """The expressions of a statement and of those in it."""
    match statement:
        case Let(binding=binding):
            if binding.value is not None:
                yield binding.value
        case Deny(reasons=reasons, condition=condition):
            yield from (condition, *reasons)
        case Fail(message=message, condition=condition):
            yield from (condition, message)
        case Stop(condition=condition):
            yield condition
        case For(range=range_, body=body):
            yield range_
            for inner in body:
                yield from statement_expressions(inner)
        case Collect(body=body):
            for inner in body:
                yield from statement_expressions(inner)


__all__ = ["DEGREES", "DEPTH", "FILES", "LARGEST", "SIZE", "check_function", "check_rule", "expressions", "extent"]
