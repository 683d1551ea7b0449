"""Selectors and texts of the column form: what holds of the labels and names of many nodes at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ksp.compile.columns.spreading import by_parts
from ksp.compile.node_rows import Rows
from ksp.compile.node_values import ABSENT, BoolArray, Part
from ksp.model.selector import (
    NOTHING,
    LabelSelector,
    LabelSelectorRequirement,
    NodeSelectorRequirement,
    NodeSelectorTerm,
)

NAME: Part = ("name",)
Requirement = LabelSelectorRequirement | NodeSelectorRequirement


def has_part(rows: Rows, part: Part) -> BoolArray:
    """The node has the label or annotation."""
    there: BoolArray = rows.ids(part) != ABSENT
    return there


def same_parts(rows: Rows, one: Part, other: Part) -> BoolArray:
    """The two texts of a node are equal; an absent one reads as empty."""
    same: BoolArray = rows.ids(one) == rows.ids(other)
    return same | (rows.same_text(one, "") & rows.same_text(other, ""))


def part_in(rows: Rows, part: Part, texts: Mapping[str, object] | Sequence[str]) -> BoolArray:
    """The text is one of these, or a key of the map; an absent one reads as empty."""
    if isinstance(texts, Mapping):
        return rows.has_key(texts, part)
    found = np.zeros(rows.size, np.bool_)
    for text in texts:
        found = found | rows.same_text(part, text)
    return found


def _has_one_of(rows: Rows, part: Part, values: Sequence[str]) -> BoolArray:
    """The label is there with one of the values."""
    ids = rows.ids(part)
    numbers = [rows.id_of(value) for value in values]
    found: BoolArray = ids == numbers[0] if len(numbers) == 1 else np.isin(ids, numbers)
    return found


def requirement_holds(rows: Rows, requirement: Requirement) -> BoolArray:
    """`requirement.matches(node.labels)`."""
    if requirement.error:
        return np.zeros(rows.size, np.bool_)
    part = ("labels", requirement.key)
    match requirement.operator:
        case "In":
            return _has_one_of(rows, part, requirement.values)
        case "NotIn":
            return ~_has_one_of(rows, part, requirement.values)
        case "Exists":
            return has_part(rows, part)
        case "DoesNotExist":
            return ~has_part(rows, part)
    matcher = requirement.matcher
    return by_parts(rows, (part,), lambda node: matcher(node.labels), bool)


def term_holds_for_node(rows: Rows, term: NodeSelectorTerm) -> BoolArray:
    """`term.matches(node)`."""
    found = _expressions_hold(rows, term)
    for requirement in term.match_fields:
        found = found & _field_holds(rows, requirement)
    return found


def term_holds_for_labels(rows: Rows, term: NodeSelectorTerm) -> BoolArray:
    """`term.matches(node.labels)`: fields read as empty."""
    if term.match_fields and not term.name_matcher(""):
        return np.zeros(rows.size, np.bool_)
    return _expressions_hold(rows, term)


def _expressions_hold(rows: Rows, term: NodeSelectorTerm) -> BoolArray:
    if not term.match_expressions and not term.match_fields:
        return np.zeros(rows.size, np.bool_)
    return _all_hold(rows, term.match_expressions)


def _all_hold(rows: Rows, requirements: Sequence[Requirement]) -> BoolArray:
    found: BoolArray | None = None
    for requirement in requirements:
        one = requirement_holds(rows, requirement)
        found = one if found is None else found & one
    return np.ones(rows.size, np.bool_) if found is None else found


def _field_holds(rows: Rows, requirement: NodeSelectorRequirement) -> BoolArray:
    """Fields know only In and NotIn, with one value; only metadata.name has one to be asked for."""
    if len(requirement.values) != 1 or requirement.operator not in ("In", "NotIn"):
        return np.zeros(rows.size, np.bool_)
    (value,) = requirement.values
    wanted = requirement.operator == "In"
    if requirement.key != "metadata.name":
        return np.full(rows.size, (value == "") == wanted)
    same = rows.same_text(NAME, value)
    return same if wanted else ~same


def selector_holds(rows: Rows, selector: LabelSelector) -> BoolArray:
    """`selector.matches(node.labels)`."""
    if selector is NOTHING or selector.error:
        return np.zeros(rows.size, np.bool_)
    found = _all_hold(rows, selector.match_expressions)
    for key, value in selector.match_labels.items():
        found = found & (rows.ids(("labels", key)) == rows.id_of(value))
    return found
