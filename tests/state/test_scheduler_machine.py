"""The whole scheduler, with the shipped rules, against a list of what it was told.

Nodes, pods and other objects come, change and go; pods are decided; bindings succeed, fail, or end late; time jumps.
The list knows what the watch has shown and which bindings are under way. From that follows where each pod must count,
and a state built from nothing must give the same sums, the same views and the same decisions.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any

from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from msgspec.structs import replace as replaced
from tests.state.reference import scores, total_of

from ksp.compile.table import Table
from ksp.compile.tables import Tables
from ksp.core.changes import Bind, DeleteNode, DeleteObject, DeletePod, SetNode, SetObject, SetPod, Warn
from ksp.core.filter import Filter, Filtered
from ksp.core.node_order import ZONE
from ksp.core.queue import Place
from ksp.core.scheduler import Scheduler
from ksp.core.score import Scored
from ksp.core.state import ClusterState
from ksp.model.apps import Service
from ksp.model.decode import convert
from ksp.model.info import NodeInfo, PodInfo
from ksp.model.node import Node
from ksp.model.pod import Pod
from ksp.policy.load import DEFAULT, load, profiles
from ksp.policy.profile import Profile
from ksp.source.origin import Texts

HOSTNAME = "kubernetes.io/hostname"
NODES = ("n0", "n1", "n2", "n3")
NAMES = tuple(f"p{i}" for i in range(7))
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
IS_WEB = {"matchLabels": {"app": "web"}}


def near(kind: str, key: str) -> dict[str, Any]:
    return {"affinity": {kind: {REQUIRED: [{"topologyKey": key, "labelSelector": IS_WEB}]}}}


def spread(key: str, action: str, **more: Any) -> dict[str, Any]:
    constraint = {"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": action, "labelSelector": IS_WEB, **more}
    return {"topologySpreadConstraints": [constraint]}


def asking(**requests: str) -> dict[str, Any]:
    return {"containers": [{"name": "c", "image": "web", "resources": {"requests": requests}}]}


LIKES_WEB = {
    "affinity": {
        "podAffinity": {PREFERRED: [{"weight": 5, "podAffinityTerm": {"topologyKey": ZONE, "labelSelector": IS_WEB}}]}
    }
}
WEB_PORT = {"containers": [{"name": "c", "ports": [{"containerPort": 80, "hostPort": 80}]}]}

# Specs and labels of pods.
PODS: tuple[tuple[dict[str, Any], dict[str, str]], ...] = (
    (asking(cpu="1"), {"app": "web"}),
    (asking(cpu="2", memory="3Gi"), {"app": "db"}),
    ({**asking(cpu="3"), "priority": 10}, {}),
    (asking(), {"app": "web"}),
    ({**asking(memory="1Gi"), **near("podAntiAffinity", HOSTNAME)}, {"app": "web"}),
    ({**asking(cpu="500m"), **near("podAntiAffinity", ZONE)}, {"app": "db"}),
    ({**asking(cpu="500m"), **near("podAffinity", ZONE)}, {"app": "web"}),
    ({**asking(cpu="100m"), **spread(ZONE, "DoNotSchedule")}, {"app": "web"}),
    ({**asking(cpu="100m"), **spread(HOSTNAME, "ScheduleAnyway")}, {"app": "web"}),
    ({**asking(cpu="1"), **LIKES_WEB}, {"app": "db"}),
    (WEB_PORT, {"app": "web"}),
    ({**asking(cpu="1"), "nodeSelector": {"disk": "ssd"}}, {"app": "web"}),
    ({**asking(cpu="1"), "tolerations": [{"operator": "Exists"}]}, {"app": "web"}),
    ({**asking(cpu="1"), "schedulingGates": [{"name": "wait"}]}, {"app": "web"}),
    ({**asking(cpu="1"), "resourceClaims": [{"name": "gpu"}]}, {"app": "web"}),
    ({**asking(cpu="100m"), **spread(ZONE, "ScheduleAnyway", nodeTaintsPolicy="Honor")}, {"app": "web"}),
    ({**asking(cpu="many")}, {"app": "web"}),
    ({**asking(cpu="1"), "schedulerName": "another"}, {"app": "web"}),
)

# Labels, spec and allocatable of nodes.
NODE_SHAPES: tuple[tuple[dict[str, str], dict[str, Any], dict[str, str]], ...] = (
    ({ZONE: "a"}, {}, {"cpu": "4", "memory": "8Gi", "pods": "4"}),
    ({ZONE: "b", "disk": "ssd"}, {}, {"cpu": "4", "memory": "4Gi", "pods": "4"}),
    ({ZONE: "b"}, {"taints": [{"key": "gpu", "effect": "NoSchedule"}]}, {"cpu": "8", "memory": "8Gi", "pods": "9"}),
    ({}, {"taints": [{"key": "old", "effect": "PreferNoSchedule"}]}, {"cpu": "2", "memory": "8Gi", "pods": "9"}),
    ({ZONE: "a"}, {"unschedulable": True}, {"cpu": "4", "memory": "8Gi", "pods": "9"}),
)


@cache
def profile() -> Profile:
    module = load(Texts({}), DEFAULT).module
    assert module is not None
    return profiles(module)[0]


@dataclass(frozen=True)
class Shown:
    """A pod as the watch showed it last. `node` is "" while it has none; `claim` is the node it is nominated to; `told`
    how often its user was told why it waits."""

    uid: str
    name: str
    shape: int
    node: str = ""
    terminating: bool = False
    claim: str = ""
    told: int = 0

    def pod(self, phase: str = "") -> Pod:
        spec, labels = PODS[self.shape]
        metadata: dict[str, Any] = {"name": self.name, "uid": self.uid, "namespace": "default", "labels": labels}
        if self.terminating:
            metadata["deletionTimestamp"] = "2020-01-01T00:00:00Z"
        conditions = [{"type": "PodScheduled", "status": "False", "message": str(self.told)}] if self.told else []
        status = {"phase": phase, "nominatedNodeName": self.claim, "conditions": conditions}
        return convert(Pod, {"metadata": metadata, "spec": {**spec, "nodeName": self.node}, "status": status})

    def waits(self) -> bool:
        return self.wants_a_node() and not self.is_gated()

    def wants_a_node(self) -> bool:
        return not self.node and not self.terminating and self.is_ours()

    def is_gated(self) -> bool:
        return "schedulingGates" in PODS[self.shape][0]

    def is_ours(self) -> bool:
        return "schedulerName" not in PODS[self.shape][0]


def node(name: str, shape: int) -> Node:
    labels, spec, allocatable = NODE_SHAPES[shape]
    metadata = {"name": name, "labels": {**labels, HOSTNAME: name}}
    return convert(Node, {"metadata": metadata, "spec": spec, "status": {"allocatable": allocatable}})


class SeededDice:
    def __init__(self) -> None:
        self.random = random.Random(0)

    def below(self, n: int) -> int:
        return self.random.randrange(n)


names = st.sampled_from(NAMES)
node_names = st.sampled_from(NODES)
shapes = st.integers(0, len(PODS) - 1)
node_shapes = st.integers(0, len(NODE_SHAPES) - 1)


class SchedulerMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.scheduler = Scheduler([profile()], SeededDice())
        self.now = 0.0
        self.serial = 0
        self.nodes: dict[str, int] = {}
        self.shown: dict[str, Shown] = {}
        self.binding: dict[str, str] = {}  # by uid, the node of a binding without an outcome; the pod may be gone
        self.accepted: dict[str, str] = {}  # the same, accepted, and not shown yet
        self.services: set[str] = set()
        self.probes = 0
        for i, name in enumerate(NODES[:3]):
            self.node_comes_or_changes(name, i)

    def show(self, shown: Shown) -> None:
        self.shown[shown.uid] = shown
        if shown.node:
            self.accepted.pop(shown.uid, None)
        self.scheduler.on(SetPod(shown.pod()), self.now)

    def named(self, name: str) -> Shown | None:
        return next((shown for shown in self.shown.values() if shown.name == name), None)

    def placed(self) -> dict[str, str]:
        """Where each pod must count, by uid."""
        where = {
            uid: shown.node or self.binding.get(uid) or self.accepted.get(uid) for uid, shown in self.shown.items()
        }
        return {uid: place for uid, place in where.items() if place}

    # ---- the cluster

    @rule(name=node_names, shape=node_shapes)
    def node_comes_or_changes(self, name: str, shape: int) -> None:
        self.nodes[name] = shape
        self.scheduler.on(SetNode(node(name, shape)), self.now)

    @rule(name=node_names)
    def node_goes(self, name: str) -> None:
        self.nodes.pop(name, None)
        self.scheduler.on(DeleteNode(name), self.now)

    @rule(name=names, shape=shapes, claim=st.sampled_from(["", "", *NODES[:2]]))
    def pod_comes_or_changes(self, name: str, shape: int, claim: str) -> None:
        known = self.named(name)
        if known is not None:
            wanted = Shown("", "", shape)
            if known.is_ours() != wanted.is_ours() or (wanted.is_gated() and not known.is_gated()):
                return  # the API lets nobody change schedulerName, or add a gate
            self.show(replace(known, shape=shape, claim=claim))
        else:
            self.serial += 1
            self.show(Shown(f"{name}.{self.serial}", name, shape, claim=claim))

    @rule(name=names, shape=shapes, place=node_names)
    def pod_of_another_scheduler_runs(self, name: str, shape: int, place: str) -> None:
        if self.named(name) is None:
            self.serial += 1
            self.show(Shown(f"{name}.{self.serial}", name, shape, place))

    @rule(name=names, place=node_names)
    def pod_is_bound_by_somebody_else(self, name: str, place: str) -> None:
        known = self.named(name)
        if known is not None and known.uid not in self.placed():
            self.show(replace(known, node=place))

    @rule(name=names, shape=shapes, place=st.just("") | node_names)
    def pod_is_made_anew(self, name: str, shape: int, place: str) -> None:
        """The watch shows another pod of the name, and never that the first is gone."""
        known = self.named(name)
        if known is not None:
            del self.shown[known.uid]
            self.accepted.pop(known.uid, None)
            self.serial += 1
            self.show(Shown(f"{name}.{self.serial}", name, shape, place))

    @rule(name=names)
    def pods_user_is_told_why_it_waits(self, name: str) -> None:
        """What the scheduler wrote itself comes back, and moves nothing."""
        known = self.named(name)
        if known is not None:
            before = self.picture()
            self.show(replace(known, told=known.told + 1))
            assert self.picture() == before

    @rule()
    def all_is_listed_anew(self) -> None:
        """Everything is told a second time, and nothing happens."""
        before, generation = self.picture(), self.scheduler.state.generation
        for uid in [uid for uid, shown in self.shown.items() if shown.node]:
            self.scheduler.on(SetPod(self.shown[uid].pod()), self.now)
        for name, shape in self.nodes.items():
            self.scheduler.on(SetNode(node(name, shape)), self.now)
        for service in self.scheduler.state.objects["services"].get("default", {}).values():
            again = replaced(service, metadata=replaced(service.metadata, resource_version=str(self.now)))
            self.scheduler.on(SetObject("services", "default", service.metadata.name, again), self.now)
        for uid in [uid for uid, shown in self.shown.items() if not shown.node]:
            self.scheduler.on(SetPod(self.shown[uid].pod()), self.now)
        assert self.picture() == before
        assert self.scheduler.state.generation == generation

    def picture(self) -> object:
        """Who waits where, since when, and for what."""
        queue = self.scheduler.queue
        waiting = [(q.uid, q.place, q.added, q.attempts, q.unschedulable_by) for q in queue]
        claims = {name: list(pods) for name, pods in queue.nominations.nodes().items()}
        return waiting, claims, dict(queue.incoming), self.scheduler.pending(), self.scheduler.cache_size()

    @rule(name=names)
    def pod_terminates(self, name: str) -> None:
        known = self.named(name)
        if known is not None:
            self.show(replace(known, terminating=True))

    @rule(name=names, ended=st.booleans())
    def pod_goes(self, name: str, ended: bool) -> None:
        known = self.named(name)
        if known is None:
            return
        del self.shown[known.uid]
        self.accepted.pop(known.uid, None)
        if ended:
            self.scheduler.on(SetPod(known.pod("Succeeded")), self.now)
        else:
            self.scheduler.on(DeletePod(known.uid), self.now)

    @rule(name=st.sampled_from(["s", "t"]), app=st.sampled_from(["web", "db", ""]))
    def service_comes_or_goes(self, name: str, app: str) -> None:
        if app:
            service = convert(Service, {"metadata": {"name": name}, "spec": {"selector": {"app": app}}})
            self.scheduler.on(SetObject("services", "default", name, service), self.now)
            self.services.add(name)
        else:
            self.scheduler.on(DeleteObject("services", "default", name), self.now)
            self.services.discard(name)

    @rule(name=names, place=node_names)
    def pod_is_nominated(self, name: str, place: str) -> None:
        """As preemption does it: a pod that failed claims a node."""
        known = self.named(name)
        queued = self.scheduler.queue.get(known.uid) if known is not None else None
        if queued is not None and queued.place is not Place.IN_FLIGHT:
            self.scheduler.queue.nominate(queued.info, place)

    # ---- decisions and their outcomes

    @rule()
    def step(self) -> None:
        before = self.placed()
        step = self.scheduler.step(self.now)
        if step is None:
            assert self.scheduler.queue.pending()["active"] == 0
            return
        assert step.pod.uid not in before, "placed twice"
        assert self.shown[step.pod.uid].waits()
        effect, *warnings = step.effects
        for warning in warnings:
            assert isinstance(warning, Warn)
            assert warning.fields
        assert not step.decision.node or "resourceClaims" not in PODS[self.shown[step.pod.uid].shape][0]
        if isinstance(effect, Bind):
            assert effect.node == step.decision.node
            self.binding[step.pod.uid] = effect.node
            self.fits(step.pod, effect.node)
        else:
            assert effect.message

    @rule()
    def step_until_nothing_is_due(self) -> None:
        for _ in range(len(self.scheduler.queue) + 1):
            self.step()
        assert self.scheduler.queue.pending()["active"] == 0

    def fits(self, pod: PodInfo, name: str) -> None:
        """What PodFitsResources promises of the node, with the pod on it."""
        row = self.scheduler.state.nodes[name]
        assert row.pod_count <= row.allocatable["pods"]
        if any(pod.requests.values()):
            for resource in pod.requests:
                assert row.requested[resource] <= row.allocatable.get(resource, 0), resource

    @precondition(lambda self: self.binding)
    @rule(data=st.data(), succeeds=st.booleans())
    def binding_ends(self, data: st.DataObject, succeeds: bool) -> None:
        uid = data.draw(st.sampled_from(sorted(self.binding)))
        place = self.binding.pop(uid)
        if not succeeds:
            self.scheduler.bind_failed(uid, self.now)
            return
        self.scheduler.bind_succeeded(uid, self.now)
        if uid in self.shown and not self.shown[uid].node:
            self.accepted[uid] = place

    @precondition(lambda self: self.accepted)
    @rule(data=st.data())
    def binding_is_shown(self, data: st.DataObject) -> None:
        uid = data.draw(st.sampled_from(sorted(self.accepted)))
        self.show(replace(self.shown[uid], node=self.accepted[uid]))

    @rule(name=names, elsewhere=st.none() | node_names)
    def binding_is_shown_before_its_outcome(self, name: str, elsewhere: str | None) -> None:
        """Or the pod turns out to be on another node: the outcome will be a failure."""
        known = self.named(name)
        if known is not None and not known.node and known.uid in self.binding:
            self.show(replace(known, node=elsewhere or self.binding[known.uid]))

    @rule(seconds=st.sampled_from([0.3, 1.0, 10.0, 61.0]))
    def time_passes(self, seconds: float) -> None:
        self.now += seconds

    # ---- what holds always

    @invariant()
    def no_pod_is_lost(self) -> None:
        queue, placed = self.scheduler.queue, self.placed()
        assert {queued.uid for queued in queue} == {uid for uid, shown in self.shown.items() if shown.waits()}
        for queued in queue:
            assert (queued.place is Place.IN_FLIGHT) == (queued.uid in placed)

    @invariant()
    def sizes_are_those_of_the_list(self) -> None:
        gated = [shown for shown in self.shown.values() if shown.wants_a_node() and shown.is_gated()]
        assert self.scheduler.pending()["gated"] == len(gated)
        placed = self.placed()
        shown_there = [uid for uid in placed if self.shown[uid].node]
        assert self.scheduler.cache_size() == {
            "nodes": len(self.nodes), "pods": len(placed), "assumed_pods": len(placed) - len(shown_there),
        }  # fmt: skip

    @invariant()
    def every_pod_counts_where_it_is_and_nowhere_else(self) -> None:
        state, placed = self.scheduler.state, self.placed()
        visible = {uid: place for uid, place in placed.items() if place in self.nodes}
        assert {uid: row.name for row in state.nodes.values() for uid in row.pods} == visible
        assert sum(len(row.pods) for row in state.nodes.values()) == len(visible)
        assert {uid: pod.node.name for uid, pod in state.pods.items()} == visible
        assert {pod.uid for pod in state.invisible_pods()} == placed.keys() - visible.keys()

    @invariant()
    def sums_equal_those_of_a_state_built_anew(self) -> None:
        fresh = self.rebuilt()
        for name, row in self.scheduler.state.nodes.items():
            new = fresh.nodes[name]
            assert (row.requested, row.nonzero_requested, row.pod_count) == (
                new.requested,
                new.nonzero_requested,
                new.pod_count,
            )
            assert sorted(map(repr, row.host_ports)) == sorted(map(repr, new.host_ports))
            assert row.allocatable == new.allocatable

    @invariant()
    def views_equal_those_counted_anew(self) -> None:
        state = self.scheduler.state
        for table in self.scheduler.tables._tables.values():
            table.follow(state)
            fresh = Table(table.plan, table.contribute)
            fresh.follow(state)
            assert (table.result, table.total) == (fresh.result, fresh.total), table.plan.name

    @invariant()
    def decisions_equal_those_in_a_state_built_anew(self) -> None:
        """One shape of pods at a time, in turn."""
        self.probes += 1
        probe = Shown("probe", "probe", self.probes % (len(PODS) - 2)).pod()
        cycle = self.scheduler.cycles["default-scheduler"]
        kept = decided(PodInfo.of(probe), cycle.filter, self.scheduler.state, cycle.score)
        fresh = self.rebuilt()
        anew = Filter(profile(), fresh, Tables(fresh), self.scheduler.queue.nominations.nodes)
        plain = partial(scores, profile(), anew.tables)
        assert kept == decided(PodInfo.of(probe), anew, fresh, plain)

    def rebuilt(self) -> ClusterState:
        """A state made of what stands in the list, with the nodes in the same order."""
        state = ClusterState()
        for row in self.scheduler.state.node_list():
            state.set_node(node(row.name, self.nodes[row.name]))
        for name, service in self.scheduler.state.objects["services"].get("default", {}).items():
            state.set_object("services", "default", name, service)
        for uid, place in self.placed().items():
            state.add_pod(PodInfo.of(self.shown[uid].pod()), place)
        return state


def decided(
    pod: PodInfo, subject: Filter, state: ClusterState, score: Callable[[PodInfo, Sequence[NodeInfo]], Scored]
) -> tuple[Mapping[str, object], object]:
    """By node the refusal, and the scores of the nodes that are left, which are left in the order of the nodes."""
    found: Filtered = subject.run(pod, state.node_list())
    left = [row.name for row in found.feasible]
    return {"before": found.before, **found.refused}, (left, total_of(score(pod, found.feasible)))


# To make a failing example small takes minutes: it is left to the thorough run.
THOROUGH = os.environ.get("KSP_HYPOTHESIS") == "thorough"
SchedulerMachine.TestCase.settings = settings(
    max_examples=1500 if THOROUGH else 150,
    stateful_step_count=50,
    phases=tuple(Phase) if THOROUGH else (Phase.explicit, Phase.generate),
)
TestScheduler = SchedulerMachine.TestCase
