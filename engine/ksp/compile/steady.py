"""Whether it matters to `normalize` which nodes are feasible, when no node has scored.

    let top = feasible.map(n, n.score).max(0)           0, whoever is feasible
    view inZone = sum n.score for n in feasible by …    0 for every key
    score div(100 * (top - node.score), top, 100)       so it depends on the node alone

Where it does not, what a node gets for a score of 0 among zeros can be kept while the set of feasible nodes changes.
"""

from __future__ import annotations

from collections.abc import Mapping

from ksp.check.functions import receiver_name
from ksp.check.stages import children
from ksp.check.typed import (
    Apply,
    At,
    Binding,
    Comprehend,
    Constant,
    Expr,
    Kind,
    Let,
    LetIn,
    NodeScore,
    Ref,
    Rule,
)
from ksp.check.types import Int, List
from ksp.compile.inline import inline

Lets = Mapping[Binding, Expr]


def steady_at_zero(rule: Rule) -> bool:
    """If all feasible nodes score 0, what `normalize` gives one does not depend on which others are feasible."""
    normalize = rule.normalize
    if normalize is None or normalize.score is None:
        return normalize is not None
    lets = {
        statement.binding: inline(statement.binding.value)
        for statement in (*rule.body, *normalize.body)
        if isinstance(statement, Let) and statement.binding.value is not None
    }
    return _is_steady(inline(normalize.score), lets)


def _is_steady(expr: Expr, lets: Lets) -> bool:
    """The value is the same whoever is feasible, if all score 0."""
    if isinstance(expr.type, Int) and _is_zero(expr, lets):
        return True
    match expr:
        case Ref(binding=binding) if binding in lets:
            return _is_steady(lets[binding], lets)
        case Ref(binding=binding):
            return not _is_feasible(binding)
        case LetIn(binding=binding, value=value, body=body):
            return _is_steady(body, {**lets, binding: value})
    return all(_is_steady(part, lets) for part in children(expr))


def _is_zero(expr: Expr, lets: Lets) -> bool:
    """The value is 0 whoever is feasible, if all score 0; a list or map holds nothing but zeros."""
    match expr:
        case Constant(value=value):
            return value == 0 and isinstance(expr.type, Int)
        case NodeScore():
            return True
        case Ref(binding=binding) if binding in lets:
            return _is_zero(lets[binding], lets)
        case Ref(binding=binding) if binding.kind is Kind.VIEW:
            view = binding.view
            return (
                view is not None
                and view.form == "sum"
                and view.amount is not None
                and _is_zero(inline(view.amount), lets)
            )
        case At(value=value):
            return _is_zero(value, lets)
        case Comprehend(kind="map", range=range_, body=body):
            return isinstance(range_.type, List) and _is_zero(body, lets)
        case Apply(row=row, arguments=(values, *others)) if row.method and receiver_name(values.type) in (
            "list",
            "map",
        ):
            known = row.name in ("sum", "min", "max", "values")
            return known and _is_zero(values, lets) and all(_is_zero(other, lets) for other in others)
    return False


def _is_feasible(binding: Binding) -> bool:
    if binding.kind is Kind.VIEW:
        return binding.view is not None and binding.view.relation == "feasible"
    return binding.kind is Kind.ROOT and binding.name == "feasible"
