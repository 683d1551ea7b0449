from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ksp.model.info import NodeInfo
from ksp.model.meta import ObjectMeta
from ksp.model.node import Node, Taint
from ksp.model.pod import Toleration
from ksp.model.selector import (
    NOTHING,
    LabelSelector,
    LabelSelectorRequirement,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    label_selector_error,
    label_selector_is_empty,
    label_selector_matches,
    node_selector_term_matches_labels,
    node_selector_term_matches_node,
    requirement_error,
    requirement_matches,
    selector_of,
    toleration_tolerates,
)

LABELS = {"app": "web", "tier": "1", "empty": "", "big": "9223372036854775808", "plus": "+5", "word": "x1"}


def node_requirement(key: str, operator: str, *values: str) -> NodeSelectorRequirement:
    return NodeSelectorRequirement(key=key, operator=operator, values=values)


def label_requirement(key: str, operator: str, *values: str) -> LabelSelectorRequirement:
    return LabelSelectorRequirement(key=key, operator=operator, values=values)


def expressions(*requirements: LabelSelectorRequirement) -> LabelSelector:
    return LabelSelector(match_expressions=requirements)


MATCHES = [
    ("app", "In", ("web", "db"), True),
    ("app", "In", ("db",), False),
    ("none", "In", ("web",), False),
    ("none", "In", ("",), False),
    ("empty", "In", ("",), True),
    ("app", "NotIn", ("db",), True),
    ("app", "NotIn", ("web",), False),
    ("none", "NotIn", ("web",), True),
    ("app", "Exists", (), True),
    ("empty", "Exists", (), True),
    ("none", "Exists", (), False),
    ("app", "DoesNotExist", (), False),
    ("none", "DoesNotExist", (), True),
]


@pytest.mark.parametrize(("key", "operator", "values", "matches"), MATCHES)
def test_requirements(key: str, operator: str, values: tuple[str, ...], matches: bool) -> None:
    label = label_requirement(key, operator, *values)
    node = node_requirement(key, operator, *values)
    assert requirement_matches(label, LABELS) is matches
    assert requirement_matches(node, LABELS) is matches
    assert label_selector_matches(expressions(label), LABELS) is matches
    assert node_selector_term_matches_labels(NodeSelectorTerm(match_expressions=(node,)), LABELS) is matches
    assert requirement_error(label) == requirement_error(node) == ""


@pytest.mark.parametrize(
    ("key", "operator", "bound", "matches"),
    [
        ("tier", "Gt", "0", True),
        ("tier", "Gt", "1", False),
        ("tier", "Lt", "2", True),
        ("tier", "Lt", "1", False),
        ("tier", "Lt", "007", True),
        ("plus", "Gt", "4", True),
        ("none", "Gt", "0", False),
        ("none", "Lt", "0", False),
        ("word", "Gt", "0", False),
        ("empty", "Lt", "0", False),
        ("big", "Gt", "0", False),
    ],
)
def test_numbers(key: str, operator: str, bound: str, matches: bool) -> None:
    assert requirement_matches(node_requirement(key, operator, bound), LABELS) is matches


