"""The ways on which a decision can come to be, all of which must lead to what was recorded."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec.structs import replace
from tests.golden.recorded import evaluator

from ksp.core.cycle import Cycle
from ksp.core.equivalence.present import Present
from ksp.core.filter import Nominated
from ksp.core.state import ClusterState
from ksp.model.info import PodInfo
from ksp.model.node import Node, Taint
from ksp.model.pod import Pod
from ksp.policy.profile import Profile
from ksp.sim.cases import Evaluator, MakeCycle
from ksp.sim.dice import FirstFace


def node_by_node(profile: Profile, state: ClusterState, nominated: Nominated, pod: PodInfo) -> Cycle:
    """Rules in their scalar form; nothing is remembered."""
    return Cycle(profile, Present.of(state), nominated, FirstFace(), equivalence_classes=0, columns=False)


def in_columns(profile: Profile, state: ClusterState, nominated: Nominated, pod: PodInfo) -> Cycle:
    """Rules in columns, where they have that form; nothing is remembered."""
    return Cycle(profile, Present.of(state), nominated, FirstFace(), equivalence_classes=0)


def remembered(profile: Profile, state: ClusterState, nominated: Nominated, pod: PodInfo) -> Cycle:
    """The pod's class is known already, from when the cluster was another one: half of the nodes were cordoned and
    tainted, the others full, and some of the pods had neither labels nor affinity nor volumes."""
    cycle = Cycle(profile, Present.of(state), nominated, FirstFace())
    nodes = [Node(metadata=node.metadata, spec=node.spec, status=node.status) for node in state.node_list()]
    pods = [Pod(metadata=pod.metadata, spec=pod.spec, status=pod.status) for pod in state.pods.values()]
    for i, node in enumerate(nodes):
        state.set_node(_cordoned(node) if i % 2 else _full(node))
    cycle.decide(pod)
    for running in pods[::3]:
        state.update_pod(PodInfo.of(_plain(running)))
    cycle.decide(pod)
    for node in nodes:
        state.set_node(node)
    cycle.decide(pod)
    for running in pods:
        state.update_pod(PodInfo.of(running))
    return cycle


def _cordoned(node: Node) -> Node:
    taint = Taint(key="otherwise", effect="NoSchedule")
    spec = replace(node.spec, unschedulable=not node.spec.unschedulable, taints=(*node.spec.taints, taint))
    return replace(node, spec=spec)


def _full(node: Node) -> Node:
    return replace(node, status=replace(node.status, allocatable={"cpu": "1m", "pods": "1"}, images=()))


def _plain(pod: Pod) -> Pod:
    spec = replace(pod.spec, affinity=None, volumes=(), containers=pod.spec.containers[:1])
    return replace(pod, metadata=replace(pod.metadata, labels={}), spec=spec)


PATHS: Final[Mapping[str, MakeCycle]] = {
    "node by node": node_by_node,
    "in columns": in_columns,
    "from a class that is remembered": remembered,
}


def evaluators() -> dict[str, Evaluator]:
    """One for each way."""
    return {path: evaluator(make_cycle) for path, make_cycle in PATHS.items()}
