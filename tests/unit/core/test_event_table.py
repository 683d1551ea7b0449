"""One test for each row of the table in `docs/events.md`: a pod that the event helps, and one that it cannot help.

All pods wait, denied by the shipped policy unless a row says otherwise. Then one thing happens. Whom it helps gets a
node at once, or has others evicted; who is not helped is not tried.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from msgspec.structs import replace
from tests.unit.core.scheduling import (
    REQUIRED,
    anti_affinity,
    default_profile,
    node,
    pod,
    profile_of,
    scheduler,
    stepped,
)

from ksp.core.changes import Change, DeleteNode, DeleteObject, DeletePod, SetNode, SetObject, SetPod
from ksp.core.node_order import ZONE
from ksp.core.queue import Place
from ksp.core.scheduler import Scheduler, Step
from ksp.model.apps import ReplicaSet, Service
from ksp.model.decode import convert
from ksp.model.namespace import Namespace
from ksp.model.policy import PodDisruptionBudget, PriorityClass
from ksp.model.storage import CSINode, PersistentVolume, PersistentVolumeClaim, StorageClass
from ksp.policy.profile import Profile

LATER: Final = 5.0  # after the first backoff, before the end of patience
Spec = Mapping[str, Any]

TAINT: Final = {"key": "gpu", "effect": "NoSchedule"}
GOING: Final = {"deletionTimestamp": "2020-01-01T00:00:00Z"}
LARGE: Final[dict[str, Any]] = {"requests": {"cpu": "4"}}
SMALL: Final[dict[str, Any]] = {"requests": {"cpu": "1m"}}
ON_SSD: Final[dict[str, Any]] = {**SMALL, "nodeSelector": {"disk": "ssd"}}
HUGE: Final[dict[str, Any]] = {"requests": {"cpu": "64"}}


def near(app: str) -> dict[str, Any]:
    term = {"topologyKey": ZONE, "labelSelector": {"matchLabels": {"app": app}}}
    return {**SMALL, "affinity": {"podAffinity": {REQUIRED: [term]}}}


def spread(app: str) -> dict[str, Any]:
    constraint = {
        "maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": app}},
    }  # fmt: skip
    return {**SMALL, "labels": {"app": app}, "topologySpreadConstraints": [constraint]}


def with_claim(name: str) -> dict[str, Any]:
    return {**SMALL, "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": name}}]}


# ---- the cluster: node `n` in zone z, with `runs`, which leaves it 3 of 4 cpus


BEFORE: Final[Sequence[Change]] = (
    SetNode(node("n", zone="z")), SetPod(pod("runs", on="n", labels={"app": "runs"})),
)  # fmt: skip


def waiting(
    helped: Spec | None, other: Spec | None, before: Sequence[Change] = BEFORE, profile: Profile | None = None
) -> Scheduler:
    """Both pods have been tried, and sleep."""
    subject = scheduler(profile or default_profile())
    for change in before:
        subject.on(change, 0.0)
    for name, spec in (("helped", helped), ("other", other)):
        if spec is not None:
            subject.on(SetPod(pod(name, **spec)), 0.0)
            step = stepped(subject)
            assert not step.decision.node, name
            assert place_of(subject, name) is Place.UNSCHEDULABLE, step.decision.message
    return subject


def place_of(subject: Scheduler, uid: str) -> Place:
    queued = subject.queue.get(uid)
    return Place.ABSENT if queued is None else queued.place


def attempted(subject: Scheduler, now: float = 0.0) -> str:
    """The pod that is tried, and the node that it gets; "" if none is due."""
    step = subject.step(now)
    return f"{step.pod.name} on {step.decision.node}" if isinstance(step, Step) else ""


def tried(subject: Scheduler) -> list[str]:
    """All that are due."""
    found = []
    while attempt := attempted(subject, LATER):
        found.append(attempt)
    return found


def told(subject: Scheduler, *changes: Change) -> list[str]:
    for change in changes:
        subject.on(change, LATER)
    return tried(subject)


def helps(subject: Scheduler, *changes: Change, on: str = "n") -> None:
    """Only the one that is helped is tried, and gets a node."""
    assert told(subject, *changes) == [f"helped on {on}"]
    assert place_of(subject, "other") in (Place.UNSCHEDULABLE, Place.ABSENT)


def helps_nobody(subject: Scheduler, *changes: Change) -> None:
    assert told(subject, *changes) == []
    assert Place.UNSCHEDULABLE in {place_of(subject, "helped"), place_of(subject, "other")}


# ---- assigned pods


def test_assigned_pod_add() -> None:
    subject = waiting(near("web"), near("db"))
    helps(subject, SetPod(pod("web", on="n", labels={"app": "web"}, **SMALL)))


def test_assigned_pod_add_takes_room_only() -> None:
    helps_nobody(waiting(LARGE, None), SetPod(pod("web", on="n", **SMALL)))


def test_assigned_pod_update_of_labels() -> None:
    subject = waiting(near("web"), LARGE)
    helps(subject, SetPod(pod("runs", on="n", labels={"app": "web"})))


def test_assigned_pod_update_of_requests() -> None:
    subject = waiting(LARGE, near("web"))
    helps(subject, SetPod(pod("runs", on="n", labels={"app": "runs"}, requests={"cpu": "0"})))


def test_assigned_pod_update_that_it_is_to_be_deleted() -> None:
    """It does not count in spreading any more, but takes its room."""
    before = (*BEFORE, SetNode(node("full", zone="y", cpu="0")))
    subject = waiting(spread("runs"), LARGE, before)
    helps(subject, SetPod(pod("runs", on="n", labels={"app": "runs"}, metadata=GOING)))


def test_assigned_pod_update_of_status_and_annotations() -> None:
    helps_nobody(
        waiting(LARGE, near("web")),
        SetPod(pod("runs", on="n", labels={"app": "runs"}, phase="Running")),
        SetPod(pod("runs", on="n", labels={"app": "runs"}, metadata={"annotations": {"a": "b"}})),
        SetPod(pod("runs", on="n", labels={"app": "runs"}, metadata={"resourceVersion": "7"})),
    )


def test_assigned_pod_delete() -> None:
    helps(waiting(LARGE, ON_SSD), DeletePod("runs"))


def test_assigned_pod_that_has_finished() -> None:
    helps(waiting(LARGE, ON_SSD), SetPod(pod("runs", on="n", phase="Succeeded")))


def test_assigned_pod_of_higher_priority_leaves_one_that_can_be_evicted() -> None:
    before = (*BEFORE, SetPod(pod("high", on="n", requests={"cpu": "2"}, priority=20)))
    subject = waiting({**LARGE, "priority": 10}, LARGE, before)
    assert told(subject, DeletePod("high")) == ["helped on "]
    assert subject.queue.nominations.node_of("helped") == "n"


# ---- unassigned pods


def test_unassigned_pod_add() -> None:
    subject = waiting(LARGE, None)
    assert told(subject, SetPod(pod("new"))) == ["new on n"]


def test_unassigned_pod_update() -> None:
    subject = waiting(LARGE, LARGE)
    helps(subject, SetPod(pod("helped", requests={"cpu": "3"})))


def test_unassigned_pod_update_of_labels() -> None:
    """It may be what a constraint of its own counts, so the pod is tried; and fails here."""
    assert told(waiting(LARGE, LARGE), SetPod(pod("helped", labels={"a": "b"}, **LARGE))) == ["helped on "]


def test_unassigned_pod_update_of_its_status() -> None:
    """Our own condition, for instance."""
    subject = waiting(LARGE, LARGE)
    changed = pod("helped", phase="Pending", metadata={"resourceVersion": "8", "generation": 2}, **LARGE)
    helps_nobody(subject, SetPod(changed))


def test_unassigned_pod_update_that_its_last_gate_is_gone() -> None:
    subject = waiting(LARGE, None)
    assert told(subject, SetPod(pod("gated", schedulingGates=[{"name": "a"}]))) == []
    assert told(subject, SetPod(pod("gated"))) == ["gated on n"]


def test_unassigned_pod_delete() -> None:
    subject = waiting(LARGE, LARGE)
    assert told(subject, DeletePod("helped")) == []
    assert place_of(subject, "helped") is Place.ABSENT
    assert place_of(subject, "other") is Place.UNSCHEDULABLE


def test_unassigned_pod_delete_of_one_that_claims_a_node() -> None:
    """Its victims have gone; now the room is free for others."""
    subject = waiting(None, ON_SSD)
    subject.on(SetPod(pod("helped", requests={"cpu": "3"})), 0.0)
    subject.on(SetPod(pod("claimant", requests={"cpu": "3"}, nominated="n")), 0.0)
    assert attempted(subject) == "helped on "
    helps(subject, DeletePod("claimant"))


def test_unassigned_pod_update_of_one_that_claims_a_node() -> None:
    """It waits for its port, and others avoid it as if it were there."""
    port: dict[str, Any] = {"containers": [{"name": "main", "ports": [{"containerPort": 80, "hostPort": 80}]}]}
    claimant: dict[str, Any] = {"priority": 10, "preemptionPolicy": "Never", "nominated": "n", **port}
    subject = waiting(None, ON_SSD)
    subject.on(SetPod(pod("there", on="n", priority=10, **port)), 0.0)
    subject.on(SetPod(pod("claimant", labels={"app": "web"}, **claimant)), 0.0)
    subject.on(SetPod(pod("helped", affinity=anti_affinity("web"), **SMALL)), 0.0)
    assert [attempted(subject), attempted(subject)] == ["claimant on ", "helped on "]
    subject.on(SetPod(pod("claimant", labels={"app": "db"}, **claimant)), LATER)
    assert attempted(subject, LATER) == "claimant on "
    helps(subject)


def test_assumed_pod_that_is_not_bound() -> None:
    subject = waiting(None, ON_SSD)
    for name in ("first", "helped"):
        subject.on(SetPod(pod(name, requests={"cpu": "3"})), 0.0)
    assert [attempted(subject), attempted(subject)] == ["first on n", "helped on "]
    subject.bind_failed("first", LATER)
    helps(subject)


# ---- nodes


def test_node_add() -> None:
    helps(waiting(LARGE, HUGE), SetNode(node("m")), on="m")


def test_node_update_that_it_is_schedulable() -> None:
    was = node("n", zone="z")
    closed = SetNode(replace(was, spec=replace(was.spec, unschedulable=True)))
    helps(waiting(SMALL, LARGE, (*BEFORE, closed)), SetNode(was))


def test_node_update_that_it_is_not_schedulable() -> None:
    was = node("n", zone="z")
    helps_nobody(waiting(LARGE, None), SetNode(replace(was, spec=replace(was.spec, unschedulable=True))))


def test_node_update_of_allocatable_to_more() -> None:
    helps(waiting(LARGE, ON_SSD), SetNode(node("n", zone="z", cpu="5")))


def test_node_update_of_allocatable_to_less() -> None:
    subject = waiting(LARGE, None)
    helps_nobody(subject, SetNode(node("n", zone="z", cpu="3")))
    assert not subject.queue.sleepers.answers


def test_node_update_of_labels() -> None:
    subject = waiting(ON_SSD, LARGE)
    helps(subject, SetNode(node("n", zone="z", labels={"disk": "ssd"})))


def test_node_update_of_taints_to_fewer() -> None:
    before = (SetNode(node("n", zone="z", taints=[TAINT])), *BEFORE[1:])
    helps(waiting(SMALL, LARGE, before), SetNode(node("n", zone="z")))


def test_node_update_of_taints_to_more() -> None:
    subject = waiting(LARGE, None)
    helps_nobody(subject, SetNode(node("n", zone="z", taints=[TAINT])))
    assert not subject.queue.sleepers.answers


def test_node_update_of_conditions_images_and_annotations() -> None:
    subject = waiting(LARGE, ON_SSD)
    ready = [{"type": "Ready", "status": "True"}]
    images = [{"names": ["x"], "sizeBytes": 1}]
    helps_nobody(
        subject, SetNode(node("n", zone="z", conditions=ready)), SetNode(node("n", zone="z", images=images)),
    )  # fmt: skip
    assert not subject.queue.sleepers.answers


def test_node_delete() -> None:
    """An empty zone of which nobody may be: without it the others are in balance."""
    before = (*BEFORE, SetNode(node("full", zone="y", cpu="0")))
    helps(waiting(spread("runs"), LARGE, before), DeleteNode("full"))


def test_node_delete_of_one_that_is_claimed() -> None:
    before = (SetNode(node("n")), SetPod(pod("low", on="n", **LARGE)))
    subject = waiting({**LARGE, "priority": 10}, LARGE, before)
    assert subject.queue.nominations.node_of("helped") == "n"
    assert told(subject, DeleteNode("n")) == ["helped on "]
    assert subject.queue.nominations.node_of("helped") is None
    assert place_of(subject, "other") is Place.UNSCHEDULABLE


# ---- storage


def claim(name: str, volume: str = "", of: str = "local") -> SetObject:
    metadata = {
        "name": name, "namespace": "default",
        "annotations": {"pv.kubernetes.io/bind-completed": "yes"} if volume else {},
    }  # fmt: skip
    spec = {
        "volumeName": volume, "storageClassName": of, "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}},
    }  # fmt: skip
    value = convert(PersistentVolumeClaim, {"metadata": metadata, "spec": spec})
    return SetObject("persistentVolumeClaims", "default", name, value)


def volume(name: str, size: str = "1Gi", of: str = "local", **spec: Any) -> SetObject:
    value = {
        "metadata": {"name": name}, "status": {"phase": "Available"},
        "spec": {"capacity": {"storage": size}, "accessModes": ["ReadWriteOnce"], "storageClassName": of, **spec},
    }  # fmt: skip
    return SetObject("persistentVolumes", "", name, convert(PersistentVolume, value))


def storage_class(name: str, mode: str = "WaitForFirstConsumer", **fields: Any) -> SetObject:
    value = {
        "metadata": {"name": name}, "provisioner": "kubernetes.io/no-provisioner", "volumeBindingMode": mode, **fields,
    }  # fmt: skip
    return SetObject("storageClasses", "", name, convert(StorageClass, value))


def csi_limit(count: int) -> SetObject:
    drivers = [{"name": "d", "nodeID": "n", "allocatable": {"count": count}}]
    return SetObject("csiNodes", "", "n", convert(CSINode, {"metadata": {"name": "n"}, "spec": {"drivers": drivers}}))


LOCAL: Final = (*BEFORE, storage_class("local"), claim("data"))
# Of driver d the node may have one volume, and has it.
ATTACHED: Final = (
    *BEFORE, csi_limit(1),
    *(volume(f"pv{i}", csi={"driver": "d", "volumeHandle": f"h{i}"}) for i in range(2)),
    *(claim(f"c{i}", f"pv{i}") for i in range(2)),
    SetPod(pod("user", on="n", **with_claim("c0"))),
)  # fmt: skip


def test_csi_node_add() -> None:
    """No CSINode is no limit, so one that comes can help nobody."""
    helps_nobody(waiting(LARGE, ON_SSD), csi_limit(1))


def test_csi_node_update() -> None:
    helps(waiting(with_claim("c1"), LARGE, ATTACHED), csi_limit(2))


def test_csi_node_delete() -> None:
    helps(waiting(with_claim("c1"), LARGE, ATTACHED), DeleteObject("csiNodes", "", "n"))


def test_persistent_volume_add() -> None:
    helps(waiting(with_claim("data"), LARGE, LOCAL), volume("pv"))


def test_persistent_volume_add_that_does_not_match() -> None:
    helps_nobody(waiting(with_claim("data"), LARGE, LOCAL), volume("pv", size="1Mi"))


def test_persistent_volume_update() -> None:
    before = (*LOCAL, volume("pv", size="1Mi"))
    helps(waiting(with_claim("data"), LARGE, before), volume("pv", size="2Gi"))


def test_persistent_volume_delete() -> None:
    before = (*LOCAL, volume("pv", size="1Mi"))
    helps_nobody(waiting(with_claim("data"), LARGE, before), DeleteObject("persistentVolumes", "", "pv"))


def test_persistent_volume_claim_add() -> None:
    """A claim that is not there is an error of the attempt: the pod is tried again after its backoff."""
    subject = waiting(None, LARGE, (*BEFORE, storage_class("local"), volume("pv")))
    subject.on(SetPod(pod("helped", **with_claim("data"))), 0.0)
    step = stepped(subject)
    assert step.decision.message == 'persistentvolumeclaim "data" not found'
    assert place_of(subject, "helped") is Place.BACKOFF
    helps(subject, claim("data"))


def test_persistent_volume_claim_update() -> None:
    """It was to be bound at once, and is now."""
    before = (*BEFORE, storage_class("local", "Immediate"), claim("data"), volume("pv"))
    helps(waiting(with_claim("data"), LARGE, before), claim("data", "pv"))


def test_persistent_volume_claim_delete() -> None:
    """The volume that it was promised can be another's."""
    helps_nobody(waiting(LARGE, ON_SSD, LOCAL), DeleteObject("persistentVolumeClaims", "default", "data"))


