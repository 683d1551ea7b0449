"""Functions put in the place of their calls, so that each part of them can be computed in the stage that it allows.

The result has no `Invoke`. An argument that is used once outside of a loop, or is just a name, takes its parameter's
place; another gets a name by `LetIn`. Names that a function binds are made anew for each call, so that no two
expressions share a binding.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from ksp.check.stages import children, stage_of
from ksp.check.typed import (
    Apply,
    At,
    Binding,
    Comprehend,
    Constant,
    Expr,
    Has,
    If,
    In,
    Invoke,
    Kind,
    LetIn,
    ListOf,
    Logic,
    MapOf,
    NodeScore,
    Op,
    Read,
    Ref,
    StructOf,
    Text,
)

Names = Mapping[Binding, Expr]
NONE: Names = {}


def inline(expr: Expr, names: Names = NONE) -> Expr:
    """The expression without calls of functions, with other expressions in the place of some names."""
    match expr:
        case Ref(binding=binding):
            return names.get(binding, expr)
        case Invoke():
            return _called(expr, names)
        case Comprehend():
            return _comprehension(expr, names)
    return mapped(expr, lambda part: inline(part, names))


def replaced(expr: Expr, change: Callable[[Expr], Expr | None]) -> Expr:
    """The expression with other expressions in the place of the parts for which `change` gives one."""
    other = change(expr)
    return mapped(expr, lambda part: replaced(part, change)) if other is None else other


def mapped(expr: Expr, change: Callable[[Expr], Expr]) -> Expr:
    """The same expression of changed parts."""
    match expr:
        case Constant() | Ref():
            return expr
        case Read(value=value) | Has(value=value):
            return replace(expr, value=change(value))
        case At(value=value, key=key):
            return replace(expr, value=change(value), key=change(key))
        case In(item=item, container=container):
            return replace(expr, item=change(item), container=change(container))
        case Op(operands=parts):
            return replace(expr, operands=tuple(change(part) for part in parts))
        case Logic(items=parts) | ListOf(items=parts):
            return replace(expr, items=tuple(change(part) for part in parts))
        case If(condition=condition, then=then, otherwise=otherwise):
            return replace(expr, condition=change(condition), then=change(then), otherwise=change(otherwise))
        case Apply(arguments=parts) | Invoke(arguments=parts):
            return replace(expr, arguments=tuple(change(part) for part in parts))
        case Comprehend(range=range_, body=body) as loop:
            return replace(loop, range=change(range_), body=change(body))
        case MapOf(entries=entries):
            return replace(expr, entries=tuple((change(key), change(value)) for key, value in entries))
        case StructOf(fields=fields):
            return replace(expr, fields=tuple((field, change(value)) for field, value in fields))
        case Text(parts=parts):
            return replace(expr, parts=tuple(part if isinstance(part, str) else change(part) for part in parts))
        case NodeScore(node=node):
            return replace(expr, node=change(node))
        case LetIn(value=value, body=body):
            return replace(expr, value=change(value), body=change(body))


def _fresh(binding: Binding, value: Expr) -> Binding:
    """The same name, for a value in a place where its stage is known."""
    return Binding(binding.name, binding.kind, binding.type, binding.span, stage_of(value))


def _comprehension(expr: Comprehend, names: Names) -> Expr:
    range_ = inline(expr.range, names)
    variables = tuple(_fresh(v, range_) for v in expr.variables)
    inner = {
        **names,
        **{old: Ref(expr.span, old.type, new) for old, new in zip(expr.variables, variables, strict=True)},
    }
    return replace(expr, variables=variables, range=range_, body=inline(expr.body, inner))


def _called(expr: Invoke, names: Names) -> Expr:
    function = expr.function
    body_names: dict[Binding, Expr] = {}
    bound: list[tuple[Binding, Expr]] = []
    uses = [let.value for let in function.lets if let.value is not None] + [function.value]
    for parameter, argument in zip(function.parameters, expr.arguments, strict=True):
        _name(parameter, inline(argument, names), uses, body_names, bound)
    outer = dict(names) | body_names
    for i, let in enumerate(function.lets):
        if let.value is not None:
            _name(let, inline(let.value, outer), uses[i + 1 :], outer, bound)
    result = inline(function.value, outer)
    for binding, value in reversed(bound):
        result = LetIn(expr.span, result.type, binding, value, result)
    return result


def _name(
    binding: Binding, value: Expr, uses: list[Expr], names: dict[Binding, Expr], bound: list[tuple[Binding, Expr]]
) -> None:
    if isinstance(value, Ref | Constant) or sum(_weight(use, binding) for use in uses) <= 1:
        names[binding] = value
        return
    fresh = Binding(binding.name, Kind.LET, binding.type, binding.span, stage_of(value))
    bound.append((fresh, value))
    names[binding] = Ref(value.span, binding.type, fresh)


def _weight(expr: Expr, binding: Binding) -> int:
    """How often the name is read: 2 if in a loop."""
    if isinstance(expr, Ref):
        return 1 if expr.binding is binding else 0
    if isinstance(expr, Comprehend):
        return _weight(expr.range, binding) + 2 * min(1, _weight(expr.body, binding))
    return sum(_weight(child, binding) for child in children(expr))
