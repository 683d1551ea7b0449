"""What a rule can say: the reasons of its denials, the messages of its failures."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ksp.check.typed import Collect, Constant, Deny, Expr, Fail, For, Rule, Statement, Text


def denials(rule: Rule) -> Iterator[Deny]:
    """Every `deny` of the rule, those of `prefilter` first."""
    return (statement for statement in _statements((*rule.before, *rule.body)) if isinstance(statement, Deny))


def failures(rule: Rule) -> Iterator[Fail]:
    """Every `fail` of the rule, those of `prefilter` and `prescore` first."""
    return (statement for statement in _statements((*rule.before, *rule.body)) if isinstance(statement, Fail))


def fixed_parts(text: Expr) -> list[str]:
    """The parts of a reason or message that are always the same; any text can stand between two of them."""
    if isinstance(text, Constant):
        return [str(text.value)]
    parts = [""]
    for part in text.parts if isinstance(text, Text) else ():
        if isinstance(part, str):
            parts[-1] += part
        else:
            parts.append("")
    return parts


def _statements(statements: Iterable[Statement]) -> Iterator[Statement]:
    """The statements and those in them."""
    for statement in statements:
        yield statement
        if isinstance(statement, For | Collect):
            yield from _statements(statement.body)
