"""Disruption budgets are respected as far as possible."""

from __future__ import annotations

import pytest
from tests.unit.core.preemption.worlds import World, running, urgent

from ksp.core.preemption import Preempted
from ksp.model.decode import convert
from ksp.model.policy import PodDisruptionBudget, as_in_v1

WEB = {"app": "web"}
SELECTOR = {"matchLabels": WEB}


def world(*, labels: dict[str, str] | None = None, namespace: str = "default") -> World:
    """A node with a pod that a budget may protect, and one that is more important."""
    metadata = {"namespace": namespace}
    protected = running("protected", cpu="2", labels=WEB if labels is None else labels, metadata=metadata)
    return World({"n": [protected, running("other", cpu="2", priority=5, labels={"app": "db"})]})


def test_who_is_not_protected_goes_though_more_important() -> None:
    subject = world()
    assert subject.victims(urgent()) == ("n", ["protected"])
    subject.budget("b", SELECTOR)
    assert subject.victims(urgent()) == ("n", ["other"])
    subject.budget("b", SELECTOR, allowed=1)
    assert subject.victims(urgent()) == ("n", ["protected"])
    subject.state.remove_object("podDisruptionBudgets", "default", "b")
    assert subject.victims(urgent()) == ("n", ["protected"])


def test_who_is_protected_goes_if_nothing_else_helps_and_goes_first() -> None:
    subject = world()
    subject.budget("b", SELECTOR)
    assert subject.victims(urgent(cpu="4")) == ("n", ["protected", "other"])


def test_a_budget_protects_its_namespace() -> None:
    for namespace, gone in (("default", "protected"), ("other", "other")):
        subject = world(namespace=namespace)
        subject.budget("b", SELECTOR, namespace="other")
        assert subject.victims(urgent()) == ("n", [gone])


@pytest.mark.parametrize(
    ("selector", "protects"),
    [
        (SELECTOR, True),
        ({"matchExpressions": [{"key": "app", "operator": "In", "values": ["web", "x"]}]}, True),
        ({"matchLabels": {"app": "else"}}, False),
        (None, False),
        ({"matchExpressions": [{"key": "app", "operator": "Like", "values": ["web"]}]}, False),
        ({"matchLabels": {"app": "not a value!"}}, False),
    ],
)
def test_a_budget_protects_whom_its_selector_selects(selector: object, *, protects: bool) -> None:
    """None if it has none, or one that cannot be read."""
    subject = world()
    subject.budget("b", selector)
    assert subject.victims(urgent()) == ("n", ["other" if protects else "protected"])


def test_an_empty_selector_protects_all() -> None:
    """Both are protected then, and the more important one is spared."""
    subject = world()
    subject.budget("b", {}, allowed=1)
    assert subject.victims(urgent()) == ("n", ["other"]), "the first in order takes what is allowed"


def test_pods_without_labels_are_not_protected() -> None:
    subject = world(labels={})
    subject.budget("b", {"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["db"]}]})
    assert subject.victims(urgent()) == ("n", ["protected"])


def test_pods_whose_eviction_is_counted_already_are_not_protected() -> None:
    subject = world()
    subject.budget("b", SELECTOR, disrupted=["protected"])
    assert subject.victims(urgent()) == ("n", ["protected"])


def test_what_is_allowed_is_used_up_in_order_of_importance_also_by_those_that_are_spared() -> None:
    """Three are protected, one may go: the most important takes that, and is spared nevertheless."""
    pods = [running(f"p{i}", priority=3 - i, labels=WEB) for i in range(3)]
    subject = World({"n": [*pods, running("high", priority=20)]})
    subject.budget("b", SELECTOR, allowed=1)
    assert subject.victims(urgent(cpu="1")) == ("n", ["p0"])
    assert subject.victims(urgent(cpu="2")) == ("n", ["p2", "p0"])
    subject.budget("b", SELECTOR, allowed=2)
    assert subject.victims(urgent(cpu="2")) == ("n", ["p0", "p1"])


def test_a_pod_violates_if_any_of_its_budgets_is_used_up() -> None:
    subject = world()
    subject.budget("generous", SELECTOR, allowed=9)
    assert subject.victims(urgent()) == ("n", ["protected"])
    subject.budget("strict", SELECTOR)
    assert subject.victims(urgent()) == ("n", ["other"])


def test_budgets_count_anew_on_each_node() -> None:
    subject = World({name: [running(name, cpu="4", labels=WEB)] for name in "ab"})
    subject.budget("b", SELECTOR, allowed=1)
    assert subject.victims(urgent()) == ("a", ["a"])
    assert subject.dice.sides == [2]


def test_what_was_found_with_other_budgets_is_forgotten() -> None:
    subject = World({"a": [running("a", cpu="4", labels=WEB)], "b": [running("b", cpu="4", labels={"app": "db"})]})
    subject.budget("b", {"matchLabels": {"app": "else"}})
    assert subject.victims(urgent()) == ("a", ["a"])
    subject.budget("b", SELECTOR)
    assert subject.victims(urgent()) == ("b", ["b"])
    subject.budget("b", SELECTOR, allowed=1)
    assert subject.victims(urgent()) == ("a", ["a"])


@pytest.mark.parametrize(
    ("version", "selector", "kept"),
    [("policy/v1", {}, True), ("policy/v1beta1", {}, False), ("policy/v1beta1", SELECTOR, True), ("", {}, True)],
)
def test_an_empty_selector_of_v1beta1_selects_nothing(version: str, selector: object, *, kept: bool) -> None:
    budget = convert(PodDisruptionBudget, {"spec": {"selector": selector}})
    assert (as_in_v1(budget, version).spec.selector is not None) == kept


def test_users_of_victims_are_told_of_budgets_that_cannot_be_read() -> None:
    subject = world()
    subject.budget("b", {"matchLabels": {"app": "not a value!"}})
    subject.budget("c", SELECTOR, allowed=1)
    preempted = subject.attempt(urgent())
    assert isinstance(preempted, Preempted)
    (warning,) = preempted.warnings
    assert (warning.pod.name, warning.reason) == ("protected", "UnreadableDisruptionBudget")
    assert warning.message.startswith('poddisruptionbudget "b" protects no pod: ')
    subject.state.remove_object("podDisruptionBudgets", "default", "b")
    preempted = subject.attempt(urgent())
    assert isinstance(preempted, Preempted)
    assert preempted.warnings == ()
