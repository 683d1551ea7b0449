"""In which stage the value of an expression is known, and which names it reads."""

from __future__ import annotations

from collections.abc import Iterator

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
    Stage,
    StructOf,
    Text,
)


def children(expr: Expr) -> tuple[Expr, ...]:
    """The expressions directly inside."""
    match expr:
        case Constant() | Ref():
            return ()
        case Read(value=value) | Has(value=value):
            return (value,)
        case At(value=value, key=key):
            return (value, key)
        case In(item=item, container=container):
            return (item, container)
        case Op(operands=parts) | Logic(items=parts) | ListOf(items=parts):
            return parts
        case If(condition=condition, then=then, otherwise=otherwise):
            return (condition, then, otherwise)
        case Apply(arguments=parts) | Invoke(arguments=parts):
            return parts
        case Comprehend(range=range, body=body):
            return (range, body)
        case MapOf(entries=entries):
            return tuple(part for entry in entries for part in entry)
        case StructOf(fields=fields):
            return tuple(value for _, value in fields)
        case Text(parts=parts):
            return tuple(part for part in parts if not isinstance(part, str))
        case NodeScore(node=node):
            return (node,)
        case LetIn(value=value, body=body):
            return (value, body)


def walk(expr: Expr) -> Iterator[Expr]:
    """The expression and all within it."""
    pending = [expr]
    while pending:
        current = pending.pop()
        yield current
        pending.extend(children(current))


def stage_of(expr: Expr) -> Stage:
    """The outermost stage that can compute the expression. Variables have the stage of what they run over."""
    stage = Stage.CONSTANT
    for part in walk(expr):
        if isinstance(part, Ref):
            stage = max(stage, part.binding.stage)
        elif isinstance(part, Invoke):
            stage = max(stage, part.function.stage)
        elif isinstance(part, NodeScore):
            stage = max(stage, Stage.FEASIBLE)
    return stage


def references(expr: Expr) -> Iterator[Ref]:
    """Every name in it that stands for something declared outside of it, or in it."""
    return (part for part in walk(expr) if isinstance(part, Ref))


def reads_root(expr: Expr, name: str) -> Ref | None:
    """Where it names `pod`, `node`, … itself, if it does."""
    return next((r for r in references(expr) if r.binding.kind is Kind.ROOT and r.binding.name == name), None)


def free_bindings(expr: Expr) -> set[Binding]:
    """What it reads that it does not bind itself."""
    bound = {v for part in walk(expr) if isinstance(part, Comprehend) for v in part.variables}
    bound |= {part.binding for part in walk(expr) if isinstance(part, LetIn)}
    return {r.binding for r in references(expr)} - bound
