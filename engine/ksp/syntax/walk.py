"""Going through trees of expressions without recursion."""

from __future__ import annotations

from collections.abc import Iterator

from ksp.syntax import tree


def children(expr: tree.Expr) -> tuple[tree.Expr, ...]:
    """The expressions directly inside."""
    match expr:
        case tree.StringLiteral(parts=parts):
            return tuple(part for part in parts if not isinstance(part, str))
        case tree.ListLiteral(items=items) | tree.Logic(items=items):
            return items
        case tree.MapLiteral(entries=entries):
            return tuple(e for entry in entries for e in (entry.key, entry.value))
        case tree.Field(value=value) | tree.Unary(value=value):
            return (value,)
        case tree.Index(value=value, key=key):
            return (value, key)
        case tree.Call(arguments=arguments):
            return arguments
        case tree.Method(value=value, arguments=arguments):
            return (value, *arguments)
        case tree.Binary(left=left, right=right):
            return (left, right)
        case tree.Ternary(condition=condition, then=then, otherwise=otherwise):
            return (condition, then, otherwise)
        case _:
            return ()


def walk(expr: tree.Expr) -> Iterator[tree.Expr]:
    """The expression and all within it, in no stated order."""
    pending = [expr]
    while pending:
        current = pending.pop()
        yield current
        pending.extend(children(current))


def called_names(expr: tree.Expr) -> Iterator[str]:
    """The names that stand for values or functions in it."""
    for part in walk(expr):
        if isinstance(part, tree.Name | tree.Call):
            yield part.name
