"""A recorded cluster in which one thing at a time changes: told to the core, and made anew to compare with.

The scheduler in it follows the changes as it does in a cluster, and notes which events they were. The truth is what a
rule says of a state that is built from nothing out of the objects as they are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from tests.mutation.reads import Changed, Picture, of_nodes, of_pods
from tests.unit.core.scheduling import FakeDice

from ksp.core.changes import Change as Told
from ksp.core.changes import DeleteNode, DeleteObject, DeletePod, SetNode, SetObject, SetPod
from ksp.core.scheduler import Scheduler
from ksp.core.state import ClusterState
from ksp.model.decode import convert
from ksp.model.info import NodeInfo, PodInfo
from ksp.model.node import Node
from ksp.model.pod import Pod
from ksp.policy.profile import Profile
from ksp.policy.unread import UnreadFields
from ksp.sim.cases import FINISHED, OBJECTS

KINDS: Final[Mapping[str, type]] = {"nodes": Node, "pods": Pod, **OBJECTS}
Identity = tuple[str, ...]


def identity(made: Any) -> Identity:
    """What the object is known by: another one with another identity is another object."""
    meta = made.metadata
    return (meta.namespace, meta.name, meta.uid) if isinstance(made, Pod) else (meta.namespace, meta.name)


@dataclass(slots=True)
class Listener:
    """Stands in the place of the scheduler's Wake: notes the events, and wakes nobody."""

    heard: list[frozenset[str]] = field(default_factory=list)

    def may_help(self, rules: frozenset[str], events: frozenset[str]) -> bool:
        self.heard.append(events)
        return False


@dataclass(frozen=True, slots=True)
class Replaced:
    """An object of a kind that becomes another; `old` or `new` is None where it comes or goes."""

    kind: str
    old: Any
    new: Any

    @property
    def in_place(self) -> bool:
        """It is the same object with other contents, which can be changed back."""
        return self.old is not None and self.new is not None and _place(self.old) == _place(self.new)

    def told(self) -> Iterator[Told]:
        """As the watch tells it."""
        if self.old is not None and (self.new is None or identity(self.old) != identity(self.new)):
            yield _gone(self.kind, self.old)
        if self.new is not None:
            yield _set(self.kind, self.new)

    def back(self) -> Replaced:
        return Replaced(self.kind, self.new, self.old)


def _place(made: Any) -> object:
    """A pod that ends leaves its place among the pods of its node."""
    ends = (made.spec.node_name, made.status.phase in FINISHED) if isinstance(made, Pod) else ()
    return identity(made), ends


def _set(kind: str, made: Any) -> Told:
    match made:
        case Node():
            return SetNode(made)
        case Pod():
            return SetPod(made)
        case _:
            return SetObject(kind, made.metadata.namespace, made.metadata.name, made)


def _gone(kind: str, made: Any) -> Told:
    match made:
        case Node():
            return DeleteNode(made.metadata.name)
        case Pod():
            return DeletePod(PodInfo.of(made).uid)
        case _:
            return DeleteObject(kind, made.metadata.namespace, made.metadata.name)