EMPTY_SET = "for 'in', 'notin' operators, values set can't be empty"
NO_INTEGER = "for 'Gt', 'Lt' operators, the value must be an integer"
BAD_VALUE = (
    'invalid label value: "-1": at key: "gen": a valid label must be an empty string or consist of alphanumeric '
    "characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or "
    "'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)


@pytest.mark.parametrize(
    ("requirement", "error"),
    [
        (node_requirement("a", "Equals", "b"), '"Equals" is not a valid node selector operator'),
        (label_requirement("a", "Bad", "b"), '"Bad" is not a valid pod selector operator'),
        (label_requirement("a", "Gt", "1"), '"Gt" is not a valid pod selector operator'),
        (label_requirement("a", "", "b"), '"" is not a valid pod selector operator'),
        (label_requirement("a", "In"), EMPTY_SET),
        (node_requirement("a", "NotIn"), EMPTY_SET),
        (label_requirement("a", "Exists", "b"), "values set must be empty for exists and does not exist"),
        (node_requirement("a", "DoesNotExist", ""), "values set must be empty for exists and does not exist"),
        (node_requirement("a", "Gt"), "for 'Gt', 'Lt' operators, exactly one value is required"),
        (node_requirement("a", "Lt", "1", "2"), "for 'Gt', 'Lt' operators, exactly one value is required"),
        (node_requirement("a", "Gt", "x"), NO_INTEGER),
        (node_requirement("a", "Gt", "1.5"), NO_INTEGER),
        (node_requirement("a", "Gt", "9223372036854775808"), NO_INTEGER),
        (node_requirement("a", "Gt", "9" * 5000), NO_INTEGER),
        (node_requirement("gen", "Gt", "-1"), BAD_VALUE),
        (node_requirement("gen", "In", "ok", "-1"), BAD_VALUE),
    ],
)
def test_malformed_requirements(requirement: LabelSelectorRequirement | NodeSelectorRequirement, error: str) -> None:
    assert requirement_error(requirement) == error
    for labels in ({}, {"a": "b"}, {"gen": "5"}):
        assert not requirement_matches(requirement, labels)


def test_a_malformed_key_is_named() -> None:
    assert requirement_error(node_requirement("a b", "Exists")).startswith('invalid label key "a b": name part must')


def test_nil_empty_and_exact_selectors() -> None:
    for labels in ({}, LABELS):
        assert label_selector_matches(LabelSelector(), labels)
        assert not label_selector_matches(NOTHING, labels)
    assert label_selector_is_empty(LabelSelector())
    assert label_selector_is_empty(selector_of({}))
    assert not label_selector_is_empty(NOTHING)
    assert not label_selector_is_empty(selector_of({"a": "b"}))
    assert label_selector_error(NOTHING) == label_selector_error(LabelSelector()) == ""


def test_all_parts_must_match() -> None:
    both = LabelSelector(
        match_labels={"app": "web", "tier": "1"}, match_expressions=(label_requirement("x", "Exists"),)
    )
    assert not label_selector_matches(both, LABELS)
    assert label_selector_matches(both, {**LABELS, "x": ""})
    assert not label_selector_matches(both, {"app": "web", "x": ""})
    assert not label_selector_matches(selector_of({"none": ""}), LABELS)


def test_a_malformed_part_spoils_the_selector() -> None:
    good, bad = label_requirement("app", "Exists"), label_requirement("app", "Has")
    assert label_selector_error(expressions(good, bad)) == '"Has" is not a valid pod selector operator'
    assert not label_selector_matches(expressions(good, bad), LABELS)
    assert label_selector_error(LabelSelector(match_labels={"gen": "-1"})) == BAD_VALUE
    assert not label_selector_matches(LabelSelector(match_labels={"gen": "-1"}), {"gen": "-1"})
    assert not label_selector_is_empty(expressions(bad))


KEYS, VALUES = st.sampled_from("abc"), st.sampled_from(["", "x", "y"])
LABEL_MAPS = st.dictionaries(KEYS, VALUES)
REQUIREMENTS = st.one_of(
    st.builds(label_requirement, KEYS, st.sampled_from(["In", "NotIn"]), VALUES, VALUES),
    st.builds(label_requirement, KEYS, st.sampled_from(["Exists", "DoesNotExist"])),
)


def holds(requirement: LabelSelectorRequirement, labels: dict[str, str]) -> bool:
    """The plain reading of a requirement."""
    present = requirement.key in labels
    among = present and labels[requirement.key] in requirement.values
    return {"In": among, "NotIn": not among, "Exists": present, "DoesNotExist": not present}[requirement.operator]


@given(LABEL_MAPS, st.lists(REQUIREMENTS, max_size=3), LABEL_MAPS)
def test_selectors_as_read_plainly(
    wanted: dict[str, str], requirements: list[LabelSelectorRequirement], labels: dict[str, str]
) -> None:
    selector = LabelSelector(match_labels=wanted, match_expressions=tuple(requirements))
    plainly = wanted.items() <= labels.items() and all(holds(requirement, labels) for requirement in requirements)
    assert label_selector_matches(selector, labels) is plainly


def named(name: str, **labels: str) -> NodeInfo:
    return NodeInfo.of(Node(metadata=ObjectMeta(name=name, labels=labels)))


FIELD = "metadata.name"


@pytest.mark.parametrize(
    ("term", "on_n1", "on_labels"),
    [
        (NodeSelectorTerm(), False, False),
        (NodeSelectorTerm(match_fields=(node_requirement(FIELD, "In", "n1"),)), True, False),
        (NodeSelectorTerm(match_fields=(node_requirement(FIELD, "In", "n2"),)), False, False),
        (NodeSelectorTerm(match_fields=(node_requirement(FIELD, "NotIn", "n1"),)), False, True),
        (NodeSelectorTerm(match_fields=(node_requirement(FIELD, "NotIn", "n2"),)), True, True),
        (NodeSelectorTerm(match_fields=(node_requirement(FIELD, "In", "n1", "n2"),)), False, False),
        (NodeSelectorTerm(match_fields=(node_requirement(FIELD, "Exists"),)), False, False),
        (NodeSelectorTerm(match_fields=(node_requirement("other", "In", ""),)), True, True),
        (NodeSelectorTerm(match_fields=(node_requirement("other", "NotIn", "n1"),)), True, True),
        (NodeSelectorTerm(match_expressions=(node_requirement("zone", "In", "a"),)), True, True),
        (NodeSelectorTerm(match_expressions=(node_requirement("zone", "Is", "a"),)), False, False),
        (
            NodeSelectorTerm(
                match_expressions=(node_requirement("zone", "In", "a"),),
                match_fields=(node_requirement(FIELD, "In", "n1"),),
            ),
            True,
            False,
        ),
        (
            NodeSelectorTerm(
                match_expressions=(node_requirement("zone", "In", "b"),),
                match_fields=(node_requirement(FIELD, "In", "n1"),),
            ),
            False,
            False,
        ),
    ],
)
def test_node_selector_terms(term: NodeSelectorTerm, on_n1: bool, on_labels: bool) -> None:
    assert node_selector_term_matches_node(term, named("n1", zone="a")) is on_n1
    assert node_selector_term_matches_labels(term, {"zone": "a"}) is on_labels


@pytest.mark.parametrize(
    ("toleration", "tolerates"),
    [
        (Toleration(), False),
        (Toleration(operator="Exists"), True),
        (Toleration(value="v"), True),
        (Toleration(key="k", value="v"), True),
        (Toleration(key="k", operator="Equal", value="v", effect="NoSchedule"), True),
        (Toleration(key="k", operator="Equal", value="w"), False),
        (Toleration(key="k", operator="Exists", value="ignored"), True),
        (Toleration(key="other", operator="Exists"), False),
        (Toleration(key="k", operator="Exists", effect="NoExecute"), False),
        (Toleration(key="k", operator="In", value="v"), False),
        (Toleration(key="k", value="v", toleration_seconds=0), True),
    ],
)
def test_tolerations(toleration: Toleration, tolerates: bool) -> None:
    assert toleration_tolerates(toleration, Taint(key="k", value="v", effect="NoSchedule")) is tolerates
