"""Selectors of labels and of nodes, and tolerations: what they match, and what is wrong with them.

A selector is compiled once, when it is first asked, into a function of a label map, and keeps that function: the same
selector is held against thousands of pods or nodes. A malformed selector, requirement or term matches nothing; its
`error` says why, in Kubernetes' own words.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, ClassVar, Final, Protocol

import msgspec

from ksp.model.int64 import MAX, MIN
from ksp.model.labels import label_value_error, qualified_name_error, quote

if TYPE_CHECKING:
    from ksp.model.node import Taint
    from ksp.model.pod import Toleration

Labels = dict[str, str]
Matcher = Callable[[Labels], bool]

_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,400}")


class _Requirement(msgspec.Struct, frozen=True, kw_only=True, rename="camel", dict=True):
    """What one label must be like. Compiled on first use, hence `dict`."""

    key: str = ""
    operator: str = ""
    values: tuple[str, ...] = ()

    _what: ClassVar[str] = ""
    _operators: ClassVar[frozenset[str]] = frozenset()

    @cached_property
    def error(self) -> str:
        if self.operator not in self._operators:
            return f"{quote(self.operator)} is not a valid {self._what} selector operator"
        return _key_error(self.key) or _count_error(self.operator, self.values) or _values_error(self.key, self.values)

    @cached_property
    def matcher(self) -> Matcher:
        return _never if self.error else _compare(self.key, self.operator, self.values)


class LabelSelectorRequirement(_Requirement, frozen=True, kw_only=True, rename="camel", dict=True):
    """A requirement of a label selector: In, NotIn, Exists, DoesNotExist."""

    _what: ClassVar[str] = "pod"
    _operators: ClassVar[frozenset[str]] = frozenset({"In", "NotIn", "Exists", "DoesNotExist"})


class NodeSelectorRequirement(_Requirement, frozen=True, kw_only=True, rename="camel", dict=True):
    """A requirement of a node selector, which also knows Gt and Lt."""

    _what: ClassVar[str] = "node"
    _operators: ClassVar[frozenset[str]] = frozenset({"In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"})


class LabelSelector(msgspec.Struct, frozen=True, kw_only=True, rename="camel", dict=True):
    """All of its labels and requirements must match; an empty one matches everything, `NOTHING` nothing."""

    match_labels: dict[str, str] = msgspec.field(default_factory=dict)
    match_expressions: tuple[LabelSelectorRequirement, ...] = ()

    @cached_property
    def error(self) -> str:
        if self is NOTHING:
            return ""
        return _first(_pair_error(key, value) for key, value in sorted(self.match_labels.items())) or _first(
            requirement.error for requirement in self.match_expressions
        )

    @cached_property
    def matcher(self) -> Matcher:
        if self is NOTHING or self.error:
            return _never
        pairs = [_equals(self.match_labels)] if self.match_labels else []
        return _all_of([*pairs, *(requirement.matcher for requirement in self.match_expressions)])


NOTHING: Final = LabelSelector(match_expressions=(LabelSelectorRequirement(operator="Nothing"),))
"""What an absent selector reads as: recognised by identity, and different from an empty one when written out."""


class NodeSelectorTerm(msgspec.Struct, frozen=True, kw_only=True, rename="camel", dict=True):
    """Both parts must match; a term with neither matches nothing."""

    match_expressions: tuple[NodeSelectorRequirement, ...] = ()
    match_fields: tuple[NodeSelectorRequirement, ...] = ()

    @cached_property
    def matcher(self) -> Matcher:
        """The labels' part."""
        if not self.match_expressions and not self.match_fields:
            return _never
        return _all_of([requirement.matcher for requirement in self.match_expressions])

    @cached_property
    def name_matcher(self) -> Callable[[str], bool]:
        """The fields' part, asked with the node's name: no other field has a value."""
        checks = [_field_check(requirement) for requirement in self.match_fields]
        return lambda name: all(check(name) for check in checks)


