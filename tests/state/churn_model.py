"""What the scheduler was told and what it decided, kept as plainly as can be: what has to be so follows from that.

`pods`, `nodes` and `others` are what the watches have shown. `given` are the pods that the scheduler gave a node and
no watch has shown there, `nominated` those that claim one, `asked` what their status is to say of that and does not
yet, `evicting` whom it wants to have evicted for whom (where: `evicting_on`) and has not seen go; `promised` and
`selected` what it assumes of volumes and of claims; `ours` are the schedulers that it decides for, and `leaving` pods
of others that it has to tell so, with what their status says. From these `state` is built, from nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final

from tests.state.churn_objects import annotated
from tests.state.churn_world import CLAIMS, VOLUMES, Key

from ksp.core.changes import (
    Change,
    DeleteNode,
    DeleteObject,
    DeletePod,
    PodVolumes,
    SetNode,
    SetObject,
    SetPod,
)
from ksp.core.nominations import MOST_ASKED
from ksp.core.state import ClusterState
from ksp.model.claims import SELECTED_NODE, is_bound
from ksp.model.info import PodInfo
from ksp.model.node import Node
from ksp.model.pod import Pod
from ksp.model.storage import PersistentVolume, PersistentVolumeClaim
from ksp.model.volumes import is_promised, promised, reference_to

OURS: Final = "default-scheduler"
FINISHED: Final = ("Succeeded", "Failed")


class Phase(Enum):
    """How far the binding of a pod is: its volumes are being written, its claims are waited for, it is being bound, it
    is bound."""

    VOLUMES = "volumes"
    CLAIMS = "claims"
    BINDING = "binding"
    BOUND = "bound"


OPEN: Final = (Phase.VOLUMES, Phase.CLAIMS)


@dataclass
class Given:
    """`since` is when the phase began, `claims` are those that have to be bound."""

    node: str
    phase: Phase
    since: float
    claims: tuple[str, ...] = ()


@dataclass
class Assumed:
    """What is assumed of an object: `what` is the claim of a volume, or the node of a claim, `of` the object's uid."""

    what: Any
    of: str
    holders: set[str] = field(default_factory=set)