def test_storage_class_add() -> None:
    """Until then the claim was for no class that would wait for its pod."""
    before = (*BEFORE, claim("data"), volume("pv"))
    helps(waiting(with_claim("data"), LARGE, before), storage_class("local"))


def test_storage_class_add_that_binds_at_once() -> None:
    before = (*BEFORE, claim("data"), volume("pv"))
    helps_nobody(waiting(with_claim("data"), LARGE, before), storage_class("local", "Immediate"))


def test_storage_class_update() -> None:
    def topology(zone: str) -> list[dict[str, Any]]:
        return [{"matchLabelExpressions": [{"key": ZONE, "values": [zone]}]}]

    before = (*BEFORE, claim("data"), storage_class("local", provisioner="p", allowedTopologies=topology("y")))
    subject = waiting(with_claim("data"), LARGE, before)
    helps(subject, storage_class("local", provisioner="p", allowedTopologies=topology("z")))


def test_storage_class_delete() -> None:
    helps_nobody(waiting(with_claim("data"), LARGE, LOCAL), DeleteObject("storageClasses", "", "local"))


# ---- services and controllers


def same_rack() -> Profile:
    uses = 'predicates { CheckServiceAffinity(affinityLabels: ["rack"]), PodFitsResources }'
    return profile_of('import "ksp:by-labels.ksp"\nimport "ksp:resources.ksp"', uses)


