"""The expressions of statements and of whole rules."""

from __future__ import annotations

from collections.abc import Iterator

from ksp.check.typed import Collect, Deny, Expr, Fail, For, Let, Rule, Statement, Stop


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