class Model:
    """Times are the caller's; `ttl` and `timeout` are seconds."""

    def __init__(self, ttl: float | None, timeout: float) -> None:
        self.ours = frozenset({OURS})
        self.ttl = ttl
        self.timeout = timeout
        self.pods: dict[str, Pod] = {}
        self.nodes: dict[str, Node] = {}
        self.others: dict[Key, Any] = {}
        self.given: dict[str, Given] = {}
        self.nominated: dict[str, str] = {}
        self.asked: dict[str, list[str]] = {}
        self.leaving: dict[str, str] = {}
        self.evicting: dict[str, set[str]] = {}
        self.evicting_on: dict[str, str] = {}
        self.promised: dict[str, Assumed] = {}
        self.selected: dict[str, Assumed] = {}

    # ---- what follows

    def waits(self, uid: str) -> bool:
        """Wants a node, and nothing of its own keeps it from having one."""
        return self.wants_a_node(uid) and not self.pods[uid].spec.scheduling_gates

    def wants_a_node(self, uid: str) -> bool:
        known = self.pods.get(uid)
        return (
            known is not None
            and not known.spec.node_name
            and known.metadata.deletion_timestamp is None
            and (uid in self.given or (known.spec.scheduler_name or OURS) in self.ours)
        )

    def placed(self) -> dict[str, str]:
        """Where each pod counts, by uid."""
        given = {uid: each.node for uid, each in self.given.items()}
        return given | {uid: known.spec.node_name for uid, known in self.pods.items() if known.spec.node_name}

    def nominations(self) -> dict[str, list[str]]:
        """By node the uids of pods, in the order in which they were nominated."""
        found: dict[str, list[str]] = {}
        for uid, place in self.nominated.items():
            found.setdefault(place, []).append(uid)
        return found

    def victims(self) -> set[str]:
        return {victim for victims in self.evicting.values() for victim in victims}

    def on(self, place: str) -> list[PodInfo]:
        return [PodInfo.of(self.pods[uid]) for uid, there in self.placed().items() if there == place]

    def objects(self) -> Iterator[tuple[Key, Any]]:
        """The objects of other kinds as rules are to see them."""
        for (kind, namespace, name), obj in self.others.items():
            shown = obj
            if kind == VOLUMES and name in self.promised:
                shown = promised(obj, reference_to(self.promised[name].what))
            elif kind == CLAIMS and name in self.selected:
                shown = annotated(obj, SELECTED_NODE, self.selected[name].what)
            yield (kind, namespace, name), shown

    def state(self, nodes: Iterable[str], pods: Iterable[str]) -> ClusterState:
        """A state made of that, with nodes and pods in these orders: the order in which things came is kept nowhere
        else."""
        state = ClusterState()
        for key, obj in self.objects():
            state.set_object(*key, obj)
        for name in nodes:
            state.set_node(self.nodes[name])
        placed = self.placed()
        for uid in [*pods, *(uid for uid in placed if uid not in set(pods))]:
            state.add_pod(PodInfo.of(self.pods[uid]), placed[uid])
        return state

    def claim_of(self, uid: str, name: str) -> PersistentVolumeClaim | None:
        found: PersistentVolumeClaim | None = self.others.get((CLAIMS, self.pods[uid].metadata.namespace, name))
        return found

    def has_its_claims(self, uid: str) -> bool:
        """The watch of claims shows all of them bound."""
        claims = [self.claim_of(uid, name) for name in self.given[uid].claims]
        return all(claim is not None and is_bound(claim) for claim in claims)

    def has_its_volumes(self, uid: str) -> bool:
        """And that of volumes."""
        claims = [claim for name in self.given[uid].claims if (claim := self.claim_of(uid, name)) is not None]
        volumes = [self.others.get((VOLUMES, "", claim.spec.volume_name)) for claim in claims]
        return self.has_its_claims(uid) and all(
            volume is not None and volume.spec.claim_ref is not None and volume.spec.claim_ref.uid == claim.metadata.uid
            for volume, claim in zip(volumes, claims, strict=True)
        )

    # ---- what the watch shows

    def told(self, change: Change) -> None:
        match change:
            case SetPod(pod=shown):
                self._set_pod(shown)
            case DeletePod(uid=uid):
                self.gone(uid)
            case SetNode(node=node):
                self.nodes[node.metadata.name] = node
            case DeleteNode(name=name):
                self.nodes.pop(name, None)
            case SetObject(kind=kind, namespace=namespace, name=name, value=value):
                self.others[kind, namespace, name] = value
                self._end_assumptions()
            case DeleteObject(kind=kind, namespace=namespace, name=name):
                self.others.pop((kind, namespace, name), None)
                self._end_assumptions()

    def _set_pod(self, shown: Pod) -> None:
        uid, who = shown.metadata.uid, shown.metadata
        for other in [other for other, known in self.pods.items() if other != uid and known.metadata.name == who.name]:
            self.gone(other)
        if shown.status.phase in FINISHED:
            self.gone(uid)
            return
        before, waited = self.pods.get(uid), self.waits(uid)
        self.pods[uid] = shown
        place = shown.status.nominated_node_name
        is_new = before is not None and waited and place != before.status.nominated_node_name
        is_echo = is_new and place in self.asked.get(uid, ())
        if not self.waits(uid) or (is_new and not is_echo):
            self.asked.pop(uid, None)
        elif is_echo:
            del self.asked[uid][: self.asked[uid].index(place) + 1]
        if who.deletion_timestamp is not None:
            self._is_going(uid)
        if shown.spec.node_name:
            given = self.given.pop(uid, None)
            if given is not None and (given.node != shown.spec.node_name or given.phase in OPEN):
                self.release(uid)  # somebody else has bound it
            self.nominated.pop(uid, None)
            self.evicting.pop(uid, None)
        elif not self.waits(uid) or uid in self.given:
            self.nominated.pop(uid, None)
        elif not waited:
            self.follow_status(uid)
        elif is_new and not is_echo:
            self.nominate(uid, place)

    def gone(self, uid: str) -> None:
        self.pods.pop(uid, None)
        self.given.pop(uid, None)
        self.release(uid)
        self.nominated.pop(uid, None)
        self.asked.pop(uid, None)
        self.evicting.pop(uid, None)
        self._is_going(uid)

    def _is_going(self, uid: str) -> None:
        for preemptor, victims in list(self.evicting.items()):
            victims.discard(uid)
            if not victims:
                del self.evicting[preemptor]

    # ---- nominations

    def nominate(self, uid: str, place: str) -> None:
        """Also to none."""
        if self.nominated.get(uid) != place:
            self.nominated.pop(uid, None)
        if place:
            self.nominated[uid] = place

    def follow_status(self, uid: str) -> None:
        """A pod that comes to the queue claims what its status says or is to say, unless it has a claim."""
        if uid not in self.nominated and self.waits(uid):
            self.nominate(uid, self._said(uid))

    def ask(self, uid: str, place: str) -> None:
        """The pod's status is to name this node, or none."""
        if place != self._said(uid):
            self.asked[uid] = [*self.asked.get(uid, ()), place][-MOST_ASKED:]

    def _said(self, uid: str) -> str:
        asked = self.asked.get(uid)
        return asked[-1] if asked else self.pods[uid].status.nominated_node_name

    # ---- volumes

    def assume(self, uid: str, place: str, volumes: PodVolumes) -> None:
        for volume, claim in volumes.static:
            known = self.others[VOLUMES, "", volume.metadata.name]
            if not _is_settled(known, claim):
                self._hold(self.promised, known, claim, uid)
        for claim in volumes.dynamic:
            known = self.others[CLAIMS, claim.metadata.namespace, claim.metadata.name]
            if not _has_a_node(known):
                self._hold(self.selected, known, place, uid)

    @staticmethod
    def _hold(assumed: dict[str, Assumed], known: Any, what: Any, uid: str) -> None:
        assumed.setdefault(known.metadata.name, Assumed(what, known.metadata.uid)).holders.add(uid)

    def release(self, uid: str) -> None:
        for assumed in (self.promised, self.selected):
            for name, each in list(assumed.items()):
                each.holders.discard(uid)
                if not each.holders:
                    del assumed[name]

    def _end_assumptions(self) -> None:
        """What the watch shows, or shows otherwise, is assumed no longer."""
        for name, each in list(self.promised.items()):
            volume = self.others.get((VOLUMES, "", name))
            claim: Any = self.others.get((CLAIMS, each.what.metadata.namespace, each.what.metadata.name))
            kept = claim is not None and claim.metadata.uid == each.what.metadata.uid
            kept = kept and claim.spec.volume_name in ("", name)
            if volume is None or volume.metadata.uid != each.of or _is_settled(volume, each.what) or not kept:
                del self.promised[name]
        claims = {name: obj for (kind, _, name), obj in self.others.items() if kind == CLAIMS}
        for name, each in list(self.selected.items()):
            if name not in claims or claims[name].metadata.uid != each.of or _has_a_node(claims[name]):
                del self.selected[name]

    # ---- other policies

    def reloaded(self, ours: frozenset[str]) -> dict[str, str]:
        """It decides for the pods of these schedulers from now on; which pods leave, with the node that their status
        names or is to name."""
        before = {uid for uid in self.pods if self.wants_a_node(uid)}
        self.ours = ours
        return {uid: self.left(uid) for uid in before if not self.wants_a_node(uid)}

    def left(self, uid: str) -> str:
        """The pod waits no more, though it wants a node."""
        said = self.nominated.pop(uid, "") or self._said(uid)
        self.asked.pop(uid, None)
        self.evicting.pop(uid, None)
        return said

    # ---- outcomes

    def ended(self, uid: str) -> None:
        """The pod has no node after all."""
        if self.given.pop(uid, None) is not None:
            self.release(uid)
            self._come_back(uid)

    def _come_back(self, uid: str) -> None:
        """Or leave, if nobody decides for the pod any more."""
        known = self.pods.get(uid)
        ours = known is None or (known.spec.scheduler_name or OURS) in self.ours
        if known is not None and not ours and not known.spec.node_name and known.metadata.deletion_timestamp is None:
            self.leaving[uid] = self.left(uid)
        self.follow_status(uid)

    def overdue(self, now: float) -> list[str]:
        """Pods whose claims were waited for too long."""
        return [
            uid for uid, each in self.given.items()
            if each.phase is Phase.CLAIMS and each.since + self.timeout <= now
        ]  # fmt: skip

    def next_end(self) -> float | None:
        """When the next wait, for claims or for a watch, is too long; None if none will be."""
        after = {Phase.CLAIMS: self.timeout, Phase.BOUND: self.ttl}
        ends = [each.since + s for each in self.given.values() if (s := after.get(each.phase)) is not None]
        return min(ends, default=None)

    def expire(self, now: float) -> None:
        """Bound pods that no watch has shown in time."""
        ttl = self.ttl
        if ttl is not None:
            self._take_back(uid for uid, each in self._bound() if each.since + ttl <= now)

    def relisted(self, began: float) -> None:
        """Nor has a list that was asked for after they were bound."""
        self._take_back(uid for uid, each in self._bound() if each.since < began)

    def _bound(self) -> Iterator[tuple[str, Given]]:
        return ((uid, each) for uid, each in self.given.items() if each.phase is Phase.BOUND)

    def _take_back(self, uids: Iterable[str]) -> None:
        for uid in list(uids):
            del self.given[uid]
            self._come_back(uid)


def _is_settled(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    """The volume is the claim's, or another's."""
    ref = volume.spec.claim_ref
    return ref is not None and (ref.uid == claim.metadata.uid or not is_promised(volume, reference_to(claim)))


def _has_a_node(claim: PersistentVolumeClaim) -> bool:
    return SELECTED_NODE in claim.metadata.annotations or claim.spec.volume_name != ""


def counted(pods: Collection[PodInfo]) -> Mapping[str, int]:
    """What these pods ask for together."""
    sums: dict[str, int] = {}
    for pod in pods:
        for resource, amount in pod.requests.items():
            sums[resource] = sums.get(resource, 0) + amount
    return sums
