"""Scores that leave 0 to 100: those that always do are errors; those that can, as far as that is told from the
expression, are warned of.

A bound is a number, an infinity, or None where nothing is known. Each operand is taken to reach its bounds whatever the
others are. Nothing is said of what is not known, so that no sound rule is warned of for the sake of this analysis.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Sequence

from ksp.check import cautions, mistakes
from ksp.check.facts import shape
from ksp.check.report import Report
from ksp.check.stages import children
from ksp.check.typed import Apply, At, Constant, Expr, If, Invoke, Kind, Op, Read, Ref, Rule, View
from ksp.check.types import Int, Map, String

Bound = float | None
Bounds = tuple[Bound, Bound]
Numbers = frozenset[Hashable]
A_CALL = "a call"
UNKNOWN: Bounds = (None, None)
COUNT: Bounds = (0, math.inf)
ANY: Bounds = (-math.inf, math.inf)
LOWEST, HIGHEST = 0, 100


def check_scores(report: Report, rule: Rule) -> None:
    """The score of a priority, or what its `normalize { … }` makes of it."""
    normalize = rule.normalize
    last = rule.score if normalize is None else normalize.score
    for outcome, asked in _outcomes(last) if last is not None else ():
        low, high = _bounds(outcome)
        too_low, too_high = low is not None and low < LOWEST, high is not None and high > HIGHEST
        if low is not None and low > HIGHEST:
            mistakes.score_outside(report, outcome.span, f"is above {HIGHEST}")
        elif high is not None and high < LOWEST:
            mistakes.score_outside(report, outcome.span, f"is below {LOWEST}")
        elif (too_low or too_high) and not _is_guarded(outcome, asked):
            sides = [f"below {LOWEST}"] * too_low + [f"above {HIGHEST}"] * too_high
            cautions.score_may_leave(report, outcome.span, f"can be {' and '.join(sides)}")


def _outcomes(expr: Expr) -> Iterator[tuple[Expr, Numbers]]:
    """The values between which choices decide, each with the numbers that the conditions of these ask for."""
    pending: list[tuple[Expr, Numbers]] = [(expr, frozenset())]
    while pending:
        current, asked = pending.pop()
        value = _named(current)
        if isinstance(current, If):
            inner = asked.union(_numbers(current.condition))
            pending += [(current.otherwise, inner), (current.then, inner)]
        elif isinstance(value, If):
            pending.append((value, asked))
        else:
            yield current, asked


def _is_guarded(outcome: Expr, asked: Numbers) -> bool:
    """A condition asks for a number that the outcome is made of, and may keep it within its bounds."""
    return A_CALL in asked or not asked.isdisjoint(_numbers(outcome))


def _numbers(expr: Expr) -> Iterator[Hashable]:
    """The shapes of all ints that are read in it, and in what its names stand for. Into functions it does not look."""
    pending = [expr]
    while pending:
        current = pending.pop()
        value = _named(current)
        if isinstance(current, Invoke):
            yield A_CALL
        elif isinstance(current, Read | At | Ref | Apply) and isinstance(current.type, Int) and value is None:
            yield shape(current)
        pending += children(current) if value is None else [value]


def _named(expr: Expr) -> Expr | None:
    """What a `let` or `const` stands for."""
    if isinstance(expr, Ref) and expr.binding.kind in (Kind.LET, Kind.CONST):
        return expr.binding.value
    return None


def _bounds(expr: Expr) -> Bounds:
    match expr:
        case Constant(value=int() as value, type=Int()):
            return value, value
        case Ref():
            return _bounds_of_name(expr)
        case Read(type=Int(), field=field):
            return COUNT if field.name == "podCount" else (None, math.inf)
        case At(type=Int()):
            return _bounds_of_entry(expr)
        case If(then=then, otherwise=otherwise):
            return _hull(_bounds(then), _bounds(otherwise))
        case Op(operator=operator, operands=operands, type=Int()):
            return _bounds_of_operator(operator, [_bounds(o) for o in operands], operands)
        case Apply(row=row, arguments=arguments):
            return _bounds_of_call(row.name, arguments, is_method=row.method)
    return UNKNOWN


def _bounds_of_name(name: Ref) -> Bounds:
    value = _named(name)
    if value is not None:
        return _bounds(value)
    view = name.binding.view
    return _bounds_of_view(view) if view is not None and not view.keys else UNKNOWN


def _bounds_of_entry(entry: At) -> Bounds:
    """Amounts of resources, and entries of views."""
    value: Expr = entry
    while isinstance(value, At):
        value = value.value
    if isinstance(value, Ref) and value.binding.view is not None:
        return _bounds_of_view(value.binding.view)
    return COUNT if isinstance(value.type, Map) and value.type.resources else UNKNOWN


def _bounds_of_view(view: View) -> Bounds:
    if view.form == "count":
        return COUNT
    low, high = _bounds(view.amount) if view.form == "sum" and view.amount is not None else UNKNOWN
    return 0 if low is not None and low >= 0 else None, math.inf if high is not None and high > 0 else None


def _bounds_of_operator(operator: str, bounds: Sequence[Bounds], operands: Sequence[Expr]) -> Bounds:
    match operator, bounds:
        case "neg", [(low, high)]:
            return _negated(high), _negated(low)
        case "+", [(a, b), (c, d)]:
            return _sum(a, c), _sum(b, d)
        case "-", [(a, b), (c, d)]:
            return _sum(a, _negated(d)), _sum(b, _negated(c))
        case "*", [left, right]:
            return _scaled(left, operands[1]) if isinstance(operands[1], Constant) else _scaled(right, operands[0])
        case "/", [left, _]:
            return _divided(left, operands[1])
    return UNKNOWN


def _bounds_of_call(name: str, arguments: Sequence[Expr], *, is_method: bool) -> Bounds:
    if name == "size":
        return COUNT
    if name == "int" and isinstance(arguments[0].type, String):
        return ANY
    if name == "div":
        return _hull(_divided(_bounds(arguments[0]), arguments[1]), _bounds(arguments[2]))
    if name in ("min", "max") and not is_method:
        lows, highs = zip(*(_bounds(argument) for argument in arguments), strict=True)
        return _extreme(name, lows), _extreme(name, highs)
    return UNKNOWN


def _extreme(name: str, bounds: Sequence[Bound]) -> Bound:
    known = [bound for bound in bounds if bound is not None]
    if len(known) < len(bounds):
        return None
    return min(known) if name == "min" else max(known)


def _hull(a: Bounds, b: Bounds) -> Bounds:
    return _extreme("min", (a[0], b[0])), _extreme("max", (a[1], b[1]))


def _negated(bound: Bound) -> Bound:
    return None if bound is None else -bound


def _sum(a: Bound, b: Bound) -> Bound:
    total = math.nan if a is None or b is None else a + b
    return None if math.isnan(total) else total


def _scaled(bounds: Bounds, factor: Expr) -> Bounds:
    """Times a constant; of two that vary nothing is known."""
    if not isinstance(factor, Constant):
        return UNKNOWN
    by = float(factor.value)
    if by == 0:
        return 0, 0
    low, high = (None if bound is None else bound * by for bound in bounds)
    return (low, high) if by > 0 else (high, low)


def _divided(bounds: Bounds, divisor: Expr) -> Bounds:
    by = float(divisor.value) if isinstance(divisor, Constant) else 0
    if by == 0:
        return UNKNOWN
    low, high = (None if bound is None else bound / by for bound in bounds)
    low, high = (low, high) if by > 0 else (high, low)
    return _whole(low), _whole(high)


def _whole(bound: Bound) -> Bound:
    return bound if bound is None or math.isinf(bound) else math.trunc(bound)
