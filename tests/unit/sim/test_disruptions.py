"""How many pods of a budget may be disturbed, as pods come and go."""

from __future__ import annotations

from typing import Any

import pytest

from ksp.core.changes import SetObject
from ksp.model.decode import convert
from ksp.model.pod import Pod
from ksp.model.policy import PodDisruptionBudget
from ksp.sim.disruptions import DisruptionController, desired_healthy, first_status


@pytest.mark.parametrize(
    ("at_least", "at_most", "pods", "desired"),
    [
        (2, None, 5, 2),
        (7, None, 5, 7),
        ("50%", None, 5, 3),
        ("100%", None, 5, 5),
        (None, 2, 5, 3),
        (None, "30%", 5, 3),
        (None, 7, 5, 0),
        (None, None, 5, 0),
        ("50%", None, 0, 0),
    ],
)
def test_what_a_budget_wants(at_least: int | str | None, at_most: int | str | None, pods: int, desired: int) -> None:
    assert desired_healthy(at_least, at_most, pods) == desired


def budget(allowed: int | None = None, **spec: Any) -> PodDisruptionBudget:
    status = {} if allowed is None else {"status": {"disruptionsAllowed": allowed}}
    return convert(PodDisruptionBudget, {"metadata": {"name": "b", "namespace": "default"}, "spec": spec, **status})


WEB: Any = {"matchLabels": {"app": "web"}}


def pod(name: str, app: str = "web", ready: str | None = None, **metadata: Any) -> Pod:
    labels = {"app": app}
    conditions = [] if ready is None else [{"type": "Ready", "status": ready}]
    whole = {"name": name, "namespace": "default", "uid": name, "labels": labels} | metadata
    return convert(Pod, {"metadata": whole, "status": {"conditions": conditions}})


def allowed(changes: list[SetObject]) -> list[int]:
    found = []
    for change in changes:
        assert isinstance(change.value, PodDisruptionBudget)
        assert (change.kind, change.namespace, change.name) == ("podDisruptionBudgets", "default", "b")
        found.append(change.value.status.disruptions_allowed)
    return found


def controller(counted: PodDisruptionBudget, *running: Pod) -> DisruptionController:
    return DisruptionController([counted], {each.metadata.uid: each for each in running})


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"selector": WEB, "minAvailable": 1}, 2),
        ({"selector": WEB, "minAvailable": "50%"}, 0),
        ({"selector": WEB, "maxUnavailable": 2}, 0),
        ({"selector": {}, "minAvailable": 1}, 3),
        ({"minAvailable": 1}, 0),
        ({"selector": WEB}, 0),
    ],
)
def test_the_status_that_nobody_wrote(spec: dict[str, Any], expected: int) -> None:
    """Of five pods of `web` three are healthy; one of another app is, and one is elsewhere."""
    running = [
        pod("a"), pod("b", ready="True"), pod("c", ready="True"), pod("d", ready="False"),
        pod("e", deletionTimestamp="2026-01-01T00:00:00Z"), pod("f", app="db"), pod("g", namespace="other"),
    ]  # fmt: skip
    assert first_status(budget(**spec), running).status.disruptions_allowed == expected


def test_a_selector_that_does_not_parse_protects_nobody() -> None:
    odd = {"matchExpressions": [{"key": "app", "operator": "Like", "values": ["web"]}]}
    assert first_status(budget(selector=odd, minAvailable=0), [pod("a")]).status.disruptions_allowed == 0


def test_who_is_evicted_is_missed() -> None:
    """Three pods of which one may be missing: after one has to go, none may, though fewer are there."""
    found = controller(budget(1, selector=WEB, maxUnavailable=1), pod("a"), pod("b"), pod("c"))
    assert allowed(found.evicted("a")) == [0]
    assert found.evicted("b") == []


def test_a_pod_that_comes_is_wanted_and_counts_when_it_runs() -> None:
    found = controller(budget(1, selector=WEB, maxUnavailable=1), pod("a"))
    assert allowed(found.came("b", pod("b"))) == [0]
    assert allowed(found.placed("b")) == [1]
    assert allowed(found.evicted("a")) == [0]


def test_a_pod_that_leaves_for_good_is_not_wanted_any_more() -> None:
    found = controller(budget(1, selector=WEB, minAvailable=1), pod("a"), pod("b"))
    assert allowed(found.left("a")) == [0]
    assert found.left("a") == []
    assert allowed(found.came("c", pod("c"))) == []
    assert allowed(found.placed("c")) == [1]


def test_what_the_first_status_says_is_where_it_starts() -> None:
    """Nobody may be disturbed for another reason; two more healthy pods do not change that but for themselves."""
    found = controller(budget(0, selector=WEB, minAvailable=1), pod("a"), pod("b"), pod("c"))
    assert found.evicted("a") == []
    assert found.came("d", pod("d")) == []
    assert found.placed("d") == []
    found.came("e", pod("e"))
    assert allowed(found.placed("e")) == [1]


def test_without_a_number_the_status_stays() -> None:
    found = controller(budget(2, selector=WEB), pod("a"))
    assert found.evicted("a") == []


def test_pods_of_others_change_nothing() -> None:
    found = controller(budget(1, selector=WEB, minAvailable=1), pod("a"), pod("b"))
    assert found.came("x", pod("x", app="db")) == []
    assert found.placed("x") == []
    assert found.left("x") == []