WEB: Final[dict[str, str]] = {"app": "web"}
# `full` is in the rack of the first web pod, `n` is not.
RACKS: Final = (
    SetNode(node("n", labels={"rack": "b"})), SetNode(node("full", cpu="0", labels={"rack": "a"})),
    SetPod(pod("first", on="full", labels=WEB, requests={"cpu": "0"})),
)  # fmt: skip


def service(**selector: str) -> SetObject:
    value = {"metadata": {"name": "s", "namespace": "default"}, "spec": {"selector": selector}}
    return SetObject("services", "default", "s", convert(Service, value))


def test_service_add_update_and_delete() -> None:
    """A pod of the Service must follow the first of its pods; once it is of none it need not."""
    for change in (service(app="db"), DeleteObject("services", "default", "s")):
        subject = waiting({**SMALL, "labels": WEB}, HUGE, (*RACKS, service(**WEB)), same_rack())
        helps(subject, change)
    helps_nobody(waiting(HUGE, None, RACKS, same_rack()), service(**WEB))


def test_services_that_no_rule_reads() -> None:
    """As for most pods of the shipped policy."""
    subject = waiting(LARGE, ON_SSD)
    helps_nobody(subject, service(**WEB), service(app="db"), DeleteObject("services", "default", "s"))
    assert not subject.queue.sleepers.answers


