"""A claim with the access mode ReadWriteOncePod is for one pod: another waits for it, or has it evicted.

The rule counts the users of a claim wherever they run. So to evict others can help on one node only: that of the pod
which has the claim, as for kube-scheduler (PreFilterExtensions of VolumeRestrictions)."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.core.scheduling import FakeDice, node, pod, scheduler, stepped

from ksp.core.changes import Bind, DeletePod, Evict, Report, SetNode, SetObject, SetPod
from ksp.core.scheduler import Scheduler, Step
from ksp.model.decode import convert
from ksp.model.pod import Pod
from ksp.model.storage import PersistentVolume, PersistentVolumeClaim

NAMES = ("a", "b", "c")
REASON = "node has pod using PersistentVolumeClaim with the same name and ReadWriteOncePod access mode"


def claim(name: str, mode: str = "ReadWriteOncePod") -> SetObject:
    """A claim that is bound to the volume `pv`."""
    annotations = {"pv.kubernetes.io/bind-completed": "yes"}
    metadata = {"name": name, "namespace": "default", "annotations": annotations}
    made = convert(PersistentVolumeClaim, {"metadata": metadata, "spec": {"accessModes": [mode], "volumeName": "pv"}})
    return SetObject("persistentVolumeClaims", "default", name, made)


def using(name: str, *claims: str, **fields: Any) -> Pod:
    volumes = [{"name": f"v{i}", "persistentVolumeClaim": {"claimName": each}} for i, each in enumerate(claims)]
    return pod(name, requests={"cpu": "100m"}, volumes=volumes, **fields)


def cluster(*pods: Pod, mode: str = "ReadWriteOncePod", dice: FakeDice | None = None) -> Scheduler:
    """Three nodes alike, and the claims `data` and `other`."""
    subject = scheduler(dice=dice)
    for name in NAMES:
        subject.on(SetNode(node(name)), 0.0)
    subject.on(SetObject("persistentVolumes", "", "pv", convert(PersistentVolume, {"metadata": {"name": "pv"}})), 0.0)
    subject.on(claim("data", mode), 0.0)
    subject.on(claim("other"), 0.0)
    for each in pods:
        subject.on(SetPod(each), 0.0)
    return subject


def tried(subject: Scheduler, wants: Pod, now: float = 0.0) -> Step:
    subject.on(SetPod(wants), now)
    return stepped(subject, now)


def test_a_second_pod_waits_on_all_nodes() -> None:
    step = tried(cluster(using("first", "data", on="a")), using("second", "data"))
    (report,) = step.effects
    assert isinstance(report, Report)
    assert report.message == f"0/3 nodes are available: 3 {REASON}."


def test_it_is_placed_when_the_first_has_gone() -> None:
    subject = cluster(using("first", "data", on="a"))
    tried(subject, using("second", "data"))
    subject.on(DeletePod("first"), 30.0)
    assert isinstance(stepped(subject, 30.0).effects[0], Bind)


@pytest.mark.parametrize("where", NAMES)
def test_only_the_pod_that_has_the_claim_is_evicted(where: str) -> None:
    """The nodes differ in nothing but that: on each there is a pod of the same priority with a claim of that kind."""
    others = [using(f"on {name}", "data" if name == where else f"other {name}", on=name, priority=1) for name in NAMES]
    step = tried(cluster(*others), using("important", "data", priority=10))
    evicted = [each for each in step.effects if isinstance(each, Evict)]
    assert [(each.node, [victim.name for victim in each.victims]) for each in evicted] == [(where, [f"on {where}"])]


def test_pods_beside_it_stay() -> None:
    subject = cluster(using("beside", on="b", priority=1), using("first", "other", "data", on="b", priority=1))
    step = tried(subject, using("important", "data", priority=10))
    assert step.preempted is not None
    assert [victim.name for victim in step.preempted.victims] == ["first"]


def test_nobody_is_evicted_for_a_claim_of_a_pod_of_the_same_priority() -> None:
    subject = cluster(using("first", "data", on="a", priority=10), using("low", on="b", priority=1))
    assert tried(subject, using("important", "data", priority=10)).preempted is None


def test_two_claims_of_pods_on_two_nodes_cannot_be_had_by_preemption() -> None:
    subject = cluster(using("first", "data", on="a", priority=1), using("second", "other", on="b", priority=1))
    assert tried(subject, using("important", "data", "other", priority=10)).preempted is None


def test_a_pod_that_is_assumed_has_the_claim() -> None:
    subject = cluster()
    assert isinstance(tried(subject, using("first", "data")).effects[0], Bind)
    assert tried(subject, using("second", "data")).decision.denied_by == {"NoDiskConflict"}


def test_a_claim_for_one_node_is_shared() -> None:
    subject = cluster(using("first", "data", on="a"), mode="ReadWriteOnce")
    assert isinstance(tried(subject, using("second", "data")).effects[0], Bind)