class World:
    """A cluster of a case. `made` has its objects by kind, in their order."""

    def __init__(self, made: Mapping[str, Sequence[Any]]) -> None:
        self.made = {kind: list(values) for kind, values in made.items()}
        self.scheduler = Scheduler([Profile("nobody", (), ())], FakeDice(), unread_fields=UnreadFields.IGNORE)
        self.listener = Listener()
        for kind in (*OBJECTS, "nodes", "pods"):
            for each in self.made[kind]:
                self.scheduler.on(_set(kind, each), 0.0)
        queue = self.scheduler.queue
        sleeper = queue.add(PodInfo(uid="sleeper", name="sleeper", namespace="sleeper"), 0.0)
        queue.pop(0.0)
        queue.fail(sleeper, 0.0, frozenset({"a rule"}))
        self.scheduler.outcomes.wake = self.listener  # type: ignore[assignment]

    @property
    def state(self) -> ClusterState:
        return self.scheduler.state

    def tell(self, replaced: Replaced) -> tuple[Changed, list[frozenset[str]]]:
        """The change happens. What it is for the language, and the events that it is for the core."""
        self.listener.heard.clear()
        nodes = {name: Picture.of(self.state.nodes[name]) for name in self._touched(replaced)}
        pods, names = dict(self.state.pods), set(self.state.nodes)
        for told in replaced.told():
            self.scheduler.on(told, 0.0)
        self._remember(replaced)
        changed = Changed(objects={replaced.kind} & {*OBJECTS})
        if names != set(self.state.nodes):
            changed.came_or_went |= {"nodes", "feasible"}
        self._compare_nodes(nodes, changed)
        self._compare_pods(pods, changed)
        return changed, list(self.listener.heard)

    def _compare_nodes(self, before: Mapping[str, Picture], changed: Changed) -> None:
        for name, picture in before.items():
            if name in self.state.nodes:
                changed.node |= of_nodes(picture, Picture.of(self.state.nodes[name]))
        changed.pods |= {("node", *steps) for steps in changed.node}

    def _compare_pods(self, before: Mapping[str, PodInfo], changed: Changed) -> None:
        """A pod that is on another node now is not the row that it was."""
        if before.keys() != self.state.pods.keys():
            changed.came_or_went.add("pods")
        for uid, old in before.items():
            new = self.state.pods.get(uid)
            if new is not None and new is not old:
                changed.pods |= of_pods(old, new)
                if new.spec.node_name != old.spec.node_name:
                    changed.came_or_went.add("pods")

    def _touched(self, replaced: Replaced) -> set[str]:
        """The nodes that may be others afterwards."""
        ends = [made for made in (replaced.old, replaced.new) if made is not None]
        match replaced.kind:
            case "nodes":
                names = {made.metadata.name for made in ends}
            case "pods":
                names = {made.spec.node_name for made in ends}
            case _:
                names = set()
        return names & set(self.state.nodes)

    def _remember(self, replaced: Replaced) -> None:
        values = self.made[replaced.kind]
        if replaced.old is None:
            values.append(replaced.new)
            return
        at = next(i for i, each in enumerate(values) if each is replaced.old)
        values[at : at + 1] = [replaced.new] if replaced.new is not None else []

    def anew(self) -> ClusterState:
        """A state of the same objects, in the same orders, built from nothing."""
        state = ClusterState()
        for kind in OBJECTS:
            for made in self.made[kind]:
                state.set_object(kind, made.metadata.namespace, made.metadata.name, made)
        nodes = {made.metadata.name: made for made in self.made["nodes"]}
        for node in self.state.node_list():
            state.set_node(nodes[node.name])
        pods = {info.uid: info for made in self.made["pods"] if (info := _running(made)) is not None}
        for node in self.state.node_list():
            for uid in node.pods:
                state.add_pod(pods.pop(uid), node.name)
        for left in pods.values():
            state.add_pod(left, left.spec.node_name)
        return state


def _running(made: Pod) -> PodInfo | None:
    return PodInfo.of(made) if made.spec.node_name and made.status.phase not in FINISHED else None


def world_of(cluster: Mapping[str, Any]) -> World:
    """The cluster of a case, with those of its pods that have a node."""
    made: dict[str, list[Any]] = {
        kind: [convert(struct, each) for each in cluster.get(kind) or ()] for kind, struct in KINDS.items()
    }
    made["pods"] = [pod for pod in made["pods"] if pod.spec.node_name]
    return World(made)


def guessed(replaced: Replaced) -> Changed:
    """What the change of an object is for the language, before it is made, and without what follows for others."""
    match replaced.old, replaced.new:
        case Node() as old, Node() as new:
            paths = of_nodes(Picture.of(NodeInfo.of(old)), Picture.of(NodeInfo.of(new)))
            return Changed(node=paths, pods={("node", *steps) for steps in paths})
        case Pod() as old, Pod() as new:
            return Changed(pods=of_pods(PodInfo.of(old), PodInfo.of(new)))
        case _ if replaced.kind in OBJECTS:
            return Changed(objects={replaced.kind})
    return Changed(came_or_went={replaced.kind})


def common(first: ClusterState, second: ClusterState) -> list[str]:
    """The nodes that are in both."""
    return [node.name for node in first.node_list() if node.name in second.nodes]


def nodes_of(state: ClusterState, names: Sequence[str]) -> list[NodeInfo]:
    return [state.nodes[name] for name in names]