def test_controllers() -> None:
    """ReplicaSets, and so ReplicationControllers and StatefulSets, help pods that a rule denies by them."""
    uses = "predicates { Owned, PodFitsResources }"
    rules = """import "ksp:resources.ksp"
    predicate Owned { deny "owned" when size(cluster.replicaSets[pod.namespace]) == 0 }"""
    replica_set = convert(ReplicaSet, {"metadata": {"name": "r", "namespace": "default"}})
    subject = waiting(SMALL, LARGE, BEFORE, profile_of(rules, uses))
    assert told(subject, SetObject("replicaSets", "default", "r", replica_set)) == ["helped on n"]
    shipped = waiting(LARGE, ON_SSD)
    helps_nobody(shipped, SetObject("replicaSets", "default", "r", replica_set))
    assert not shipped.queue.sleepers.answers


# ---- policy


def test_disruption_budgets() -> None:
    """They say who is evicted, never whether somebody can be: P waits for a node that `high` leaves too little of."""
    before = (*BEFORE, SetPod(pod("high", on="n", requests={"cpu": "2"}, priority=20)))
    subject = waiting({**LARGE, "priority": 10}, LARGE, before)
    key = "podDisruptionBudgets", "default", "b"
    for allowed in (0, 1):
        budget = {"metadata": {"name": "b"}, "spec": {"selector": {}}, "status": {"disruptionsAllowed": allowed}}
        subject.on(SetObject(*key, convert(PodDisruptionBudget, budget)), LATER)
    helps_nobody(subject, DeleteObject(*key))
    assert not subject.queue.sleepers.answers


