"""Pods that could have others evicted: when they are tried again though no node fits."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace
from tests.unit.core.scheduling import REQUIRED, anti_affinity, node, pod, scheduler, stepped

from ksp.core.changes import DeleteNode, DeletePod, Evict, SetNode, SetPod
from ksp.core.node_order import ZONE
from ksp.core.questions import Ask
from ksp.core.scheduler import Scheduler, Step

LATER = 5.0  # after the first backoff, before the end of patience
TAINT = {"key": "gpu", "effect": "NoSchedule"}


def evicted(step: Step | Ask | None) -> list[str]:
    """The victims of the attempt."""
    assert isinstance(step, Step)
    return [victim.name for effect in step.effects if isinstance(effect, Evict) for victim in effect.victims]


def running(name: str, on: str = "n", **fields: Any) -> SetPod:
    return SetPod(pod(name, on=on, **{"requests": {"cpu": "2"}, **fields}))


def crowded(*nodes: SetNode, **spec: Any) -> Scheduler:
    """Node `n` is full with `low` (priority 0) and `high` (priority 20). P (priority 10) needs all of it: no node fits,
    and an eviction of `low` would not help."""
    subject = scheduler()
    for change in nodes or (SetNode(node("n")),):
        subject.on(change, 0.0)
    subject.on(running("low"), 0.0)
    subject.on(running("high", priority=20), 0.0)
    subject.on(SetPod(pod("p", **{"requests": {"cpu": "4"}, "priority": 10, **spec})), 0.0)
    step = stepped(subject)
    assert not step.decision.node
    assert not evicted(step)
    return subject


def asleep(subject: Scheduler) -> bool:
    return subject.step(LATER) is None and subject.pending()["unschedulable"] == 1


# ---- who wakes though no node fits


def test_a_higher_pod_leaves_and_the_lower_ones_can_be_evicted() -> None:
    subject = crowded()
    subject.on(DeletePod("high"), LATER)
    assert evicted(subject.step(LATER)) == ["low"]


def test_a_lower_pod_takes_the_place_of_a_higher_one() -> None:
    """P had its turn while the place was free, was too large for it, and would be without the newcomer, too."""
    subject = crowded()
    subject.on(DeletePod("high"), 0.5)  # P backs off
    subject.on(running("newcomer"), 0.6)
    assert sorted(evicted(subject.step(LATER))) == ["low", "newcomer"]


def test_a_lower_pod_that_comes_is_no_reason_to_ask() -> None:
    subject = crowded()
    subject.on(SetPod(pod("low", on="n", phase="Succeeded")), LATER)
    assert asleep(subject)
    answers = subject.queue.sleepers.answers.copy()
    subject.on(running("newcomer"), LATER)
    assert asleep(subject)
    assert subject.queue.sleepers.answers == answers


def test_a_taint_that_goes_helps_though_the_node_was_full_before_it_was_tainted() -> None:
    """`PodFitsResources` is asked first, and denies the node before and after."""
    subject = scheduler()
    subject.on(SetNode(node("n", taints=[TAINT])), 0.0)
    for name in ("one", "two"):
        subject.on(running(name, tolerations=[{"operator": "Exists"}]), 0.0)
    subject.on(SetPod(pod("p", priority=10)), 0.0)
    assert not evicted(subject.step(0.0))
    subject.on(SetNode(node("n")), LATER)
    assert evicted(subject.step(LATER)) in (["one"], ["two"])


def test_a_neighbour_that_comes_helps_though_the_node_is_full() -> None:
    """P wants to be near `web`; the rule that says so is not asked about a node that is full."""
    near = {"podAffinity": {REQUIRED: [{"topologyKey": ZONE, "labelSelector": {"matchLabels": {"app": "web"}}}]}}
    subject = scheduler()
    for name in ("n", "m"):
        subject.on(SetNode(node(name, cpu="2" if name == "n" else "1", zone="z")), 0.0)
    subject.on(running("low"), 0.0)
    subject.on(SetPod(pod("p", requests={"cpu": "2"}, priority=10, affinity=near)), 0.0)
    assert not evicted(subject.step(0.0))
    subject.on(running("other", on="m", requests={"cpu": "1"}, priority=10), LATER)
    assert asleep(subject)
    subject.on(running("web", on="m", requests={"cpu": "0"}, labels={"app": "web"}), LATER)
    assert evicted(subject.step(LATER)) == ["low"]


def test_a_neighbour_that_stays_helps_where_the_only_one_would_be_evicted() -> None:
    """The rule that says so admits the node as it is: it would deny it once the victims are gone."""
    near = {"podAffinity": {REQUIRED: [{"topologyKey": ZONE, "labelSelector": {"matchLabels": {"app": "web"}}}]}}
    subject = scheduler()
    subject.on(SetNode(node("n", zone="z")), 0.0)
    subject.on(running("web", labels={"app": "web"}), 0.0)
    subject.on(running("low"), 0.0)
    subject.on(SetPod(pod("p", requests={"cpu": "2"}, priority=10, affinity=near)), 0.0)
    assert not evicted(subject.step(0.0))
    subject.on(running("lasting", requests={"cpu": "0"}, labels={"app": "web"}, priority=20), LATER)
    assert evicted(subject.step(LATER)) == ["low"]


def test_each_of_many_that_are_alike_gets_its_victims() -> None:
    subject = scheduler()
    for place in ("n", "m"):
        subject.on(SetNode(node(place)), 0.0)
        subject.on(running(f"low-{place}", on=place), 0.0)
        subject.on(running(f"high-{place}", on=place, priority=20), 0.0)
    for i in range(3):
        subject.on(SetPod(pod(f"p{i}", requests={"cpu": "4"}, priority=10)), 0.0)
        assert not evicted(subject.step(0.0))
    for place in ("n", "m"):
        subject.on(DeletePod(f"high-{place}"), LATER)
    assert sorted(evicted(subject.step(LATER)) + evicted(subject.step(LATER))) == ["low-m", "low-n"]
    assert subject.step(LATER) is None
    assert subject.pending()["unschedulable"] == 3
    assert subject.queue.nominations.nodes().keys() == {"n", "m"}


# ---- who does not


@pytest.mark.parametrize("spec", [{"preemptionPolicy": "Never"}, {"priority": 0}])
def test_who_may_evict_nobody_sleeps_on(spec: dict[str, Any]) -> None:
    subject = crowded(**spec)
    subject.on(DeletePod("high"), LATER)
    assert asleep(subject)
    assert subject.queue.sleepers.answers == {"waits": 1}


def test_an_answer_of_no_is_not_repeated_for_what_changes_nothing() -> None:
    """The departure of a pod that was no obstacle is asked about once; a label, a Service, a pod that comes: never."""
    subject = crowded(SetNode(node("n")), SetNode(node("m", cpu="1")))
    subject.on(running("other", on="m", requests={"cpu": "1"}), LATER)
    assert asleep(subject)
    assert not subject.queue.sleepers.answers
    subject.on(DeletePod("other"), LATER)
    assert asleep(subject)
    assert subject.queue.sleepers.answers == {"waits": 1}


def test_no_more_than_two_searches_for_victims_come_before_an_attempt() -> None:
    """However many kinds of pods are owed an answer."""
    subject = scheduler()
    subject.on(SetNode(node("n")), 0.0)
    for name, priority in (("low", 0), ("high", 20), ("other", 20)):
        subject.on(running(name, requests={"cpu": "1"}, priority=priority), 0.0)
    for cpus in range(4, 10):
        subject.on(SetPod(pod(f"p{cpus}", requests={"cpu": str(cpus)}, priority=10)), 0.0)
        assert not evicted(subject.step(0.0))
    subject.on(DeletePod("other"), LATER)
    answers = []
    while subject.queue.sleepers.owing:
        assert subject.step(LATER) is None
        answers.append(sum(subject.queue.sleepers.answers.values()))
    assert answers == [4, 6]
    assert subject.queue.sleepers.answers == {"waits": 6}


# ---- while victims are on their way out


def claimant() -> Scheduler:
    """P has had `low` evicted from `n`, and waits for it to go; `m` is full with `other`."""
    subject = scheduler()
    for name in ("n", "m"):
        subject.on(SetNode(node(name, cpu="2")), 0.0)
    subject.on(running("low"), 0.0)
    subject.on(running("other", on="m", priority=5), 0.0)
    subject.on(SetPod(pod("p", requests={"cpu": "2"}, priority=10)), 0.0)
    assert evicted(subject.step(0.0)) == ["low"]
    subject.effects()
    return subject


def test_who_waits_for_victims_evicts_no_more() -> None:
    subject = claimant()
    subject.on(running("low", metadata={"deletionTimestamp": "2020-01-01T00:00:00Z"}), LATER)
    subject.on(SetNode(node("m", cpu="2", labels={"x": "y"})), LATER)
    subject.on(SetNode(node("m", cpu="2500m")), LATER)
    assert asleep(subject)


def test_who_waits_for_victims_is_tried_when_they_are_gone() -> None:
    subject = claimant()
    subject.on(DeletePod("low"), LATER)
    assert stepped(subject, LATER).decision.node == "n"


def test_who_waits_for_victims_on_a_node_that_is_closed_turns_to_another() -> None:
    subject = claimant()
    was = node("n", cpu="2")
    subject.on(SetNode(replace(was, spec=replace(was.spec, unschedulable=True))), LATER)
    assert evicted(subject.step(LATER)) == ["other"]
    assert subject.queue.nominations.node_of("p") == "m"


def test_who_waits_for_victims_on_a_node_that_goes_turns_to_another_at_once() -> None:
    subject = claimant()
    subject.on(DeleteNode("n"), LATER)
    assert evicted(subject.step(LATER)) == ["other"]
    assert subject.queue.nominations.node_of("p") == "m"


def test_what_a_claim_that_is_cleared_kept_away_may_come() -> None:
    """H takes the place of P's claim on `n`; Q avoids P, not H."""
    subject = scheduler()
    subject.on(SetNode(node("n", cpu="2", zone="z")), 0.0)
    subject.on(running("low"), 0.0)
    subject.on(SetPod(pod("p", requests={"cpu": "2"}, priority=10, labels={"app": "web"})), 0.0)
    subject.on(SetPod(pod("q", requests={"cpu": "0"}, affinity=anti_affinity("web"))), 0.0)
    assert evicted(subject.step(0.0)) == ["low"]
    assert not stepped(subject).decision.node
    subject.on(SetPod(pod("h", requests={"cpu": "2"}, priority=20)), LATER)
    assert evicted(subject.step(LATER)) == ["low"]
    assert {(step.pod.name, step.decision.node) for step in (stepped(subject, LATER), stepped(subject, LATER))} == {
        ("p", ""), ("q", "n"),
    }  # fmt: skip


