"""Trees without their spans, to compare; and all nodes of a tree."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import Any

from ksp.source.text import Source, Span
from ksp.syntax import tree
from ksp.syntax.parser import parse, parse_expression


def bare(value: Any) -> Any:
    """Nested tuples of class names and values."""
    if isinstance(value, tuple):
        return tuple(bare(item) for item in value)
    if not is_dataclass(value):
        return value
    kept = (field.name for field in fields(value) if not field.name.endswith(("span", "spans")))
    return (type(value).__name__, *(bare(getattr(value, name)) for name in kept))


def nodes(value: Any) -> Iterator[Any]:
    """Every node below, itself included."""
    if isinstance(value, tuple):
        for item in value:
            yield from nodes(item)
    elif is_dataclass(value) and not isinstance(value, (Span, Source)):
        yield value
        for field in fields(value):
            yield from nodes(getattr(value, field.name))


def expression(text: str) -> tree.Expr:
    """The tree of an expression that must be right."""
    node, diagnostics = parse_expression(Source("test", text))
    assert not diagnostics, diagnostics
    assert node is not None
    return node


def declarations(text: str) -> tuple[tree.Declaration, ...]:
    """The declarations of a text that must be right."""
    result = parse(Source("test", text))
    assert not result.diagnostics, result.diagnostics
    return result.file.declarations


def statements(text: str) -> tuple[tree.Statement, ...]:
    """The statements of a rule that must be right."""
    (rule,) = declarations(f"predicate R {{\n{text}\n}}")
    assert isinstance(rule, tree.Rule)
    return rule.body


def mistakes(text: str) -> list[tuple[str, int, str]]:
    """Code, line and text at the caret of each diagnostic."""
    found = parse(Source("test", text)).diagnostics
    return [(each.code, each.span.source.place(each.span.start)[0], each.span.text) for each in found]
