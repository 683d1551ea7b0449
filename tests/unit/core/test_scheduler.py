"""The scheduler as its driver sees it: changes go in, effects come out, outcomes go in."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace
from tests.unit.core.scheduling import FakeDice, default_profile, node, pod, profile_of, scheduler, stepped

from ksp.core.changes import (
    SCHEDULER_ERROR,
    UNSCHEDULABLE,
    Bind,
    DeleteNode,
    DeleteObject,
    DeletePod,
    Report,
    SetNode,
    SetObject,
    SetPod,
)
from ksp.core.queue import Place
from ksp.core.scheduler import Scheduler
from ksp.model.apps import Service
from ksp.model.decode import convert


def with_nodes(*names: str, **fields: Any) -> Scheduler:
    subject = scheduler(**fields)
    for name in names:
        subject.on(SetNode(node(name)), 0.0)
    return subject


def place_of(subject: Scheduler, uid: str) -> Place:
    queued = subject.queue.get(uid)
    return Place.ABSENT if queued is None else queued.place


def cpu_on(subject: Scheduler, name: str) -> int:
    return subject.state.nodes[name].requested["cpu"]


# ---- a pod's way


def test_a_pod_is_bound_to_the_node_that_was_chosen() -> None:
    subject = with_nodes("n")
    subject.on(SetPod(pod("p")), 0.0)
    step = stepped(subject)
    assert (step.pod.name, step.attempt, step.decision.node) == ("p", 1, "n")
    assert step.effects == (Bind(step.pod, "n"),)
    assert subject.step(0.0) is None


def test_an_assumed_pod_counts_for_the_next_decision() -> None:
    subject = with_nodes("n")
    subject.on(SetPod(pod("first", requests={"cpu": "3"})), 0.0)
    subject.on(SetPod(pod("second", requests={"cpu": "2"})), 0.0)
    assert stepped(subject).decision.node == "n"
    assert stepped(subject).decision.message == "0/1 nodes are available: 1 Insufficient cpu."


def test_the_watch_confirms_what_was_assumed() -> None:
    subject = with_nodes("n")
    subject.on(SetPod(pod("p")), 0.0)
    stepped(subject)
    subject.bind_succeeded("p", 0.1)
    assert subject.cache.is_assumed("p")
    subject.on(SetPod(pod("p", on="n")), 0.2)
    assert not subject.cache.is_assumed("p")
    assert "p" not in subject.queue
    assert cpu_on(subject, "n") == 1000


def test_the_watch_may_come_before_the_outcome() -> None:
    subject = with_nodes("n")
    subject.on(SetPod(pod("p")), 0.0)
    stepped(subject)
    subject.on(SetPod(pod("p", on="n")), 0.1)
    subject.bind_succeeded("p", 0.2)
    subject.bind_failed("p", 0.3)  # a timeout whose binding came through all the same
    assert cpu_on(subject, "n") == 1000
    assert "p" not in subject.queue


def test_a_binding_that_fails_gives_the_node_back_and_is_tried_again_with_backoff() -> None:
    subject = with_nodes("n")
    subject.on(SetPod(pod("p")), 0.0)
    for attempt, (now, backoff) in enumerate([(0.0, 1.0), (1.0, 2.0), (3.0, 4.0)], start=1):
        step = stepped(subject, now)
        assert (step.attempt, step.decision.node) == (attempt, "n")
        subject.bind_failed("p", now)
        assert cpu_on(subject, "n") == 0
        assert place_of(subject, "p") is Place.BACKOFF
        assert subject.next_deadline(now) == now + backoff
        assert subject.step(now + backoff - 0.1) is None


def test_a_binding_that_fails_helps_those_who_wait_for_room() -> None:
    subject = with_nodes("n")
    subject.on(SetPod(pod("first", requests={"cpu": "3"})), 0.0)
    subject.on(SetPod(pod("second", requests={"cpu": "2"})), 0.0)
    stepped(subject)
    stepped(subject)
    assert place_of(subject, "second") is Place.UNSCHEDULABLE
    subject.bind_failed("first", 5.0)
    assert place_of(subject, "second") is Place.ACTIVE


def test_the_node_that_the_watch_names_wins() -> None:
    subject = with_nodes("a", "b")
    subject.on(SetPod(pod("p")), 0.0)
    chosen = stepped(subject).decision.node
    other = "b" if chosen == "a" else "a"
    subject.on(SetPod(pod("p", on=other)), 0.1)
    assert (cpu_on(subject, chosen), cpu_on(subject, other)) == (0, 1000)


# ---- reports


def test_a_misfit_is_reported_and_waits() -> None:
    subject = with_nodes("n")
    subject.on(SetPod(pod("p", requests={"cpu": "64"})), 0.0)
    step = stepped(subject)
    message = "0/1 nodes are available: 1 Insufficient cpu."
    assert step.effects == (Report(step.pod, UNSCHEDULABLE, message, nominated_node=""),)
    assert place_of(subject, "p") is Place.UNSCHEDULABLE
    assert subject.next_deadline(0.0) == 60.0


def test_without_nodes_a_pod_waits_for_the_first() -> None:
    subject = scheduler()
    subject.on(SetPod(pod("p")), 0.0)
    step = stepped(subject)
    message = "no nodes available to schedule pods"
    assert step.effects == (Report(step.pod, UNSCHEDULABLE, message, nominated_node=""),)
    assert place_of(subject, "p") is Place.UNSCHEDULABLE
    subject.on(SetPod(pod("runs", on="n")), 2.0)
    subject.on(SetObject("services", "default", "s", Service()), 2.0)
    assert place_of(subject, "p") is Place.UNSCHEDULABLE
    subject.on(SetNode(node("n")), 2.0)
    assert stepped(subject, 2.0).decision.node == "n"


def test_an_error_is_reported_and_tried_again_with_backoff() -> None:
    subject = with_nodes("n")
    claim = {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}
    subject.on(SetPod(pod("p", volumes=[claim])), 0.0)
    step = stepped(subject)
    assert step.effects == (Report(step.pod, SCHEDULER_ERROR, 'persistentvolumeclaim "data" not found'),)
    assert place_of(subject, "p") is Place.BACKOFF
    assert stepped(subject, 1.0).attempt == 2


def test_amounts_that_cannot_be_read_are_reported_while_others_go_on() -> None:
    subject = with_nodes("n")
    subject.on(SetPod(pod("odd", requests={"cpu": "a lot"}, priority=100)), 0.0)
    subject.on(SetPod(pod("fine")), 0.0)
    step = stepped(subject)
    assert step.pod.name == "odd"
    assert isinstance(step.effects[0], Report)
    assert "a lot" in step.effects[0].message
    assert stepped(subject).decision.node == "n"


def test_a_node_whose_amounts_cannot_be_read_takes_no_pods() -> None:
    subject = with_nodes("fine")
    subject.on(SetNode(node("odd", cpu="a lot")), 0.0)
    for name in ("p", "q"):
        subject.on(SetPod(pod(name)), 0.0)
    assert [stepped(subject).decision.node for _ in range(2)] == ["fine", "fine"]


def test_running_pods_whose_amounts_cannot_be_read_disturb_nobody() -> None:
    subject = with_nodes("n")
    subject.on(SetPod(pod("odd", on="n", requests={"cpu": "a lot"})), 0.0)
    subject.on(SetPod(pod("p")), 0.0)
    assert stepped(subject).decision.node == "n"
    subject.on(DeletePod("odd"), 0.0)
    assert cpu_on(subject, "n") == 1000


# ---- whose pods, and which


@pytest.mark.parametrize(
    "fields",
    [
        {"schedulerName": "another"},
        {"schedulingGates": [{"name": "wait"}]},
        {"metadata": {"deletionTimestamp": "2020-01-01T00:00:00Z"}},
        {"phase": "Succeeded"},
        {"phase": "Failed"},
    ],
)
def test_some_pods_are_not_scheduled(fields: dict[str, Any]) -> None:
    subject = with_nodes("n")
    subject.on(SetPod(pod("p", **fields)), 0.0)
    assert "p" not in subject.queue
    assert subject.step(0.0) is None


@pytest.mark.parametrize("scheduler_name", ["", "default-scheduler"])
def test_a_pod_that_names_no_scheduler_is_the_default_ones(scheduler_name: str) -> None:
    subject = with_nodes("n")
    subject.on(SetPod(pod("p", schedulerName=scheduler_name)), 0.0)
    assert stepped(subject).decision.node == "n"


def test_a_pod_is_decided_by_the_profile_that_it_names() -> None:
    rules = "predicate OnlyB { deny 'not b' when node.name != 'b' }"
    text = profile_of(rules, "predicates { OnlyB }")
    other = type(text)("other", text.predicates, text.priorities, text.percentage)
    subject = scheduler(default_profile(), other, dice=FakeDice())
    for name in "ab":
        subject.on(SetNode(node(name)), 0.0)
    subject.on(SetPod(pod("p", schedulerName="other")), 0.0)
    subject.on(SetPod(pod("q")), 0.0)
    assert {step.pod.name: step.decision.node for step in (stepped(subject), stepped(subject))} == {"p": "b", "q": "a"}


def test_pods_of_other_schedulers_count_where_they_run() -> None:
    subject = with_nodes("n")
    subject.on(SetPod(pod("theirs", on="n", requests={"cpu": "4"}, schedulerName="another")), 0.0)
    subject.on(SetPod(pod("p")), 0.0)
    assert stepped(subject).decision.message == "0/1 nodes are available: 1 Insufficient cpu."


def test_a_gate_that_opens_lets_the_pod_in() -> None:
    subject = with_nodes("n")
    subject.on(SetPod(pod("p", schedulingGates=[{"name": "wait"}])), 0.0)
    subject.on(SetPod(pod("p")), 1.0)
    assert stepped(subject, 1.0).decision.node == "n"


def test_a_waiting_pod_that_is_deleted_softly_leaves_the_queue() -> None:
    subject = with_nodes("n")
    subject.on(SetPod(pod("p")), 0.0)
    subject.on(SetPod(pod("p", metadata={"deletionTimestamp": "2020-01-01T00:00:00Z"})), 0.0)
    assert subject.step(0.0) is None


def test_a_terminating_pod_counts_until_it_is_gone_or_has_ended() -> None:
    subject = with_nodes("n")
    subject.on(SetPod(pod("p", on="n", metadata={"deletionTimestamp": "2020-01-01T00:00:00Z"})), 0.0)
    assert cpu_on(subject, "n") == 1000
    subject.on(SetPod(pod("p", on="n", phase="Succeeded")), 0.0)
    assert cpu_on(subject, "n") == 0
    subject.on(DeletePod("p"), 0.0)
    assert cpu_on(subject, "n") == 0


# ---- changes while a pod is in flight


def test_a_pod_deleted_in_flight_leaves_its_node_whatever_the_outcome() -> None:
    for failed in (False, True):
        subject = with_nodes("n")
        subject.on(SetPod(pod("p")), 0.0)
        stepped(subject)
        subject.on(DeletePod("p"), 0.1)
        (subject.bind_failed if failed else subject.bind_succeeded)("p", 0.2)
        assert cpu_on(subject, "n") == 0
        assert "p" not in subject.queue
        assert "p" not in subject.cache


def test_a_pod_changed_in_flight_counts_as_changed() -> None:
    subject = with_nodes("n")
    subject.on(SetPod(pod("p")), 0.0)
    stepped(subject)
    subject.on(SetPod(pod("p", labels={"app": "web"})), 0.1)
    assert subject.state.pods["p"].labels == {"app": "web"}
    assert place_of(subject, "p") is Place.IN_FLIGHT


def test_a_pod_changed_in_flight_is_tried_again_at_once() -> None:
    subject = with_nodes("n")
    subject.on(SetPod(pod("p")), 0.0)
    stepped(subject)
    subject.on(SetPod(pod("p", labels={"app": "web"})), 0.1)
    subject.bind_failed("p", 0.2)
    again = stepped(subject, 0.2)
    assert again.pod.labels == {"app": "web"}
    assert again.decision.node == "n"


def test_a_pod_that_terminates_in_flight_is_not_tried_again() -> None:
    subject = with_nodes("n")
    subject.on(SetPod(pod("p")), 0.0)
    stepped(subject)
    subject.on(SetPod(pod("p", metadata={"deletionTimestamp": "2020-01-01T00:00:00Z"})), 0.1)
    assert cpu_on(subject, "n") == 1000
    subject.bind_failed("p", 0.2)
    assert subject.step(100.0) is None
    assert cpu_on(subject, "n") == 0


def test_a_node_deleted_in_flight_takes_the_assumption_out_of_sight() -> None:
    subject = with_nodes("n", "m")
    subject.on(SetPod(pod("p")), 0.0)
    chosen = stepped(subject).decision.node
    subject.on(DeleteNode(chosen), 0.1)
    assert "p" not in subject.state.pods
    subject.bind_failed("p", 0.2)
    assert stepped(subject, 1.2).decision.node == ({"n", "m"} - {chosen}).pop()


def test_an_assumed_pod_stays_counted_when_its_node_comes_back() -> None:
    subject = with_nodes("n")
    subject.on(SetPod(pod("p")), 0.0)
    stepped(subject)
    subject.on(DeleteNode("n"), 0.1)
    subject.on(SetNode(node("n")), 0.2)
    assert cpu_on(subject, "n") == 1000


def test_an_assumption_expires_only_if_that_is_asked_for() -> None:
    for ttl, cpu in ((None, 1000), (30.0, 0)):
        subject = with_nodes("n", assumed_ttl=ttl)
        subject.on(SetPod(pod("p")), 0.0)
        stepped(subject)
        subject.bind_succeeded("p", 1.0)
        assert subject.next_deadline(1.0) == (None if ttl is None else 31.0)
        subject.step(31.0)
        assert cpu_on(subject, "n") == cpu


def test_an_assumed_pod_claims_no_node_again_by_its_old_status() -> None:
    """Assumed on n, its status still names n as nominated: it must not count there twice."""
    subject = with_nodes("n")
    subject.on(SetPod(pod("p", nominated="n")), 0.0)
    stepped(subject)
    subject.on(SetPod(pod("p", nominated="n", labels={"app": "web"})), 0.1)
    assert subject.queue.nominated_on("n") == []
    subject.on(SetPod(pod("q")), 0.2)
    assert stepped(subject, 0.2).decision.node == "n"


def test_a_claim_that_the_watch_shows_late_is_not_taken_up_by_an_assumed_pod() -> None:
    """Preemption patched the status; the pod was assumed on the node before the watch showed the patch."""
    subject = with_nodes("n")
    subject.on(SetPod(pod("p")), 0.0)
    stepped(subject)
    subject.on(SetPod(pod("p", nominated="n")), 0.1)
    assert subject.queue.nominated_on("n") == []
    subject.on(SetPod(pod("q")), 0.2)
    assert stepped(subject, 0.2).decision.node == "n"


# ---- changes of what waits


def test_a_changed_spec_gives_an_unschedulable_pod_another_try() -> None:
    subject = with_nodes("n")
    subject.on(SetPod(pod("p", requests={"cpu": "64"})), 0.0)
    stepped(subject)
    subject.on(SetPod(pod("p", requests={"cpu": "64"}, phase="Pending")), 1.0)
    assert place_of(subject, "p") is Place.UNSCHEDULABLE
    subject.on(SetPod(pod("p", requests={"cpu": "1"})), 2.0)
    assert stepped(subject, 2.0).decision.node == "n"


def test_higher_priorities_come_first() -> None:
    subject = with_nodes("n")
    for i, priority in enumerate([0, 10, 5, 10]):
        subject.on(SetPod(pod(f"p{i}", priority=priority, requests={"cpu": "100m"})), float(i))
    assert [stepped(subject, 9.0).pod.name for _ in range(4)] == ["p1", "p3", "p2", "p0"]


def test_a_nominated_pod_keeps_its_node_from_lesser_ones() -> None:
    subject = with_nodes("n")
    subject.on(SetPod(pod("claimant", requests={"cpu": "4"}, priority=10, nominated="n")), 0.0)
    queued = subject.queue.pop(0.0)
    assert queued is not None
    subject.queue.fail(queued, 0.0, frozenset({"PodFitsResources"}))
    subject.on(SetPod(pod("p")), 0.0)
    assert stepped(subject).decision.message == "0/1 nodes are available: 1 Insufficient cpu."
    subject.on(DeletePod("claimant"), 0.0)
    assert subject.queue.nominated_on("n") == []


def test_a_pod_that_finishes_without_having_run_is_no_more() -> None:
    subject = with_nodes("n")
    subject.on(SetPod(pod("p", requests={"cpu": "64"})), 0.0)
    stepped(subject)
    subject.on(SetPod(pod("p", phase="Failed")), 1.0)
    assert subject.step(100.0) is None


# ---- what is told twice, or of things unknown


def test_deletes_of_what_is_not_there_change_nothing() -> None:
    subject = with_nodes("n")
    generation = subject.state.generation
    for change in (
        DeletePod("never"),
        DeleteNode("never"),
        DeleteObject("services", "default", "never"),
        DeleteObject("persistentVolumes", "", "never"),
    ):
        subject.on(change, 0.0)
    subject.bind_failed("never", 0.0)
    subject.bind_succeeded("never", 0.0)
    assert subject.state.generation == generation


def test_the_same_told_twice_counts_once() -> None:
    subject = with_nodes("n")
    for _ in range(2):
        subject.on(SetNode(node("n")), 0.0)
        subject.on(SetPod(pod("runs", on="n")), 0.0)
        subject.on(SetPod(pod("waits")), 0.0)
        subject.on(SetObject("services", "default", "s", Service()), 0.0)
    assert cpu_on(subject, "n") == 1000
    assert len(subject.queue) == 1
    assert list(subject.state.objects["services"]["default"]) == ["s"]


def test_a_pod_may_come_before_its_node() -> None:
    subject = scheduler()
    subject.on(SetPod(pod("runs", on="n", requests={"cpu": "3500m"})), 0.0)
    subject.on(SetNode(node("n")), 0.0)
    subject.on(SetPod(pod("p")), 0.0)
    assert stepped(subject).decision.message == "0/1 nodes are available: 1 Insufficient cpu."


def test_a_name_that_comes_again_under_another_uid_is_another_pod() -> None:
    subject = with_nodes("n")
    subject.on(SetPod(pod("web-0", on="n", metadata={"uid": "1"})), 0.0)
    subject.on(SetPod(pod("web-0", on="n", metadata={"uid": "2"})), 0.0)
    assert list(subject.state.pods) == ["2"]
    assert cpu_on(subject, "n") == 1000


@pytest.mark.parametrize("assumed", [False, True])
def test_a_pod_made_anew_proves_that_the_one_before_is_gone(assumed: bool) -> None:
    """The watch may show the second and never that the first was deleted."""
    subject = with_nodes("n")
    subject.on(SetPod(pod("web-0", requests={"cpu": "3"}, metadata={"uid": "1"})), 0.0)
    if assumed:
        stepped(subject)
    subject.on(SetPod(pod("web-0", requests={"cpu": "2"}, metadata={"uid": "2"})), 0.1)
    assert "1" not in subject.queue
    assert cpu_on(subject, "n") == 0
    step = stepped(subject, 0.1)
    assert (step.pod.uid, step.decision.node) == ("2", "n")
    subject.bind_failed("1", 0.2)
    subject.on(DeletePod("1"), 0.3)
    assert cpu_on(subject, "n") == 2000
    assert subject.step(100.0) is None


def test_a_pod_that_another_scheduler_binds_waits_no_more() -> None:
    subject = with_nodes("n")
    for uid in ("active", "unschedulable"):
        subject.on(SetPod(pod(uid, requests={"cpu": "64"}, nominated="n")), 0.0)
    subject.step(0.0)
    for uid in ("active", "unschedulable"):
        subject.on(SetPod(pod(uid, on="n", requests={"cpu": "1"}, nominated="n")), 1.0)
    assert len(subject.queue) == 0
    assert subject.queue.nominated_on("n") == []
    assert cpu_on(subject, "n") == 2000
    assert subject.step(100.0) is None


def test_what_is_listed_anew_wakes_nobody_and_changes_nothing() -> None:
    subject = with_nodes("n")
    service = convert(Service, {"metadata": {"name": "s", "resourceVersion": "1"}})
    subject.on(SetObject("services", "default", "s", service), 0.0)
    subject.on(SetPod(pod("runs", on="n")), 0.0)
    subject.on(SetPod(pod("waits", requests={"cpu": "64"})), 0.0)
    queued = subject.queue.pop(0.0)
    assert queued is not None
    subject.queue.fail(queued, 0.0, frozenset())  # whatever happens helps it
    generation = subject.state.generation
    later = {"resourceVersion": "2"}
    subject.on(SetNode(replace(node("n"), metadata=replace(node("n").metadata, resource_version="2"))), 5.0)
    subject.on(
        SetObject(
            "services", "default", "s", replace(service, metadata=replace(service.metadata, resource_version="2"))
        ),
        5.0,
    )
    subject.on(SetPod(pod("runs", on="n", metadata=later)), 5.0)
    subject.on(SetPod(pod("waits", requests={"cpu": "64"}, metadata=later)), 5.0)
    assert place_of(subject, "waits") is Place.UNSCHEDULABLE
    assert subject.state.generation == generation
    subject.on(SetObject("services", "default", "s", Service()), 5.0)
    assert place_of(subject, "waits") is Place.ACTIVE


def test_the_condition_that_the_scheduler_wrote_ends_no_backoff() -> None:
    subject = with_nodes("n")
    subject.on(SetPod(pod("p")), 0.0)
    stepped(subject)
    subject.bind_failed("p", 0.0)
    subject.on(SetPod(pod("p", phase="Pending")), 0.1)
    assert place_of(subject, "p") is Place.BACKOFF
    assert subject.next_deadline(0.1) == 1.0
    subject.on(SetPod(pod("p", phase="Pending", labels={"app": "web"})), 0.2)
    assert place_of(subject, "p") is Place.ACTIVE


def test_an_old_claim_in_the_status_does_not_move_a_newer_one() -> None:
    subject = with_nodes("n", "m")
    subject.on(SetPod(pod("p", requests={"cpu": "64"}, nominated="n")), 0.0)
    queued = subject.queue.get("p")
    assert queued is not None
    subject.queue.nominate(queued.info, "m")
    subject.on(SetPod(pod("p", requests={"cpu": "64"}, nominated="n", phase="Pending")), 0.1)
    assert subject.queue.nominations.node_of("p") == "m"
    subject.on(SetPod(pod("p", requests={"cpu": "64"}, nominated="")), 0.2)
    assert subject.queue.nominations.node_of("p") is None


# ---- sizes


def test_pods_are_counted_where_they_are() -> None:
    subject = with_nodes("n")
    gates = [{"name": "wait"}]
    for name in ("gated", "opens", "goes"):
        subject.on(SetPod(pod(name, schedulingGates=gates)), 0.0)
    subject.on(SetPod(pod("theirs", schedulingGates=gates, schedulerName="another")), 0.0)
    subject.on(SetPod(pod("runs", on="n")), 0.0)
    subject.on(SetPod(pod("unseen", on="m")), 0.0)
    assert subject.pending() == {"active": 0, "backoff": 0, "unschedulable": 0, "gated": 3}
    subject.on(SetPod(pod("opens", schedulingGates=gates[:0])), 1.0)
    subject.on(DeletePod("goes"), 1.0)
    assert subject.pending() == {"active": 1, "backoff": 0, "unschedulable": 0, "gated": 1}
    assert subject.cache_size() == {"nodes": 1, "pods": 2, "assumed_pods": 0}
    stepped(subject, 1.0)
    assert subject.cache_size() == {"nodes": 1, "pods": 3, "assumed_pods": 1}
    subject.bind_succeeded("opens", 1.0)
    assert subject.cache_size()["assumed_pods"] == 1
    subject.on(SetPod(pod("opens", on="n")), 1.0)
    assert subject.cache_size() == {"nodes": 1, "pods": 3, "assumed_pods": 0}


def test_the_cause_of_a_wake_is_counted() -> None:
    subject = with_nodes("n")
    for name in ("p", "q"):
        subject.on(SetPod(pod(name, requests={"cpu": "64"})), 0.0)
        stepped(subject)
    subject.on(SetNode(node("m", cpu="64")), 5.0)
    stepped(subject, 5.0)
    subject.on(SetNode(node("m", cpu="128", labels={"a": "b"})), 20.0)
    assert subject.queue.incoming["active", "NodeAdd"] == 1
    assert subject.queue.incoming["active", "NodeAllocatableChange"] == 1


def test_the_same_story_gives_the_same_decisions() -> None:
    def story() -> list[str]:
        subject = with_nodes("a", "b", "c", dice=FakeDice(2, 1, 0, 1, 1))
        for i in range(6):
            subject.on(SetPod(pod(f"p{i}", requests={"cpu": f"{i}"})), float(i))
        return [stepped(subject, 9.0).decision.node for _ in range(6)]

    assert story() == story()
