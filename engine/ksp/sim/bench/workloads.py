"""The workloads, by name. Those called as in scheduler_perf (kubernetes, test/integration/scheduler_perf) have its
shapes: nodes of 4 cpu, 32Gi and 110 pods, pods of 100m and 500Mi, its affinity terms and constraints. Each says where
it differs. In all of them the running pods are put on the nodes in turn, where upstream schedules them first; and
affinity terms name the two namespaces that the pods are in.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from ksp.core.changes import Change, DeleteNode, DeleteObject, DeletePod, SetNode, SetObject, SetPod
from ksp.model.apps import Service, ServiceSpec, StatefulSet, StatefulSetSpec
from ksp.model.meta import LabelSelector, ObjectMeta
from ksp.model.policy import PodDisruptionBudget, PodDisruptionBudgetSpec, PodDisruptionBudgetStatus
from ksp.sim.bench.scenario import Churn, Numbered, Scenario, Size, in_turn
from ksp.sim.bench.templates import (
    BEFORE,
    HOSTNAME,
    MEASURED,
    ZONE,
    PodTemplate,
    node,
    nodes,
    number,
    pod_template,
)

ONE_ZONE: Final = ("zone1",)
MOONS: Final = ("moon-1", "moon-2", "moon-3")
TEMPLATES: Final = 50
SETS: Final = 10
CHURN_EVERY: Final = 100
LOW_A_NODE: Final = 4
LOW_KINDS: Final = 7
_LOW: Final = {"cpu": "900m", "memory": "500Mi"}
_HIGH: Final = {"cpu": "3", "memory": "500Mi"}
_LARGE: Final = {"cpu": "9", "memory": "500Mi"}


def scheduling_basic(size: Size) -> Scenario:
    """Plain pods. A fifth as many pods as nodes run already, as upstream (1,000 on 5,000 nodes)."""
    before = size.existing_or(size.nodes // 5)
    plain = _plain(size)
    return Scenario(nodes(size.nodes), in_turn([plain], before), in_turn([plain], size.pods, before))


def pod_affinity(size: Size) -> Scenario:
    """Each pod must share a zone with pods of its colour. All nodes are in one zone, and as many pods of that colour as
    nodes run already, as upstream."""
    before = size.existing_or(size.nodes)
    return Scenario(
        nodes(size.nodes, ONE_ZONE),
        in_turn([_affinity(size, BEFORE)], before),
        in_turn([_affinity(size, MEASURED)], size.pods),
    )


def pod_anti_affinity(size: Size) -> Scenario:
    """Each pod must be alone of its colour on its node. A fifth of the nodes have one already, as upstream; further
    running pods (`--existing`) are plain. With more pods than free nodes the rest find no place."""
    before = size.existing_or(size.nodes // 5)
    alone = min(before, size.nodes // 5)
    return Scenario(
        nodes(size.nodes),
        [*in_turn([_anti_affinity(size, BEFORE)], alone), *in_turn([_plain(size)], before - alone)],
        in_turn([_anti_affinity(size, MEASURED)], size.pods),
    )


def preferred_pod_affinity(size: Size) -> Scenario:
    """Each pod would like a node with pods of its colour. As many of these as nodes run already, as upstream."""
    before = size.existing_or(size.nodes)
    return Scenario(
        nodes(size.nodes),
        in_turn([_preferred_affinity(size, BEFORE)], before),
        in_turn([_preferred_affinity(size, MEASURED)], size.pods),
    )


def topology_spreading(size: Size) -> Scenario:
    """Pods spread over three zones with a maxSkew of 5, DoNotSchedule. As many plain pods as nodes run already, as
    upstream."""
    return _spreading(size, "DoNotSchedule")


def preferred_topology_spreading(size: Size) -> Scenario:
    """The same with ScheduleAnyway, as upstream."""
    return _spreading(size, "ScheduleAnyway")


def node_affinity(size: Size) -> Scenario:
    """Pods that must be in zone1 or zone2. All nodes are in zone1, and as many such pods as nodes run already, as
    upstream."""
    before = size.existing_or(size.nodes)
    zones = {"key": ZONE, "operator": "In", "values": ["zone1", "zone2"]}
    required = {"nodeSelectorTerms": [{"matchExpressions": [zones]}]}
    template = pod_template(
        "node-affinity", scheduler=size.scheduler,
        affinity={"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}},
    )  # fmt: skip
    return Scenario(nodes(size.nodes, ONE_ZONE), in_turn([template], before), in_turn([template], size.pods, before))


def mixed_base_pod(size: Size) -> Scenario:
    """Plain pods of 50 templates in turn, each with labels and requests of its own; upstream has one template. Two
    running pods for each node, in equal parts plain ones and ones with required and preferred affinity and
    anti-affinity, as upstream (those with required anti-affinity are one a node at most)."""
    before = size.existing_or(2 * size.nodes)
    kinds = [
        _plain(size), _affinity(size, BEFORE), _anti_affinity(size, BEFORE), _preferred_affinity(size, BEFORE),
        _preferred_anti_affinity(size, BEFORE),
    ]  # fmt: skip
    share = before // len(kinds)
    alone = min(share, size.nodes)
    counts = [before - 3 * share - alone, share, alone, share, share]
    running = [each for kind, count in zip(kinds, counts, strict=True) for each in in_turn([kind], count)]
    base = [_base(size, i) for i in range(TEMPLATES)]
    return Scenario(nodes(size.nodes, ONE_ZONE), running, in_turn(base, size.pods))


def unschedulable(size: Size) -> Scenario:
    """Plain pods beside ones that ask for more cpu than a node has, and have been tried before. Two such pods for each
    measured one; upstream 200 in 1.19, later a stream of them beside 20,000 running pods. They have the priority of
    the others."""
    pending = size.pending_or(2 * size.pods)
    large = pod_template("large", requests=_LARGE, scheduler=size.scheduler)
    before = size.existing_or(0)
    return Scenario(
        nodes(size.nodes),
        in_turn([_plain(size)], before),
        in_turn([_plain(size)], size.pods, before),
        in_turn([large], pending),
    )


def mixed_churn(size: Size) -> Scenario:
    """Plain pods, while a node without room, an unschedulable pod of a higher priority and a Service come and go: made
    before each 200th decision, and taken away 100 decisions later. Upstream does that once a second."""
    before = size.existing_or(0)
    return Scenario(
        nodes(size.nodes),
        in_turn([_plain(size)], before),
        in_turn([_plain(size)], size.pods, before),
        churn=Churn(CHURN_EVERY, lambda step: _churn(size, step)),
    )


def stateful_sets(size: Size) -> Scenario:
    """Pods of ten StatefulSets in turn, each selected by its set and a headless Service; upstream has none. Each has
    labels of its own: statefulset.kubernetes.io/pod-name and apps.kubernetes.io/pod-index. No volumes. As many such
    pods as nodes run already."""
    templates = [_replica(size, f"db-{i}") for i in range(SETS)]
    objects = [made for i in range(SETS) for made in (_service(f"db-{i}", {"app": f"db-{i}"}), _set(f"db-{i}"))]
    return _controlled(size, templates, objects)


def indexed_jobs(size: Size) -> Scenario:
    """Pods of ten indexed Jobs in turn, each selected by a headless Service; upstream has none. Each pod has a label of
    its own: batch.kubernetes.io/job-completion-index. As many such pods as nodes run already."""
    templates = [_worker(size, f"job-{i}") for i in range(SETS)]
    objects = [_service(f"job-{i}", {"batch.kubernetes.io/job-name": f"job-{i}"}) for i in range(SETS)]
    return _controlled(size, templates, objects)


def preemption_basic(size: Size) -> Scenario:
    """Pods of priority 10 that ask for 3 cpu, on nodes with four pods of priority 0 that ask for 900m: three of these
    have to go for each. As many measured pods as nodes at most. As upstream, on 500 nodes and later on 1,000."""
    low = pod_template("low", requests=_LOW, scheduler=size.scheduler, terminationGracePeriodSeconds=0)
    return Scenario(nodes(size.nodes), in_turn([low], _low_pods(size)), _high_pods(size))


def preemption_mixed(size: Size) -> Scenario:
    """The same where no two nodes are alike: each has a thousandth of a cpu more than the one before, and the running
    pods are of seven kinds in turn, with requests and priorities of their own. Budgets protect two of the kinds, one
    of which may be disturbed. Upstream has none."""
    kinds = [_low(size, i) for i in range(LOW_KINDS)]
    different = [node(f"node-{i}", cpu=f"{4000 + i % 1000}m") for i in range(size.nodes)]
    budgets = [_budget(f"low-{i}", allowed) for i, allowed in ((1, 0), (2, size.nodes))]
    return Scenario(different, in_turn(kinds, _low_pods(size)), _high_pods(size), objects=budgets)


WORKLOADS: Final[Mapping[str, Callable[[Size], Scenario]]] = {
    "SchedulingBasic": scheduling_basic,
    "SchedulingNodeAffinity": node_affinity,
    "SchedulingPodAffinity": pod_affinity,
    "SchedulingPodAntiAffinity": pod_anti_affinity,
    "SchedulingPreferredPodAffinity": preferred_pod_affinity,
    "TopologySpreading": topology_spreading,
    "PreferredTopologySpreading": preferred_topology_spreading,
    "MixedSchedulingBasePod": mixed_base_pod,
    "Unschedulable": unschedulable,
    "SchedulingWithMixedChurn": mixed_churn,
    "StatefulSets": stateful_sets,
    "IndexedJobs": indexed_jobs,
    "PreemptionBasic": preemption_basic,
    "PreemptionMixed": preemption_mixed,
}


def about(name: str) -> str:
    """What a workload is, in one paragraph."""
    return " ".join((WORKLOADS[name].__doc__ or "").split())


# ---- templates


def _plain(size: Size) -> PodTemplate:
    return pod_template("pod", scheduler=size.scheduler)


def _affinity(size: Size, namespace: str) -> PodTemplate:
    terms = {"requiredDuringSchedulingIgnoredDuringExecution": [_term("blue", ZONE)]}
    return _coloured(size, "affinity", namespace, "blue", {"podAffinity": terms})


def _anti_affinity(size: Size, namespace: str) -> PodTemplate:
    terms = {"requiredDuringSchedulingIgnoredDuringExecution": [_term("green", HOSTNAME)]}
    return _coloured(size, "anti-affinity", namespace, "green", {"podAntiAffinity": terms})


def _preferred_affinity(size: Size, namespace: str) -> PodTemplate:
    terms = {"preferredDuringSchedulingIgnoredDuringExecution": [_weighted(_term("red", HOSTNAME))]}
    return _coloured(size, "preferred-affinity", namespace, "red", {"podAffinity": terms})


def _preferred_anti_affinity(size: Size, namespace: str) -> PodTemplate:
    terms = {"preferredDuringSchedulingIgnoredDuringExecution": [_weighted(_term("yellow", HOSTNAME))]}
    return _coloured(size, "preferred-anti-affinity", namespace, "yellow", {"podAntiAffinity": terms})


def _coloured(size: Size, name: str, namespace: str, color: str, affinity: Mapping[str, Any]) -> PodTemplate:
    return pod_template(name, namespace=namespace, labels={"color": color}, scheduler=size.scheduler, affinity=affinity)


def _term(color: str, key: str) -> dict[str, Any]:
    selector = {"matchLabels": {"color": color}}
    return {"labelSelector": selector, "topologyKey": key, "namespaces": [BEFORE, MEASURED]}


def _weighted(term: Mapping[str, Any]) -> dict[str, Any]:
    return {"weight": 1, "podAffinityTerm": term}


def _spreading(size: Size, action: str) -> Scenario:
    before = size.existing_or(size.nodes)
    constraint = {
        "maxSkew": 5, "topologyKey": ZONE, "whenUnsatisfiable": action,
        "labelSelector": {"matchLabels": {"color": "blue"}},
    }  # fmt: skip
    template = pod_template(
        "spreading", labels={"color": "blue"}, scheduler=size.scheduler, topologySpreadConstraints=[constraint]
    )
    return Scenario(nodes(size.nodes, MOONS), in_turn([_plain(size)], before), in_turn([template], size.pods))


def _base(size: Size, i: int) -> PodTemplate:
    """The i-th of the templates of MixedSchedulingBasePod: 55m to 145m of cpu, 300Mi to 700Mi of memory, 100m and 500Mi
    on average."""
    requests = {"cpu": f"{55 + 10 * (i % 10)}m", "memory": f"{300 + 100 * (i // 10)}Mi"}
    labels = {"app": f"base-{i}", "pod-template-hash": f"{i:08x}"}
    owner = ("apps/v1", "ReplicaSet", f"base-{i}")
    return pod_template(f"base-{i}", labels=labels, requests=requests, scheduler=size.scheduler, owner=owner)


# ---- pods with labels of their own


def _controlled(size: Size, templates: list[PodTemplate], objects: list[SetObject]) -> Scenario:
    before = size.existing_or(size.nodes)
    return Scenario(
        nodes(size.nodes, MOONS),
        in_turn(templates, before),
        in_turn(templates, size.pods, before),
        objects=objects,
    )


def _replica(size: Size, name: str) -> PodTemplate:
    labels = {
        "app": name, "controller-revision-hash": f"{name}-5d4f8c7b9", "apps.kubernetes.io/pod-index": number(),
        "statefulset.kubernetes.io/pod-name": f"{name}-{number()}",
    }  # fmt: skip
    owner = ("apps/v1", "StatefulSet", name)
    return pod_template(name, labels=labels, scheduler=size.scheduler, owner=owner, hostname=f"{name}-{number()}")


def _worker(size: Size, name: str) -> PodTemplate:
    index = "batch.kubernetes.io/job-completion-index"
    labels = {
        "batch.kubernetes.io/job-name": name, "job-name": name, "batch.kubernetes.io/controller-uid": f"Job.{name}",
        index: number(),
    }  # fmt: skip
    return pod_template(
        name, labels=labels, annotations={index: number()}, scheduler=size.scheduler, owner=("batch/v1", "Job", name)
    )


def _service(name: str, selector: dict[str, str]) -> SetObject:
    value = Service(
        metadata=ObjectMeta(name=name, namespace="default"), spec=ServiceSpec(selector=selector, cluster_ip="None")
    )
    return SetObject("services", "default", name, value)


def _set(name: str) -> SetObject:
    spec = StatefulSetSpec(selector=LabelSelector(match_labels={"app": name}), service_name=name)
    value = StatefulSet(metadata=ObjectMeta(name=name, namespace="default"), spec=spec)
    return SetObject("statefulSets", "default", name, value)


# ---- pods that have to go, and those for which they do


def _low_pods(size: Size) -> int:
    return size.existing_or(LOW_A_NODE * size.nodes)


def _high_pods(size: Size) -> list[Numbered]:
    high = pod_template("high", requests=_HIGH, scheduler=size.scheduler, priority=10)
    return in_turn([high], min(size.pods, size.nodes))


def _low(size: Size, i: int) -> PodTemplate:
    """The i-th of the templates of PreemptionMixed: 900m to 960m of cpu, priority 0 to 2."""
    requests = {"cpu": f"{900 + 10 * i}m", "memory": "500Mi"}
    return pod_template(
        f"low-{i}", labels={"app": f"low-{i}"}, requests=requests, scheduler=size.scheduler, priority=i % 3,
        terminationGracePeriodSeconds=0,
    )  # fmt: skip


def _budget(app: str, allowed: int) -> SetObject:
    """Allows so many pods of the app to be disturbed."""
    value = PodDisruptionBudget(
        metadata=ObjectMeta(name=app, namespace="default"),
        spec=PodDisruptionBudgetSpec(selector=LabelSelector(match_labels={"app": app})),
        status=PodDisruptionBudgetStatus(disruptions_allowed=allowed),
    )
    return SetObject("podDisruptionBudgets", "default", app, value)


# ---- churn


def _churn(size: Size, step: int) -> list[Change]:
    """They come at even steps, and go at odd ones."""
    turn = step // 2
    named, service = f"node-churn-{turn}", f"service-churn-{turn}"
    large = Numbered(pod_template("churn", requests=_LARGE, scheduler=size.scheduler, priority=10), turn)
    if step % 2 == 0:
        return [
            SetNode(node(named, pods=0)), SetPod(large.pod()), _service(service, {"app": service}),
        ]  # fmt: skip
    return [DeleteNode(named), DeletePod(large.pod().metadata.uid), DeleteObject("services", "default", service)]