def test_priority_classes() -> None:
    """A pod has its priority from its making on; only a rule that reads the classes is helped."""
    rules = 'predicate Known { deny "unknown" when !("urgent" in cluster.priorityClasses) }'
    rules = f'import "ksp:resources.ksp"\n{rules}'
    urgent = SetObject("priorityClasses", "", "urgent", convert(PriorityClass, {"metadata": {"name": "urgent"}}))
    helps(waiting(SMALL, None, BEFORE, profile_of(rules, "predicates { Known, PodFitsResources }")), urgent)
    shipped = waiting(LARGE, ON_SSD)
    helps_nobody(shipped, urgent, DeleteObject("priorityClasses", "", "urgent"))
    assert not shipped.queue.sleepers.answers


def test_namespaces() -> None:
    """Only a rule that reads them is helped."""
    rules = 'predicate Open { deny "closed" when !("open" in cluster.namespaces[pod.namespace].labels) }'
    rules = f'import "ksp:resources.ksp"\n{rules}'
    opened = convert(Namespace, {"metadata": {"name": "default", "labels": {"open": "yes"}}})
    change = SetObject("namespaces", "", "default", opened)
    helps(waiting(SMALL, None, BEFORE, profile_of(rules, "predicates { PodFitsResources, Open }")), change)
    shipped = waiting(LARGE, ON_SSD)
    helps_nobody(shipped, change)
    assert not shipped.queue.sleepers.answers


# ---- time


def test_the_end_of_patience() -> None:
    """Who was not helped for 60 s is tried all the same: the net for what events may miss."""
    subject = waiting(LARGE, ON_SSD)
    assert tried(subject) == []
    assert attempted(subject, 59.9) == ""
    assert [attempted(subject, 60.0), attempted(subject, 60.0)] == ["helped on ", "other on "]