def test_pods_that_only_a_claim_tells_apart_are_asked_about_one_by_one() -> None:
    """By P's anti-affinity; where P is not yet, `web` and `db` are of one class."""
    subject = scheduler()
    subject.on(SetNode(node("n", cpu="3", zone="z")), 0.0)
    subject.on(running("low", requests={"cpu": "3"}), 0.0)
    subject.on(SetPod(pod("p", requests={"cpu": "2"}, priority=10, affinity=anti_affinity("web"))), 0.0)
    assert evicted(subject.step(0.0)) == ["low"]
    for app in ("web", "db"):
        subject.on(SetPod(pod(app, labels={"app": app})), 0.0)
        assert not stepped(subject).decision.node
    subject.on(DeletePod("low"), 0.5)
    assert [stepped(subject, LATER).pod.name for _ in range(2)] == ["p", "db"]
    assert asleep(subject)


def test_the_node_that_a_claim_leaves_is_free_for_others() -> None:
    """P turns from `n` to `m`; Q, which tolerates what keeps P from `n`, was kept from it by P's claim alone."""
    subject = claimant()
    tolerant: dict[str, Any] = {"tolerations": [{"operator": "Exists"}], "preemptionPolicy": "Never"}
    subject.on(SetPod(pod("q", requests={"cpu": "2"}, priority=1, **tolerant)), 0.0)
    assert not stepped(subject).decision.node
    subject.on(DeletePod("low"), 0.5)  # P backs off
    subject.on(SetNode(node("n", cpu="2", taints=[TAINT])), 0.6)
    assert evicted(subject.step(LATER)) == ["other"]
    step = stepped(subject, LATER)
    assert (step.pod.name, step.decision.node) == ("q", "n")
