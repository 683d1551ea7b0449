"""What a rule compared while it judged a node: the conditions that were looked at, with the values of their sides."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from ksp.check.typed import Expr, In, Op, Rule
from ksp.check.types import BYTES, CPU, Int, Type
from ksp.compile.program import Predicate, compile_rule
from ksp.compile.tables import Tables
from ksp.model.info import NodeInfo, PodInfo
from ksp.source.text import Span

LONGEST = 60  # characters of a value
UNITS = (("Ti", 1 << 40), ("Gi", 1 << 30), ("Mi", 1 << 20), ("Ki", 1 << 10))
MEBI = 1 << 20  # an amount of any resource that is whole in these is one of bytes, most likely


@dataclass(frozen=True, slots=True)
class Observation:
    """A condition, what it was, and with which values: `500m > 200m`, "" where they are not known."""

    span: Span
    holds: bool
    values: str


def observed(
    rule: Rule, arguments: Mapping[str, object], pod: PodInfo, node: NodeInfo, tables: Tables
) -> list[Observation]:
    """The conditions of a predicate in the order in which they were looked at, for one pod and node, each once."""
    compiled = compile_rule(rule, traced=True)
    found: list[Observation] = []

    def trace(site: int, value: Any, *operands: Any) -> Any:
        expr = compiled.sites[site]
        found.append(Observation(expr.span, bool(value), _values(expr, operands)))
        return value

    predicate = compiled.instantiate(arguments, trace)
    assert isinstance(predicate, Predicate)
    bound = predicate.bind(pod, tables)
    if bound.check is not None:
        bound.check(node)
    return list(dict.fromkeys(found))


def _values(expr: Expr, operands: Sequence[Any]) -> str:
    match expr:
        case Op(operator=operator, operands=(left, right)) if len(operands) == 2:
            kind = left.type if left.type in (Int(CPU), Int(BYTES)) else right.type
            return f"{shown(operands[0], kind)} {operator} {shown(operands[1], kind)}"
        case In(item=item, container=container) if len(operands) == 2:
            return f"{shown(operands[0], item.type)} in {shown(list(operands[1]), container.type)}"
    return ""


def shown(value: Any, type: Type) -> str:
    """A value as a policy would write it."""
    match value, type:
        case int(), Int(dimension) if dimension == CPU:
            return f"{value}m"
        case int(), Int(dimension) if dimension == BYTES or (dimension is None and value % MEBI == 0):
            return next((f"{value // size}{unit}" for unit, size in UNITS if value and value % size == 0), str(value))
    text = json.dumps(msgspec.to_builtins(value), ensure_ascii=False)
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"
