"""Cache and state against records from which everything is computed anew at each check."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from tests.state import objects

from ksp.core.cache import TRANSITIONS, CacheEvent, CachePhase, SchedulerCache
from ksp.core.errors import IllegalMoveError, StateError
from ksp.core.node_order import ZONE
from ksp.core.state import INDEXED_FIELDS, ClusterState
from ksp.model.info import EMPTY_NODE, NodeInfo, PodInfo

UIDS = [f"u{i}" for i in range(8)]
NODES = [f"n{i}" for i in range(5)]
ZONES = ["", "a", "b"]
TTL = 30.0

uids = st.sampled_from(UIDS)
node_names = st.sampled_from(NODES)
zones = st.sampled_from(ZONES)


@st.composite
def pods(draw: st.DrawFn) -> PodInfo:
    """Pods of which some share a name, and so come in place of each other; and some, as the API does not have it, come
    again under another."""
    number = draw(st.integers(0, len(UIDS) - 1))
    turn = draw(st.sampled_from([0, 0, 0, 0, 1]))
    return objects.pod(
        UIDS[number],
        name=f"web-{(number + turn) % 6}",
        namespace=["default", "system"][(number + turn) % 2],
        cpu=draw(st.sampled_from(["0", "100m", "2"])),
        labels={"app": draw(st.sampled_from(["web", "db"]))},
        host_port=draw(st.sampled_from([0, 80])),
        terms=draw(st.lists(st.sampled_from(INDEXED_FIELDS), max_size=2)),
    )


@dataclass
class Record:
    info: PodInfo
    node: str
    phase: CachePhase
    came: int
    """Its turn among the pods of its node."""
    ended: float | None = None
    """When its binding did, if that is all that is known."""

    @property
    def deadline(self) -> float | None:
        return None if self.ended is None else self.ended + TTL


class Follower:
    """Counts pods by zone and label, as a view does: it remembers what each row contributed, and replays changes."""

    def __init__(self, state: ClusterState) -> None:
        self.state = state
        self.start_again()

    def start_again(self) -> None:
        self.read = self.state.generation
        self.contributed = {uid: self.row(pod) for uid, pod in self.state.pods.items()}

    @staticmethod
    def row(pod: PodInfo) -> tuple[str, str]:
        return pod.node.labels.get(ZONE, ""), pod.labels["app"]

    def follow(self) -> None:
        changes = self.state.changes_since(self.read)
        if changes is None:
            self.start_again()
            return
        for change in changes:
            if change.kind == "pod":
                self.replay(str(change.key))
            elif change.kind == "node" and change.key in self.state.nodes:
                for uid in self.state.nodes[str(change.key)].pods:
                    self.replay(uid)
        self.read = self.state.generation

    def replay(self, uid: str) -> None:
        self.contributed.pop(uid, None)
        if uid in self.state.pods:
            self.contributed[uid] = self.row(self.state.pods[uid])


class CacheMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.state = ClusterState(journal_capacity=12)
        self.cache = SchedulerCache(self.state, ttl=TTL)
        self.diligent, self.slow = Follower(self.state), Follower(self.state)
        self.records: dict[str, Record] = {}
        self.nodes: dict[str, tuple[str, int]] = {}
        self.zones: list[str] = []
        self.arrivals = 0
        self.turns = 0

    # ---- the model's own moves

    def phase(self, uid: str) -> CachePhase:
        return self.records[uid].phase if uid in self.records else CachePhase.ABSENT

    def after(self, uid: str, event: CacheEvent) -> CachePhase | None:
        """Where the event leads; None after checking that the cache refuses it, if it is illegal."""
        return TRANSITIONS.get((self.phase(uid), event))

    def place(self, info: PodInfo, node: str, phase: CachePhase) -> None:
        self.remove_others(info)
        self.records.pop(info.uid, None)
        self.turns += 1
        self.records[info.uid] = Record(info, node, phase, self.turns)

    def replace(self, record: Record, info: PodInfo) -> None:
        """Under another name it comes last on its node."""
        if not same_name(record.info, info):
            self.remove_others(info)
            self.turns += 1
            record.came = self.turns
        record.info = info

    def remove_others(self, info: PodInfo) -> None:
        """Those of its name."""
        self.records = {uid: r for uid, r in self.records.items() if uid == info.uid or not same_name(r.info, info)}

    def expected_nodes(self) -> list[str]:
        by_zone = [sorted((at, n) for n, (z, at) in self.nodes.items() if z == zone) for zone in self.zones]
        longest = max(map(len, by_zone), default=0)
        return [names[turn][1] for turn in range(longest) for names in by_zone if turn < len(names)]

    # ---- nodes

    @rule(name=node_names, zone=zones, colour=st.sampled_from(["red", "blue"]), in_place=st.booleans())
    def set_node(self, name: str, zone: str, colour: str, in_place: bool) -> None:
        node = objects.node(name, zone=zone, labels={"colour": colour})
        self.state.set_node(node if in_place else NodeInfo.of(node))
        assert self.state.nodes[name].labels["colour"] == colour
        if self.nodes.get(name, ("?", 0))[0] != zone:
            self.arrivals += 1
            self.nodes.pop(name, None)
            self.keep_zones()
            self.nodes[name] = (zone, self.arrivals)
            self.keep_zones()

    @rule(name=node_names)
    def remove_node(self, name: str) -> None:
        if name not in self.nodes:
            with pytest.raises(StateError, match=name):
                self.state.remove_node(name)
            return
        self.state.remove_node(name)
        del self.nodes[name]
        self.keep_zones()

    def keep_zones(self) -> None:
        """Zones by first appearance; those without nodes lose their place."""
        present = [zone for zone, _ in self.nodes.values()]
        self.zones = [zone for zone in self.zones if zone in present]
        self.zones += [zone for zone in dict.fromkeys(present) if zone not in self.zones]

    # ---- pods

    @rule(info=pods(), node=node_names)
    def assume(self, info: PodInfo, node: str) -> None:
        phase = self.after(info.uid, CacheEvent.ASSUME)
        if phase is None:
            with pytest.raises(IllegalMoveError, match=info.uid):
                self.cache.assume(info, node)
        else:
            self.cache.assume(info, node)
            self.place(info, node, phase)

    @rule(info=pods(), node=node_names)
    def assume_and_forget(self, info: PodInfo, node: str) -> None:
        """Leaves no trace, if the pod did not come in place of another."""
        names = {(r.info.namespace, r.info.name) for r in self.records.values()}
        if info.uid not in self.records and (info.namespace, info.name) not in names:
            before = picture(self.state)
            self.cache.assume(info, node)
            assert self.cache.forget(info.uid) is info
            assert picture(self.state) == before
            assert info.node is EMPTY_NODE

    @rule(uid=uids)
    def finish_binding(self, uid: str) -> None:
        phase = self.after(uid, CacheEvent.FINISH_BINDING)
        if phase is None:
            with pytest.raises(IllegalMoveError, match=uid):
                self.cache.finish_binding(uid, self.now)
            return
        self.cache.finish_binding(uid, self.now)
        if phase is CachePhase.BOUND:
            self.records[uid].phase = phase
            self.records[uid].ended = self.now

    @rule(uid=uids)
    def forget(self, uid: str) -> None:
        phase = self.after(uid, CacheEvent.FORGET)
        if phase is None:
            with pytest.raises(IllegalMoveError, match=uid):
                self.cache.forget(uid)
        elif phase is CachePhase.ABSENT and uid in self.records:
            assert self.cache.forget(uid) is self.records.pop(uid).info
        else:
            assert self.cache.forget(uid) is None

    @rule(info=pods(), node=node_names, as_assumed=st.booleans())
    def confirm(self, info: PodInfo, node: str, as_assumed: bool) -> None:
        record = self.records.get(info.uid)
        if record is not None and as_assumed:
            node = record.node
        phase = self.after(info.uid, CacheEvent.CONFIRM)
        assert phase is not None
        self.cache.confirm(info, node)
        if record is not None and record.node == node:
            self.replace(record, info)
            record.phase, record.ended = phase, None
        else:
            self.place(info, node, phase)

    @rule(info=pods())
    def update(self, info: PodInfo) -> None:
        if self.after(info.uid, CacheEvent.UPDATE) is None:
            with pytest.raises(IllegalMoveError, match=info.uid):
                self.cache.update(info)
        else:
            self.cache.update(info)
            self.replace(self.records[info.uid], info)

    @rule(uid=uids)
    def remove(self, uid: str) -> None:
        record = self.records.pop(uid, None)
        assert self.cache.remove(uid) is (None if record is None else record.info)

    @rule(seconds=st.sampled_from([1.0, 10.0, TTL]))
    def time_passes(self, seconds: float) -> None:
        self.now += seconds
        due = [uid for uid, r in self.records.items() if r.deadline is not None and r.deadline <= self.now]
        assert {pod.uid for pod in self.cache.expire(self.now)} == set(due)
        for uid in due:
            del self.records[uid]

    @rule(ago=st.sampled_from([0.0, 1.0, 10.0]))
    def all_pods_are_listed(self, ago: float) -> None:
        """And those that are bound are not among them, as far as the list could know."""
        lost = [uid for uid, r in self.records.items() if r.ended is not None and r.ended < self.now - ago]
        assert {pod.uid for pod in self.cache.unshown(self.now - ago)} == set(lost)
        for uid in lost:
            del self.records[uid]

    @rule()
    def follow_after_a_while(self) -> None:
        self.slow.follow()
        assert self.slow.contributed == self.diligent.contributed

    # ---- both say the same

    @invariant()
    def journal_tells_all_changes(self) -> None:
        self.diligent.follow()
        assert self.diligent.contributed == {uid: Follower.row(pod) for uid, pod in self.state.pods.items()}

    @invariant()
    def phases_agree(self) -> None:
        assert {uid: self.cache.phase(uid) for uid in UIDS} == {uid: self.phase(uid) for uid in UIDS}
        deadlines = [r.deadline for r in self.records.values() if r.deadline is not None]
        assert self.cache.next_deadline() == min(deadlines, default=None)
        waiting = [uid for uid, r in self.records.items() if r.phase is not CachePhase.ADDED]
        assert [pod.uid for pod in self.cache.assumed()] == waiting
        assert self.cache.assumed_count == len(waiting)

    @invariant()
    def nodes_stand_in_order(self) -> None:
        assert [node.name for node in self.state.node_list()] == self.expected_nodes()
        assert all(self.state.nodes[node.name] is node for node in self.state.node_list())

    @invariant()
    def sums_are_those_of_the_pods(self) -> None:
        for node in self.state.nodes.values():
            there = [r for r in self.records.values() if r.node == node.name]
            placed = [r.info for r in sorted(there, key=lambda r: r.came)]
            assert same_pods(list(node.pods.values()), placed)
            assert sums(node) == sums(refilled(node, placed))

    @invariant()
    def indexes_hold_the_visible_pods(self) -> None:
        visible = {uid: r.info for uid, r in self.records.items() if r.node in self.nodes}
        assert same_map(self.state.pods, visible)
        for namespace in ("default", "system"):
            expected = {uid: info for uid, info in visible.items() if info.namespace == namespace}
            assert same_map(dict(self.state.pods_in_namespace(namespace)), expected)
        for field in INDEXED_FIELDS:
            expected = {uid: info for uid, info in visible.items() if getattr(info, field)}
            assert same_map(dict(self.state.pods_with(field)), expected)
        assert {pod.uid for pod in self.state.invisible_pods()} == self.records.keys() - visible.keys()

    @invariant()
    def pods_know_their_nodes(self) -> None:
        for uid, record in self.records.items():
            assert record.info.node is self.state.nodes.get(record.node, EMPTY_NODE)
            assert self.state.node_name_of(uid) == self.cache.node_name_of(uid) == record.node


def same_name(one: PodInfo, other: PodInfo) -> bool:
    return (one.namespace, one.name) == (other.namespace, other.name)


def same_pods(some: list[PodInfo], others: list[PodInfo]) -> bool:
    """Whether these are the same objects in the same order."""
    return list(map(id, some)) == list(map(id, others))


def same_map(some: dict[str, PodInfo], others: dict[str, PodInfo]) -> bool:
    """Whether the maps have the same objects under the same keys."""
    return some.keys() == others.keys() and all(some[uid] is others[uid] for uid in some)


def sums(node: NodeInfo) -> object:
    return dict(node.requested), dict(node.nonzero_requested), node.pod_count, node.host_ports


def refilled(node: NodeInfo, placed: list[PodInfo]) -> NodeInfo:
    """A node without history, with these pods."""
    fresh = NodeInfo.of(objects.node(node.name))
    for pod in placed:
        fresh.add_pod(copy(pod))
    return fresh


def picture(state: ClusterState) -> object:
    """Everything that a rule can see, with its order."""
    return (
        [(node.name, list(node.pods), sums(node)) for node in state.node_list()],
        list(state.pods),
        [list(state.pods_in_namespace(namespace)) for namespace in ("default", "system")],
        [list(state.pods_with(field)) for field in INDEXED_FIELDS],
        [pod.uid for pod in state.invisible_pods()],
    )


CacheMachine.TestCase.settings = settings(max_examples=200, stateful_step_count=40)
TestCache = CacheMachine.TestCase
