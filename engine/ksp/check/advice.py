"""What is not wrong but could be better: never stops a policy."""

from __future__ import annotations

from collections.abc import Iterator

from ksp.check import cautions
from ksp.check.parts import expressions
from ksp.check.report import Report
from ksp.check.stages import children, stage_of
from ksp.check.typed import (
    Apply,
    At,
    Binding,
    Collect,
    Deny,
    Expr,
    For,
    In,
    Kind,
    Let,
    Read,
    Ref,
    Rule,
    Stage,
    Statement,
    StructOf,
)


def advise(report: Report, rule: Rule, used: set[Binding]) -> None:
    """Advice on a rule without mistakes; `used` are the bindings that something reads."""
    _unused(report, rule, used)
    for statement in rule.body:
        _could_be_prefilter(report, statement)
    for expr in expressions(rule):
        _raw_labels(report, expr, selected=False)


def _unused(report: Report, rule: Rule, used: set[Binding]) -> None:
    named = [("the parameter", p.binding) for p in rule.parameters] + [("the view", view) for view in rule.views]
    named += [("the `let`", let.binding) for let in _lets((*rule.before, *rule.body))]
    named += [("the `let`", let.binding) for let in _lets(rule.normalize.body if rule.normalize else ())]
    for what, binding in named:
        if binding not in used and binding.span is not None:
            cautions.unused(report, binding.span, what, binding.name)


def _lets(statements: tuple[Statement, ...]) -> Iterator[Let]:
    for statement in statements:
        if isinstance(statement, Let):
            yield statement
        elif isinstance(statement, For | Collect):
            yield from _lets(statement.body)


def _could_be_prefilter(report: Report, statement: Statement) -> None:
    read = (statement.condition, *statement.reasons) if isinstance(statement, Deny) else ()
    if read and all(stage_of(expr) < Stage.NODE for expr in read):
        cautions.could_be_prefilter(report, statement.span)


def _raw_labels(report: Report, expr: Expr, *, selected: bool) -> None:
    """`pod.labels` other than held against a selector."""
    match expr:
        case Read(value=Ref(binding=binding), field=field) if binding.kind is Kind.ROOT and binding.name == "pod":
            if field.name == "labels" and not selected:
                cautions.raw_labels(report, expr.span)
        case StructOf():
            return
        case At(value=value, key=key) | In(container=value, item=key):
            _raw_labels(report, value, selected=stage_of(key) <= Stage.POD)
            _raw_labels(report, key, selected=False)
            return
    for i, child in enumerate(children(expr)):
        held = isinstance(expr, Apply) and expr.row.name == "matches" and i == 1
        _raw_labels(report, child, selected=held)


__all__ = ["advise"]
