"""Which fields of pods a rule reads, by whatever names."""

from __future__ import annotations

import pytest
from tests.unit.compile.compiling import rule

from ksp.compile.fields import field_reads
from ksp.compile.footprint import footprint_of

CONSTRAINTS = "spec.topologySpreadConstraints"
MIN_DOMAINS = "spec.topologySpreadConstraints[…].minDomains"

# Bodies of predicates that read minDomains of the pod's constraints.
READING = {
    "an element": 'deny "x" when pod.spec.topologySpreadConstraints[0].minDomains > 1',
    "has": 'deny "x" when has(pod.spec.topologySpreadConstraints[0].minDomains)',
    "a macro": 'deny "x" when pod.spec.topologySpreadConstraints.exists(c, c.minDomains > 1)',
    "a macro with two variables": 'deny "x" when pod.spec.topologySpreadConstraints.exists(i, c, c.minDomains > i)',
    "a loop": 'for c in pod.spec.topologySpreadConstraints { deny "x" when c.minDomains > 1 }',
    "a loop in a prefilter": (
        'prefilter { for c in pod.spec.topologySpreadConstraints { deny "x" when c.minDomains > 1 } }'
    ),
    "a loop in a collection": (
        'collect { for c in pod.spec.topologySpreadConstraints { deny "x" when c.minDomains > 1 } '
        'deny "y" when node.name == "n" }'
    ),
    "a let": 'let cs = pod.spec.topologySpreadConstraints deny "x" when cs[0].minDomains > 1',
    "lets of lets": (
        'let cs = pod.spec.topologySpreadConstraints let c = cs[0] deny "x" when c.minDomains > 1'
    ),
    "a filtered list": (
        'let hard = pod.spec.topologySpreadConstraints.filter(c, c.whenUnsatisfiable == "DoNotSchedule") '
        'for c in hard { deny "x" when c.minDomains > 1 }'
    ),
    "what is mapped": 'deny "x" when pod.spec.topologySpreadConstraints.map(c, c.minDomains).max(0) > 1',
    "elements of what is mapped": (
        'let boxed = pod.spec.topologySpreadConstraints.map(c, [c]) deny "x" when boxed[0][0].minDomains > 1'
    ),
    "either of two": (
        "param more: list<TopologySpreadConstraint> = [] "
        'let cs = size(more) > 0 ? more : pod.spec.topologySpreadConstraints deny "x" when cs[0].minDomains > 1'
    ),
    "a sum of lists": (
        "param more: list<TopologySpreadConstraint> = [] "
        'deny "x" when (more + pod.spec.topologySpreadConstraints).exists(c, c.minDomains > 1)'
    ),
    "a part of a list": 'deny "x" when pod.spec.topologySpreadConstraints.distinct()[0].minDomains > 1',
    "an argument": (
        "fn least(c: TopologySpreadConstraint): int = c.minDomains + c.minDomains "
        'deny "x" when pod.spec.topologySpreadConstraints.exists(c, least(c) > 1)'
    ),
    "an argument that is a pod": (
        "fn least(p: Pod): int = p.spec.topologySpreadConstraints[0].minDomains "
        'deny "x" when least(pod) > 1'
    ),
    "a list in a view": (
        "view n = sum c.minDomains for p in cluster.pods, c in pod.spec.topologySpreadConstraints by p.node.name "
        'deny "x" when n[node.name] > 1'
    ),
}  # fmt: skip


@pytest.mark.parametrize("body", READING.values(), ids=READING)
def test_a_field_is_read_by_whatever_name(body: str) -> None:
    found = field_reads(rule(f"predicate P {{ {body} }}"))
    assert MIN_DOMAINS in found.pod
    assert MIN_DOMAINS not in found.rows


NOT_READING = {
    "another field": 'deny "x" when pod.spec.topologySpreadConstraints.exists(c, c.maxSkew > 1)',
    "how many": 'deny "x" when size(pod.spec.topologySpreadConstraints) > 1',
    "of a parameter": 'param cs: list<TopologySpreadConstraint> = [] deny "x" when cs.exists(c, c.minDomains > 1)',
    "of running pods": (
        "view n = count p in cluster.pods where p.spec.topologySpreadConstraints.exists(c, c.minDomains > 1) "
        'by p.node.name deny "x" when n[node.name] > 1'
    ),
}


@pytest.mark.parametrize("body", NOT_READING.values(), ids=NOT_READING)
def test_what_is_not_read_of_the_pod(body: str) -> None:
    assert MIN_DOMAINS not in field_reads(rule(f"predicate P {{ {body} }}")).pod


@pytest.mark.parametrize(
    "view",
    [
        "count p in cluster.pods where p.spec.topologySpreadConstraints.exists(c, c.minDomains > 1) by p.node.name",
        "count p in cluster.pods, c in p.spec.topologySpreadConstraints where c.minDomains > 1 by p.node.name",
    ],
)
def test_fields_of_running_pods_are_those_of_rows(view: str) -> None:
    found = field_reads(rule(f'predicate P {{ view v = {view} deny "x" when v[node.name] > 1 }}'))
    assert {CONSTRAINTS, MIN_DOMAINS} <= found.rows
    assert not any(path.startswith("spec") for path in found.pod)


def test_a_first_row_is_a_running_pod() -> None:
    text = 'view f = first p in cluster.pods where p.name > "a" deny "x" when f.spec.nodeSelector["a"] == "b"'
    found = field_reads(rule(f"predicate P {{ {text} }}"))
    assert found.rows == {"name", "spec", "spec.nodeSelector"}


def test_rows_that_are_nodes_are_no_pods() -> None:
    text = 'view n = count n in cluster.nodes where n.spec.unschedulable deny "x" when n > 1'
    found = field_reads(rule(f"predicate P {{ {text} }}"))
    assert (found.pod, found.rows) == (frozenset(), frozenset())


def test_a_priority_reads_too() -> None:
    text = (
        "priority P { score size(pod.spec.tolerations.filter(t, t.key == 'gpu')) "
        "normalize { let name = pod.name score size(name) } }"
    )
    assert {"spec.tolerations[…].key", "name"} <= field_reads(rule(text)).pod


def test_the_footprint_has_them() -> None:
    text = rule('predicate P { deny "x" when pod.spec.tolerations.exists(t, t.key == "gpu") }')
    assert footprint_of(text).fields == field_reads(text)
    assert footprint_of(text).pod == ("spec.tolerations",)
