"""The volume binder against a model that computes everything anew: the API's objects, and a list of what is assumed.

Volumes and claims come, change, go and are made anew in any order; pods are placed, written for, bound and given up.
What rules see is always the API's versions with the assumptions over them, and nothing else.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import Any

import msgspec
from hypothesis import event, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from tests.state import storage

from ksp.core.assume_cache import NO_EVENTS
from ksp.core.changes import PodVolumes
from ksp.core.state import ClusterState
from ksp.core.volume_binder import Progress, VolumeBinder, VolumeError
from ksp.model.claims import BIND_COMPLETED, BOUND_BY_CONTROLLER, SELECTED_NODE
from ksp.model.storage import PersistentVolume, PersistentVolumeClaim

PV, PVC = "persistentVolumes", "persistentVolumeClaims"
THOROUGH = os.environ.get("KSP_HYPOTHESIS") == "thorough"
EVENTS = {PV: "PersistentVolume", PVC: "PersistentVolumeClaim"}
NODES = ("a", "b")
VOLUMES = ("v0", "v1", "v2")
CLAIMS = ("c0", "c1", "c2")
PODS = {
    "p0": storage.pod("p0", "c0"),
    "p1": storage.pod("p1", "c0", "c2"),
    "p2": storage.pod("p2", "c1", "c1", "c2"),
    "p3": storage.pod("p3", "c2", "c0"),
}

pod_names = st.sampled_from(sorted(PODS))
nodes = st.sampled_from(NODES)
volume_names = st.sampled_from(VOLUMES)
claim_names = st.sampled_from(CLAIMS)
rarely = st.sampled_from([False] * 5 + [True])

Id = tuple[str, str]
"""Kind and name."""


@dataclass(frozen=True)
class Assumed:
    """What a pod assumes of one object: of a volume, the claim that has it; of a claim, its node."""

    pod: str
    of: Id
    uid: str
    claim: str = ""
    claim_uid: str = ""
    node: str = ""


@dataclass
class Flight:
    node: str
    volumes: PodVolumes


class VolumesMachine(RuleBasedStateMachine):
    """`api` and `assumed` are the model."""

    def __init__(self) -> None:
        super().__init__()
        self.state = ClusterState(journal_capacity=10_000)
        for name in NODES:
            self.state.set_node(storage.node(name))
        self.state.set_object("storageClasses", "", "local", storage.storage_class("local"))
        self.state.set_object("storageClasses", "", "made", storage.storage_class("made", "example.com/disks"))
        self.binder = VolumeBinder(self.state)
        self.api: dict[Id, Any] = {}
        self.assumed: set[Assumed] = set()
        self.flights: dict[str, Flight] = {}
        self.version = 0
        self.read = 0
        self.followed: dict[Id, object] = {}
        for volume in VOLUMES:
            self.tell(self.volume(volume, **self.marks()))
        for claim in CLAIMS:
            self.tell(storage.claim(claim, of="made" if claim == "c2" else "local", **self.marks()))

    # ---- the model

    def marks(self, of: Id | None = None, *, anew: bool = False) -> dict[str, Any]:
        """The next version, and the uid: that of the object which is there, or a new one."""
        self.version += 1
        known = None if of is None or anew else self.api.get(of)
        uid = f"uid{self.version}" if known is None else known.metadata.uid
        return {"version": self.version, "uid": uid}

    def volume(self, name: str, **fields: Any) -> PersistentVolume:
        """The last one is made for claims, and never free."""
        if name != VOLUMES[-1]:
            return storage.volume(name, **fields)
        return storage.volume(name, of="made", phase="Bound", **fields)

    def uid_of(self, claim: str) -> str:
        known = self.api.get((PVC, claim))
        return "" if known is None else str(known.metadata.uid)

    def stands(self, each: Assumed) -> bool:
        """Neither shown nor contradicted by what the API has."""
        obj = self.api.get(each.of)
        if obj is None or obj.metadata.uid != each.uid:
            return False
        if each.of[0] == PVC:
            return SELECTED_NODE not in obj.metadata.annotations and not obj.spec.volume_name
        ref, claim = obj.spec.claim_ref, self.api.get((PVC, each.claim))
        return (
            (ref is None or (ref.name == each.claim and ref.uid == ""))
            and claim is not None
            and claim.metadata.uid == each.claim_uid
            and claim.spec.volume_name in ("", each.of[1])
        )

    def visible(self) -> dict[Id, Any]:
        """What rules see, versions aside."""
        found = {of: plain(obj) for of, obj in self.api.items()}
        for each in self.assumed:
            obj = found[each.of]
            if each.of[0] == PVC:
                obj["metadata"]["annotations"][SELECTED_NODE] = each.node
                continue
            if obj["spec"]["claimRef"] is None:
                obj["metadata"]["annotations"][BOUND_BY_CONTROLLER] = "yes"
            obj["spec"]["claimRef"] = {
                "apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": "default", "name": each.claim,
                "uid": each.claim_uid,
            }  # fmt: skip
        return found

    def seen(self) -> dict[Id, Any]:
        """What is in the state."""
        volumes = {(PV, name): obj for name, obj in self.state.objects[PV].items()}
        return volumes | {(PVC, name): obj for name, obj in self.state.objects[PVC].get("default", {}).items()}

    def check_events(self, before: dict[Id, Any], events: frozenset[str]) -> None:
        """They are what became of what rules see."""
        after = self.visible()
        came = {EVENTS[kind] + "Add" for kind, _ in after.keys() - before.keys()}
        went = {EVENTS[kind] + "Delete" for kind, _ in before.keys() - after.keys()}
        other = {EVENTS[of[0]] + "Update" for of in after.keys() & before.keys() if after[of] != before[of]}
        assert events == came | went | other

    def tell(self, obj: PersistentVolume | PersistentVolumeClaim) -> None:
        """The watch shows this version."""
        before = self.visible()
        kind = PV if isinstance(obj, PersistentVolume) else PVC
        self.api[kind, obj.metadata.name] = obj
        self.assumed = {each for each in self.assumed if self.stands(each)}
        self.check_events(before, self.binder.set(kind, obj.metadata.namespace, obj.metadata.name, obj))

    # ---- the world

    @rule(
        name=volume_names, anew=rarely, to=st.none() | claim_names, by_name=st.booleans(), label=st.booleans(),
        reached=st.sampled_from([(), (), ("a",), ("b",)]),
    )  # fmt: skip
    def a_volume_is_shown(
        self, name: str, anew: bool, to: str | None, by_name: bool, label: bool, reached: tuple[str, ...]
    ) -> None:
        ref = None if to is None else storage.ref(to, "" if by_name else self.uid_of(to))
        labels = {"checked": "yes"} if label else {}
        marks = self.marks((PV, name), anew=anew)
        self.tell(self.volume(name, nodes=reached, to=ref, labels=labels, **marks))

    @rule(
        name=claim_names, anew=rarely, volume=st.sampled_from(["", "", "", *VOLUMES, "unseen"]), complete=st.booleans(),
        selected=st.sampled_from(["", "", "", *NODES]), label=st.booleans(),
    )  # fmt: skip
    def a_claim_is_shown(self, name: str, anew: bool, volume: str, complete: bool, selected: str, label: bool) -> None:
        labels = {"checked": "yes"} if label else {}
        of = "made" if name == "c2" else "local"
        marks = self.marks((PVC, name), anew=anew)
        self.tell(
            storage.claim(name, of=of, volume=volume, complete=complete, selected=selected, labels=labels, **marks)
        )

    @rule(of=st.tuples(st.just(PV), volume_names) | st.tuples(st.just(PVC), claim_names))
    def something_goes(self, of: Id) -> None:
        before = self.visible()
        self.api.pop(of, None)
        self.assumed = {each for each in self.assumed if self.stands(each)}
        namespace = "" if of[0] == PV else "default"
        self.check_events(before, self.binder.remove(of[0], namespace, of[1]))

    @rule(of=st.tuples(st.just(PV), volume_names) | st.tuples(st.just(PVC), claim_names))
    def nothing_changes_but_a_version(self, of: Id) -> None:
        if of in self.api:
            known = self.api[of]
            self.version += 1
            metadata = msgspec.structs.replace(known.metadata, resource_version=str(self.version))
            self.tell(msgspec.structs.replace(known, metadata=metadata))

    # ---- pods

    @initialize(names=st.lists(pod_names, min_size=1, max_size=3, unique=True), node=nodes)
    def some_pods_are_placed(self, names: list[str], node: str) -> None:
        for name in names:
            self.place(name, node)

    @rule(name=pod_names, node=nodes)
    def a_pod_is_placed(self, name: str, node: str) -> None:
        self.place(name, node)

    def place(self, name: str, node: str) -> None:
        if name in self.flights:
            return
        pod, before = PODS[name], self.visible()
        try:
            found = self.binder.find(pod, self.state.nodes[node])
        except VolumeError:
            return
        event("placed")
        self.binder.assume(pod, node, found)
        self.flights[name] = Flight(node, found)
        for volume, claim in found.static:
            assert volume is self.api[PV, volume.metadata.name]
            assert claim is self.api[PVC, claim.metadata.name]
            ref = before[PV, volume.metadata.name]["spec"]["claimRef"]
            assert ref is None or ref["name"] == claim.metadata.name
            to = {"claim": claim.metadata.name, "claim_uid": claim.metadata.uid}
            self.put(Assumed(pod.uid, (PV, volume.metadata.name), volume.metadata.uid, **to))
        for claim in found.dynamic:
            assert claim is self.api[PVC, claim.metadata.name]
            self.put(Assumed(pod.uid, (PVC, claim.metadata.name), claim.metadata.uid, node=node))
        if found:
            event("shares" if len({each.of for each in self.assumed}) < len(self.assumed) else "alone")
        else:
            assert self.visible() == before

    def put(self, each: Assumed) -> None:
        """Whoever shares an object assumes the same of it."""
        if self.stands(each):
            assert {replace(other, pod=each.pod) for other in self.assumed if other.of == each.of} <= {each}
            self.assumed.add(each)

    @rule(name=pod_names)
    def a_pod_is_given_up(self, name: str) -> None:
        before = self.visible()
        self.flights.pop(name, None)
        self.assumed = {each for each in self.assumed if each.pod != PODS[name].uid}
        self.check_events(before, self.binder.revert(PODS[name].uid))

    @rule(name=pod_names)
    def a_pod_is_bound(self, name: str) -> None:
        """Of what is shown nothing is undone."""
        if name in self.flights and self.binder.progress(PODS[name].uid) is Progress.BOUND:
            before = self.seen()
            del self.flights[name]
            assert self.binder.revert(PODS[name].uid) == NO_EVENTS
            assert self.seen() == before
            assert not any(each.pod == PODS[name].uid for each in self.assumed)

    @rule(name=pod_names)
    def volumes_are_written(self, name: str) -> None:
        """As far as the API still has the versions that were found; the watch shows it at once."""
        if name not in self.flights:
            return
        flight = self.flights[name]
        for volume, claim in flight.volumes.static:
            if self.api.get((PV, volume.metadata.name)) == volume:
                marks = self.marks((PV, volume.metadata.name))
                to = storage.ref(claim.metadata.name, claim.metadata.uid)
                self.tell(self.volume(volume.metadata.name, to=to, **marks))
        for claim in flight.volumes.dynamic:
            if self.api.get((PVC, claim.metadata.name)) == claim:
                marks = self.marks((PVC, claim.metadata.name))
                self.tell(storage.claim(claim.metadata.name, of="made", selected=flight.node, **marks))

    @rule(name=claim_names)
    def the_controller_binds_a_claim(self, name: str) -> None:
        """To the volume that names it; else, if it has a node, to one that is made there."""
        claim = self.api.get((PVC, name))
        if claim is None or claim.spec.volume_name:
            return
        promised = [of for of, obj in self.api.items() if of[0] == PV and self.names(obj, claim)]
        selected = claim.metadata.annotations.get(SELECTED_NODE, "")
        if promised:
            volume = min(promised)[1]
        elif selected:
            volume = "v2"
            ref = storage.ref(name, claim.metadata.uid)
            self.tell(self.volume(volume, nodes=selected, to=ref, **self.marks((PV, volume))))
        else:
            return
        marks = self.marks((PVC, name))
        self.tell(storage.claim(name, of=claim.spec.storage_class_name, volume=volume, selected=selected, **marks))

    def names(self, volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
        return volume.spec.claim_ref is not None and volume.spec.claim_ref.uid == claim.metadata.uid

    # ---- what always holds

    @invariant()
    def rules_see_the_api_with_what_is_assumed(self) -> None:
        assert {of: plain(obj) for of, obj in self.seen().items()} == self.visible()

    @invariant()
    def the_journal_tells_of_each_change(self) -> None:
        for change in self.state.changes_since(self.read) or ():
            if change.kind in EVENTS:
                of = (change.kind, change.key[1])
                self.followed[of] = self.seen().get(of)
        self.read = self.state.generation
        assert {of: obj for of, obj in self.followed.items() if obj is not None} == self.seen()

    @invariant()
    def a_pods_volumes_are_bound_once_the_api_shows_it(self) -> None:
        for name, flight in self.flights.items():
            progress = self.binder.progress(PODS[name].uid)
            assert (progress is Progress.BOUND) == self.is_bound(flight)
            event(f"progress {progress if isinstance(progress, Progress) else 'error'}")
            assert isinstance(progress, str) == self.is_lost(PODS[name].uid, flight)

    def is_lost(self, uid: str, flight: Flight) -> bool:
        """Something that was found is gone; or it is another version, or was shown, and is not the pod's; or a claim
        has a volume that cannot be used on the node."""
        objects = [each for pair in flight.volumes.static for each in pair] + list(flight.volumes.dynamic)
        if not all(map(self.still, objects)):
            return True
        for volume, claim in flight.volumes.static:
            now = self.api[PV, volume.metadata.name]
            if now == volume and self.is_assumed(uid, volume):
                continue
            if not (self.names(now, claim) and self.is_reached(now, flight.node)) or self.is_off(claim, flight.node):
                return True
        for claim in flight.volumes.dynamic:
            known = self.api[PVC, claim.metadata.name]
            if known == claim and self.is_assumed(uid, claim):
                continue
            other_node = known.metadata.annotations.get(SELECTED_NODE) != flight.node
            if other_node or self.is_off(claim, flight.node):
                return True
        return False

    def is_assumed(self, uid: str, obj: PersistentVolume | PersistentVolumeClaim) -> bool:
        return any(each.pod == uid and each.of == (_kind(obj), obj.metadata.name) for each in self.assumed)

    def is_off(self, claim: PersistentVolumeClaim, node: str) -> bool:
        """The claim has a volume that is out of the node's reach."""
        volume = self.api.get((PV, self.api[PVC, claim.metadata.name].spec.volume_name))
        return volume is not None and not self.is_reached(volume, node)

    def is_bound(self, flight: Flight) -> bool:
        static = [
            self.still(volume) and self.is_claim_bound(claim, flight.node)
            and self.names(self.api[PV, volume.metadata.name], claim)
            and self.is_reached(self.api[PV, volume.metadata.name], flight.node)
            for volume, claim in flight.volumes.static
        ]  # fmt: skip
        dynamic = [
            self.is_claim_bound(claim, flight.node)
            and self.api[PVC, claim.metadata.name].metadata.annotations.get(SELECTED_NODE) == flight.node
            for claim in flight.volumes.dynamic
        ]
        return all(static) and all(dynamic)

    def still(self, obj: PersistentVolume | PersistentVolumeClaim) -> bool:
        known = self.api.get((_kind(obj), obj.metadata.name))
        return known is not None and bool(known.metadata.uid == obj.metadata.uid)

    def is_claim_bound(self, claim: PersistentVolumeClaim, node: str) -> bool:
        if not self.still(claim):
            return False
        known = self.api[PVC, claim.metadata.name]
        volume = self.api.get((PV, known.spec.volume_name))
        return BIND_COMPLETED in known.metadata.annotations and volume is not None and self.is_reached(volume, node)

    def is_reached(self, volume: PersistentVolume, node: str) -> bool:
        affinity = volume.spec.node_affinity
        if affinity is None or affinity.required is None:
            return True
        return node in affinity.required.node_selector_terms[0].match_expressions[0].values


def _kind(obj: PersistentVolume | PersistentVolumeClaim) -> str:
    return PV if isinstance(obj, PersistentVolume) else PVC


def plain(obj: PersistentVolume | PersistentVolumeClaim) -> Any:
    """As JSON, without versions."""
    found = msgspec.to_builtins(obj)
    del found["metadata"]["resourceVersion"]
    if found["spec"].get("claimRef") is not None:
        del found["spec"]["claimRef"]["resourceVersion"]
    return found


VolumesMachine.TestCase.settings = settings(
    max_examples=3_000 if THOROUGH else 150, stateful_step_count=40, deadline=None
)
TestVolumes = VolumesMachine.TestCase
