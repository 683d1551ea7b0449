"""Which changes wake which pods."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from msgspec.structs import replace
from tests.unit.core.scheduling import (
    anti_affinity,
    info,
    node,
    pod,
    profile_of,
    scheduler,
    stepped,
)

from ksp.core.changes import UNSCHEDULABLE, Change, DeleteObject, DeletePod, Report, SetNode, SetObject, SetPod
from ksp.core.node_order import ZONE
from ksp.core.queue import Place
from ksp.core.scheduler import Scheduler
from ksp.core.state import CLUSTER_KINDS, NAMESPACED_KINDS
from ksp.core.wake import cause_of, node_events, object_event, pod_came, pod_events, pod_gone
from ksp.model.apps import Service
from ksp.model.decode import convert
from ksp.model.info import NodeInfo
from ksp.model.node import Node
from ksp.model.pod import PodStatus
from ksp.model.storage import PersistentVolumeClaim, StorageClass

WEB = {"app": "web"}
TAINT = {"key": "gpu", "value": "yes", "effect": "NoSchedule"}
LATER = 5.0  # after the first backoff, before the end of patience


# ---- what of a node changed

WAS: dict[str, Any] = {
    "metadata": {"name": "n", "labels": {"a": "1"}, "annotations": {"b": "1"}},
    "spec": {},
    "status": {"allocatable": {"cpu": "1"}},
}


@pytest.mark.parametrize(
    ("change", "events"),
    [
        ({}, set()),
        ({"metadata": {"name": "n", "labels": {"a": "2"}, "annotations": {"b": "1"}}}, {"NodeLabel"}),
        ({"metadata": {"name": "n", "labels": {"a": "1"}, "annotations": {}}}, {"NodeUpdate"}),
        ({"metadata": {**WAS["metadata"], "resourceVersion": "2"}}, set()),
        ({"spec": {"taints": [TAINT]}}, {"NodeTaint(more)"}),
        ({"spec": {"unschedulable": True}}, {"NodeTaint(more)"}),
        ({"status": {"allocatable": {"cpu": "2"}}}, {"NodeAllocatable(more)"}),
        ({"status": {"allocatable": {"cpu": "500m"}}}, {"NodeAllocatable(less)"}),
        ({"status": {"allocatable": {"cpu": "500m", "gpu": "1"}}}, {"NodeAllocatable(less)", "NodeAllocatable(more)"}),
        ({"status": {"allocatable": {"cpu": "1", "gpu": "0"}}}, {"NodeAllocatable(more)"}),
        ({"status": {"allocatable": {"cpu": "1000m"}}}, {"NodeAllocatable(less)", "NodeAllocatable(more)"}),
        ({"status": {"allocatable": {"cpu": "1"}, "capacity": {"cpu": "9"}}}, {"NodeUpdate"}),
        ({"status": {"allocatable": {"cpu": "1"}, "conditions": [{"type": "Ready"}]}}, {"NodeUpdate"}),
        ({"spec": {"providerID": "x"}}, {"NodeUpdate"}),
        ({"metadata": {**WAS["metadata"], "generation": 2}}, set()),
        ({"status": {"allocatable": {"cpu": "1"}, "images": [{"names": ["x"], "sizeBytes": 1}]}}, {"NodeUpdate"}),
        ({"spec": {"taints": [TAINT]}, "status": {}}, {"NodeTaint(more)", "NodeAllocatable(less)"}),
    ],
)
def test_the_events_are_those_parts_of_the_node_that_differ(change: dict[str, Any], events: set[str]) -> None:
    old = NodeInfo.of(convert(Node, WAS))
    assert node_events(old, convert(Node, {**WAS, **change})) == events


OTHER: dict[str, Any] = {"key": "b", "effect": "NoExecute"}


@pytest.mark.parametrize(
    ("old", "new", "events"),
    [
        ({"taints": [TAINT]}, {}, {"NodeTaint(less)"}),
        ({"taints": [TAINT, OTHER]}, {"taints": [OTHER, TAINT]}, {"NodeTaint(less)", "NodeTaint(more)"}),
        ({"taints": [TAINT, TAINT]}, {"taints": [TAINT]}, {"NodeTaint(less)"}),
        ({"taints": [TAINT]}, {"taints": [OTHER]}, {"NodeTaint(less)", "NodeTaint(more)"}),
        ({"unschedulable": True}, {}, {"NodeTaint(less)"}),
        ({"unschedulable": True}, {"taints": [TAINT]}, {"NodeTaint(less)", "NodeTaint(more)"}),
    ],
)
def test_taints_come_and_go(old: dict[str, Any], new: dict[str, Any], events: set[str]) -> None:
    before = NodeInfo.of(convert(Node, {**WAS, "spec": old}))
    assert node_events(before, convert(Node, {**WAS, "spec": new})) == events


PORT = {"containers": [{"name": "c", "ports": [{"containerPort": 80, "hostPort": 80}]}]}


@pytest.mark.parametrize(
    ("change", "events"),
    [
        ({}, set()),
        ({"labels": {"a": "2"}}, {"AssignedPodLabels"}),
        ({"metadata": {"deletionTimestamp": "2020-01-01T00:00:00Z"}}, {"AssignedPodTerminating"}),
        ({"metadata": {"annotations": {"b": "1"}}}, {"AssignedPodUpdate"}),
        ({"priority": 3}, {"AssignedPodSpec"}),
        ({"on": "elsewhere"}, set()),
        ({"phase": "Running"}, {"AssignedPodStatus"}),
        ({"requests": {"cpu": "2"}}, {"AssignedPodSpec", "AssignedPodRequests(more)"}),
        ({"requests": {"cpu": "500m"}}, {"AssignedPodSpec", "AssignedPodRequests(less)"}),
        (
            {"requests": {"cpu": "500m", "memory": "1Gi"}},
            {"AssignedPodSpec", "AssignedPodRequests(less)", "AssignedPodRequests(more)"},
        ),
        (
            PORT,  # and asks for less cpu
            {"AssignedPodSpec", "AssignedPodPorts(more)", "AssignedPodRequests(less)"},
        ),
    ],
)
def test_the_events_are_those_parts_of_the_pod_that_differ(change: dict[str, Any], events: set[str]) -> None:
    plain = {"on": "n", "labels": {"a": "1"}}
    assert pod_events(info("p", **plain), info("p", **{**plain, **change})) == events


def test_a_pod_of_another_name_is_another_pod() -> None:
    found = pod_events(info("p", on="n"), info("q", on="n", metadata={"uid": "p"}))
    assert found > pod_gone(info("p")) | pod_came(info("q"))


def test_what_a_pod_brings_and_leaves() -> None:
    assert pod_came(info("p")) == {"AssignedPodAdd", "AssignedPodRequests(more)"}
    assert pod_gone(info("p")) == {"AssignedPodDelete", "AssignedPodRequests(less)"}
    assert pod_came(info("p", **PORT)) - pod_came(info("p")) == {"AssignedPodPorts(more)"}
    assert pod_gone(info("p", **PORT)) - pod_gone(info("p")) == {"AssignedPodPorts(less)"}
    below_zero = info("p", requests={"cpu": "-1"})
    assert "AssignedPodRequests(less)" in pod_came(below_zero)
    assert "AssignedPodRequests(more)" in pod_gone(below_zero)


def test_every_kind_of_object_has_its_events() -> None:
    events = {object_event(kind, "Add") for kind in NAMESPACED_KINDS | CLUSTER_KINDS}
    assert len(events) == len(NAMESPACED_KINDS | CLUSTER_KINDS)
    assert object_event("persistentVolumes", "Update") == "PersistentVolumeUpdate"
    assert object_event("csiNodes", "Delete") == "CSINodeDelete"


@pytest.mark.parametrize(
    ("events", "cause"),
    [
        ({"NodeAdd"}, "NodeAdd"),
        ({"NodeLabel", "NodeTaint(less)", "NodeAllocatable(more)"}, "NodeAllocatableChange"),
        ({"NodeTaint(more)", "NodeUpdate"}, "NodeTaintChange"),
        ({"NodeDelete", "AssignedPodDelete"}, "NodeDelete"),
        ({"AssignedPodAdd", "AssignedPodDelete"}, "AssignedPodDelete"),
        ({"AssignedPodStatus"}, "AssignedPodUpdate"),
        ({"AssignedPodLabels"}, "AssignedPodUpdate"),
        ({"AssignedPodDelete", "AssignedPodPorts(less)", "AssignedPodRequests(less)"}, "AssignedPodDelete"),
        ({"PersistentVolumeClaimAdd"}, "PvcAdd"),
        ({"PersistentVolumeUpdate"}, "PvUpdate"),
        ({"StorageClassAdd"}, "StorageClassAdd"),
        ({"CSINodeUpdate"}, "CSINodeUpdate"),
        ({"ReplicaSetDelete"}, "ReplicaSetDelete"),
    ],
)
def test_a_change_is_counted_under_kube_schedulers_name(events: set[str], cause: str) -> None:
    assert cause_of(frozenset(events)) == cause


# ---- whom it wakes


def placed(name: str, **fields: Any) -> SetPod:
    return SetPod(pod(name, on="n", **fields))


def waiting(subject: Scheduler) -> tuple[int, int, int]:
    sizes = subject.pending()
    return sizes["active"], sizes["backoff"], sizes["unschedulable"]


def service(name: str) -> Change:
    return SetObject("services", "default", name, Service())


EVENTS: dict[str, Callable[[], Change]] = {
    "pod add": lambda: placed("new", requests={"cpu": "1m"}),
    "pod label": lambda: runs("4", labels={"app": "web", "x": "y"}),
    "pod without port": lambda: runs("4", port=False),
    "pod more": lambda: runs("4500m"),
    "pod less": lambda: runs("3500m"),
    "pod annotation": lambda: runs("4", metadata={"annotations": {"x": "y"}}),
    "pod delete": lambda: DeletePod("runs"),
    "another pod's delete": lambda: DeletePod("small"),
    "node add": lambda: SetNode(node("m", zone="z", taints=[TAINT])),
    "node label": lambda: SetNode(node("n", zone="z", labels={"x": "y"}, taints=[TAINT])),
    "node taint more": lambda: SetNode(node("n", zone="z", taints=[TAINT, {"key": "b", "effect": "NoSchedule"}])),
    "node taint less": lambda: SetNode(node("n", zone="z")),
    "node allocatable more": lambda: SetNode(node("n", zone="z", cpu="4500m", taints=[TAINT])),
    "node allocatable less": lambda: SetNode(node("n", zone="z", cpu="3500m", taints=[TAINT])),
    "node condition": lambda: SetNode(node("n", zone="z", taints=[TAINT], conditions=[{"type": "Ready"}])),
    "service": lambda: service("s"),
    "claim": lambda: SetObject("persistentVolumeClaims", "default", "x", PersistentVolumeClaim()),
}
TOLERANT = [{"key": "gpu", "operator": "Exists"}]


# A pod's terms are part of its spec.
EVERY_POD = {"pod label", "pod without port", "pod more", "pod less", "pod delete"}

# What a pod waits for: the rule that denies it, the pod, and the events that wake it. All else leaves it asleep.
DENIED: dict[str, tuple[dict[str, Any], set[str]]] = {
    "PodFitsResources": (
        {"requests": {"cpu": "3"}, "tolerations": TOLERANT},
        {"pod less", "pod delete", "another pod's delete", "node add", "node allocatable more"},
    ),
    "PodToleratesNodeTaints": ({"requests": {"memory": "0"}}, {"node taint less", "node add"}),
    "MatchNodeSelector": (
        {"requests": {"memory": "0"}, "tolerations": TOLERANT, "nodeSelector": {"disk": "ssd"}},
        {"node label", "node add"},
    ),
    "PodFitsHostPorts": (
        {
            "requests": {},
            "tolerations": TOLERANT,
            "containers": [{"name": "c", "ports": [{"containerPort": 80, "hostPort": 80}]}],
        },
        {"pod without port", "pod delete", "node add"},
    ),
    "MatchInterPodAffinity": (
        {"requests": {"memory": "0"}, "tolerations": TOLERANT, "affinity": anti_affinity("web")},
        EVERY_POD | {"pod add", "another pod's delete", "node label", "node add"},
    ),
}


def runs(cpu: str, *, port: bool = True, labels: Mapping[str, str] = WEB, **more: Any) -> SetPod:
    """The pod that is in the way of the others."""
    ports = [{"containerPort": 80, "hostPort": 80}] if port else []
    container = {"name": "c", "resources": {"requests": {"cpu": cpu}}, "ports": ports}
    return placed("runs", labels=labels, containers=[container], **more)


def asleep(rule: str) -> Scheduler:
    """A scheduler in which the rule denied the pod `p`, and nothing else did. It asks no rule again."""
    subject = scheduler()
    subject.queue.sleepers.denied_by = None
    subject.on(SetNode(node("n", zone="z", taints=[TAINT])), 0.0)
    subject.on(runs("4"), 0.0)
    subject.on(placed("small", requests={"memory": "1"}), 0.0)
    subject.on(SetPod(pod("p", **DENIED[rule][0])), 0.0)
    return subject


@pytest.mark.parametrize("event", EVENTS)
@pytest.mark.parametrize("rule", DENIED)
def test_an_unschedulable_pod_wakes_for_what_its_rule_reads_and_nothing_else(rule: str, event: str) -> None:
    subject = asleep(rule)
    assert stepped(subject).decision.denied_by == {rule}
    assert subject.queue.pending()["unschedulable"] == 1
    subject.on(EVENTS[event](), LATER)
    assert subject.queue.pending()["active"] == (event in DENIED[rule][1])


@pytest.mark.parametrize(
    ("change", "wakes"),
    [
        (DeletePod("runs"), True),
        (SetPod(pod("another", on="c", labels=WEB)), True),
        (SetNode(node("d", zone="y", labels={"rack": "r"})), True),
        (SetNode(node("c", zone="y", labels={"rack": "s"})), True),
        (SetObject("services", "default", "s", Service()), True),
        (SetObject("storageClasses", "", "s", StorageClass()), False),
    ],
    ids=["pod delete", "pod add", "node add", "node label", "service", "class"],
)
def test_a_pod_that_must_spread_wakes_for_pods_nodes_and_owners(change: Change, wakes: bool) -> None:
    """Zone z is fuller than y, rack r fuller than s; the node of the emptier zone is in the fuller rack."""
    subject = scheduler()
    subject.queue.sleepers.denied_by = None
    for name, zone, rack in (("a", "z", "r"), ("b", "z", "s"), ("c", "y", "r")):
        subject.on(SetNode(node(name, zone=zone, labels={"rack": rack})), 0.0)
    subject.on(SetPod(pod("runs", on="a", labels=WEB)), 0.0)
    keep_even = {"maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {"matchLabels": WEB}}
    spread = [{**keep_even, "topologyKey": key} for key in (ZONE, "rack")]
    subject.on(SetPod(pod("p", labels=WEB, topologySpreadConstraints=spread)), 0.0)
    assert stepped(subject).decision.denied_by == {"EvenPodsSpread"}
    subject.on(change, LATER)
    assert subject.queue.pending()["active"] == wakes


def test_one_of_several_rules_is_enough() -> None:
    """Two nodes, refused for different reasons: what can help either wakes the pod."""
    subject = scheduler()
    subject.queue.sleepers.denied_by = None
    subject.on(SetNode(node("tainted", taints=[TAINT])), 0.0)
    subject.on(SetNode(node("small", cpu="1")), 0.0)
    subject.on(SetPod(pod("p", requests={"cpu": "2"})), 0.0)
    assert stepped(subject).decision.denied_by == {"PodToleratesNodeTaints", "PodFitsResources"}
    subject.on(SetNode(node("small", cpu="1", labels={"x": "y"})), LATER)
    assert subject.queue.pending()["unschedulable"] == 1
    subject.on(SetNode(node("tainted")), LATER)
    assert subject.queue.pending()["active"] == 1


def test_an_object_that_is_removed_wakes_those_that_read_its_kind() -> None:
    subject = asleep("MatchInterPodAffinity")
    subject.on(service("s"), 0.0)
    stepped(subject)
    subject.on(DeleteObject("services", "default", "s"), LATER)
    subject.on(DeleteObject("services", "default", "never there"), LATER)
    assert waiting(subject) == (0, 0, 1)


def test_a_pod_that_nothing_denied_wakes_for_anything() -> None:
    subject = scheduler()
    subject.on(SetNode(node("n")), 0.0)
    subject.on(SetPod(pod("p")), 0.0)
    queued = subject.queue.pop(0.0)
    assert queued is not None
    subject.queue.fail(queued, 0.0, frozenset())
    subject.on(service("s"), LATER)
    assert queued.place is Place.ACTIVE


def test_a_rule_that_is_not_known_counts_as_helped() -> None:
    wake, unknown = scheduler().generation.wake, frozenset({"RuleOfAnotherPolicy"})
    assert wake.may_help(unknown, frozenset({"NodeLabel"}))
    assert wake.may_help(unknown, frozenset({"AssignedPodStatus", "AssignedPodLabels"}))
    assert not wake.may_help(unknown, frozenset({"AssignedPodStatus"}))  # it changes all the time


def test_a_woken_pod_backs_off_first() -> None:
    subject = asleep("PodFitsResources")
    stepped(subject)
    subject.on(DeletePod("runs"), 0.5)
    assert waiting(subject) == (0, 1, 0)
    assert subject.next_deadline(0.5) == 1.0
    assert subject.step(0.9) is None
    assert stepped(subject, 1.0).decision.node == "n"


def test_a_running_pod_makes_room_when_it_is_smaller_not_when_it_is_to_be() -> None:
    def running(asked: str, has: str) -> SetPod:
        status = {"containerStatuses": [{"name": "main", "resources": {"requests": {"cpu": has}}}]}
        return SetPod(replace(pod("runs", on="n", requests={"cpu": asked}), status=convert(PodStatus, status)))

    subject = scheduler()
    subject.on(SetNode(node("n", cpu="4")), 0.0)
    subject.on(running("3", "3"), 0.0)
    subject.on(SetPod(pod("p", requests={"cpu": "2"})), 0.0)
    assert not stepped(subject).decision.node
    subject.on(running("1", "3"), LATER)
    assert subject.step(LATER) is None
    subject.on(running("1", "1"), 2 * LATER)
    assert stepped(subject, 2 * LATER).decision.node == "n"


def test_who_is_not_woken_is_tried_again_after_a_minute() -> None:
    subject = asleep("PodToleratesNodeTaints")
    stepped(subject)
    subject.on(DeletePod("runs"), LATER)
    assert subject.next_deadline(LATER) == 60.0
    assert subject.step(59.9) is None
    assert stepped(subject, 60.0).attempt == 2


def test_an_event_in_flight_makes_the_pod_try_again() -> None:
    """The change may be what the attempt lacked, and its failure is not known yet."""
    subject = asleep("PodFitsResources")
    queued = subject.queue.pop(0.0)
    assert queued is not None
    subject.on(DeletePod("runs"), 0.0)
    assert subject.queue.fail(queued, 0.0, frozenset({"PodFitsResources"})) is Place.BACKOFF


def test_a_running_pod_that_asks_for_less_wakes_who_lacks_room() -> None:
    subject = asleep("PodFitsResources")
    stepped(subject)
    subject.on(placed("runs", requests={"cpu": "1m"}), LATER)
    assert subject.queue.pending()["active"] == 1


def test_a_running_pod_of_which_the_status_changes_wakes_nobody() -> None:
    subject = asleep("PodFitsResources")
    stepped(subject)
    shown = runs("4")
    subject.on(SetPod(replace(shown.pod, status=replace(shown.pod.status, phase="Running"))), LATER)
    assert subject.queue.pending()["unschedulable"] == 1


def test_a_rule_that_reads_the_status_of_pods_wakes_when_it_changes() -> None:
    rules = """predicate Alone {
      view starting = count p in cluster.pods where p.status.phase == "Pending"
      deny "wait" when starting > 0
    }"""
    subject = scheduler(profile_of(rules, "predicates { Alone }"))
    subject.on(SetNode(node("n")), 0.0)
    subject.on(SetPod(pod("runs", on="n", phase="Pending")), 0.0)
    subject.on(SetPod(pod("p")), 0.0)
    assert stepped(subject).decision.node == ""
    subject.on(SetPod(pod("runs", on="n", phase="Running")), LATER)
    assert stepped(subject, LATER).decision.node == "n"


def claimed() -> Scheduler:
    """Node n has room for one; `claimant` is nominated to it, so that `p` waits."""
    subject = scheduler()
    subject.on(SetNode(node("n")), 0.0)
    subject.on(SetPod(pod("claimant", requests={"cpu": "4"}, priority=10, nominated="n")), 0.0)
    waiting = subject.queue.pop(0.0)
    assert waiting is not None
    subject.queue.retry(waiting, 0.0)
    subject.on(SetPod(pod("p")), 0.0)
    assert stepped(subject).decision.message == "0/1 nodes are available: 1 Insufficient cpu."
    return subject


def test_a_claim_that_ends_wakes_who_lacked_the_room() -> None:
    subject = claimed()
    subject.on(DeletePod("claimant"), LATER)
    assert stepped(subject, LATER).decision.node == "n"


def test_a_claim_that_moves_wakes_too() -> None:
    subject = claimed()
    subject.on(SetPod(pod("claimant", requests={"cpu": "4"}, priority=10, nominated="elsewhere")), LATER)
    assert place_of(subject, "p") is Place.ACTIVE


def test_a_claimant_that_takes_its_place_wakes_nobody() -> None:
    subject = claimed()
    step = stepped(subject, LATER)
    assert (step.pod.name, step.decision.node) == ("claimant", "n")
    assert place_of(subject, "p") is Place.UNSCHEDULABLE


def test_a_claimant_that_goes_elsewhere_wakes() -> None:
    subject = claimed()
    subject.on(SetPod(pod("claimant", requests={"cpu": "4"}, on="elsewhere")), LATER)
    assert stepped(subject, LATER).decision.node == "n"


def test_a_pod_that_comes_under_the_name_of_another_proves_it_gone() -> None:
    subject = asleep("PodFitsResources")
    stepped(subject)
    other = pod("runs", on="elsewhere", metadata={"uid": "another"})
    subject.on(SetPod(other), LATER)
    assert stepped(subject, LATER).decision.node == "n"


def test_a_pod_that_is_shown_elsewhere_than_assumed_leaves_its_room() -> None:
    subject = scheduler()
    subject.on(SetNode(node("n")), 0.0)
    subject.on(SetPod(pod("p", requests={"cpu": "4"})), 0.0)
    assert stepped(subject).decision.node == "n"
    subject.on(SetPod(pod("q")), 0.0)
    assert stepped(subject).decision.node == ""
    subject.on(SetPod(pod("p", requests={"cpu": "4"}, on="elsewhere")), LATER)
    assert stepped(subject, LATER).decision.node == "n"


def test_a_pod_whose_amounts_cannot_be_read_waits_for_its_own_change() -> None:
    subject = asleep("PodFitsResources")
    subject.on(SetPod(pod("odd", requests={"cpu": "many"})), 0.0)
    for step in (stepped(subject), stepped(subject)):
        (report,) = step.effects
        assert isinstance(report, Report)
        assert report.reason == UNSCHEDULABLE
    subject.on(EVENTS["node add"](), LATER)
    assert place_of(subject, "odd") is Place.UNSCHEDULABLE
    subject.on(SetPod(pod("odd", requests={"cpu": "1m"})), LATER)
    assert place_of(subject, "odd") is Place.ACTIVE


def place_of(subject: Scheduler, uid: str) -> Place:
    waiting = subject.queue.get(uid)
    return Place.ABSENT if waiting is None else waiting.place