class NodeSelector(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """One of the terms must match."""

    node_selector_terms: tuple[NodeSelectorTerm, ...] = ()


class NamedAndLabelled(Protocol):
    """What a node selector reads of a node."""

    @property
    def name(self) -> str: ...
    @property
    def labels(self) -> Labels: ...


def selector_of(labels: Labels) -> LabelSelector:
    """The selector that asks for exactly these labels: the same one for equal labels, so that it is compiled once."""
    return _selector_of(frozenset(labels.items()))


@lru_cache(maxsize=65_536)
def _selector_of(labels: frozenset[tuple[str, str]]) -> LabelSelector:
    return LabelSelector(match_labels=dict(sorted(labels)))


def label_selector_matches(selector: LabelSelector, labels: Labels) -> bool:
    return selector.matcher(labels)


def label_selector_is_empty(selector: LabelSelector) -> bool:
    """Whether the selector asks for nothing, and so matches everything."""
    return selector is not NOTHING and not selector.match_labels and not selector.match_expressions


def label_selector_error(selector: LabelSelector) -> str:
    return selector.error


def requirement_matches(requirement: _Requirement, labels: Labels) -> bool:
    return requirement.matcher(labels)


def requirement_error(requirement: _Requirement) -> str:
    return requirement.error


def node_selector_term_matches_node(term: NodeSelectorTerm, node: NamedAndLabelled) -> bool:
    return term.matcher(node.labels) and (not term.match_fields or term.name_matcher(node.name))


def node_selector_term_matches_labels(term: NodeSelectorTerm, labels: Labels) -> bool:
    """As for a node of which only the labels are known: its fields read as ""."""
    return term.matcher(labels) and (not term.match_fields or term.name_matcher(""))


def toleration_tolerates(toleration: Toleration, taint: Taint) -> bool:
    """Whether the taint does not count for a pod with this toleration. An empty key or effect stands for any."""
    if toleration.effect not in ("", taint.effect) or toleration.key not in ("", taint.key):
        return False
    if toleration.operator in ("", "Equal"):
        return toleration.value == taint.value
    return toleration.operator == "Exists"


def _never(_labels: Labels) -> bool:
    return False


def _always(_labels: Labels) -> bool:
    return True


def _all_of(matchers: Sequence[Matcher]) -> Matcher:
    if len(matchers) < 2:
        return matchers[0] if matchers else _always

    def every(labels: Labels) -> bool:
        for matcher in matchers:  # noqa: SIM110 - a generator would cost more than what it asks
            if not matcher(labels):
                return False
        return True

    return every


def _equals(wanted: Labels) -> Matcher:
    if len(wanted) == 1:
        ((key, value),) = wanted.items()
        return lambda labels: labels.get(key) == value
    pairs = dict(wanted).items()
    return lambda labels: pairs <= labels.items()


def _compare(key: str, operator: str, values: tuple[str, ...]) -> Matcher:
    """The function of a well formed requirement."""
    among = frozenset(values)
    match operator:
        case "In":
            return lambda labels: labels.get(key) in among
        case "NotIn":
            return lambda labels: labels.get(key) not in among
        case "Exists":
            return lambda labels: key in labels
        case "DoesNotExist":
            return lambda labels: key not in labels
    bound = int(values[0])
    if operator == "Gt":
        return lambda labels: (n := _integer(labels.get(key, ""))) is not None and n > bound
    return lambda labels: (n := _integer(labels.get(key, ""))) is not None and n < bound


def _integer(text: str) -> int | None:
    """A decimal number of 64 bits; None for any other text."""
    if not _INTEGER.fullmatch(text):
        return None
    n = int(text)
    return n if MIN <= n <= MAX else None


def _field_check(requirement: NodeSelectorRequirement) -> Callable[[str], bool]:
    """Fields know only In and NotIn, with one value."""
    if len(requirement.values) != 1 or requirement.operator not in ("In", "NotIn"):
        return lambda _name: False
    named, (value,), wanted = requirement.key == "metadata.name", requirement.values, requirement.operator == "In"
    return lambda name: ((name if named else "") == value) == wanted


def _first(errors: Iterable[str]) -> str:
    """The first error that is not empty."""
    return next((error for error in errors if error), "")


def _key_error(key: str) -> str:
    problem = qualified_name_error(key)
    return f"invalid label key {quote(key)}: {problem}" if problem else ""


def _values_error(key: str, values: Sequence[str]) -> str:
    for value in values:
        problem = label_value_error(value)
        if problem:
            return f"invalid label value: {quote(value)}: at key: {quote(key)}: {problem}"
    return ""


def _pair_error(key: str, value: str) -> str:
    return _key_error(key) or _values_error(key, (value,))


def _count_error(operator: str, values: tuple[str, ...]) -> str:
    """What is wrong with the number and the kind of the values."""
    if operator in ("In", "NotIn"):
        return "" if values else "for 'in', 'notin' operators, values set can't be empty"
    if operator in ("Exists", "DoesNotExist"):
        return "values set must be empty for exists and does not exist" if values else ""
    if len(values) != 1:
        return "for 'Gt', 'Lt' operators, exactly one value is required"
    return "" if _integer(values[0]) is not None else "for 'Gt', 'Lt' operators, the value must be an integer"
