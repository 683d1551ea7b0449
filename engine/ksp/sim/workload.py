"""What a simulation starts from: the cluster as it is, and the pods that arrive, with their times."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from ksp.core.changes import Change, SetNode, SetObject, SetPod
from ksp.model.claims import class_name
from ksp.model.info import NodeInfo, PodInfo
from ksp.model.node import Node
from ksp.model.pod import Pod
from ksp.model.policy import PodDisruptionBudget, PriorityClass
from ksp.model.storage import PersistentVolume, PersistentVolumeClaim
from ksp.sim.defaults import Priorities, defaulted_node, defaulted_pod
from ksp.sim.disruptions import first_status
from ksp.sim.manifests import Loaded, Manifests
from ksp.sim.openb import Arrival, OpenbTrace
from ksp.sim.texts import ManifestError

# The kinds that rules can ask for, by the names that they use.
OBJECTS = {
    "Service": "services", "ReplicationController": "replicationControllers", "ReplicaSet": "replicaSets",
    "StatefulSet": "statefulSets", "PersistentVolumeClaim": "persistentVolumeClaims",
    "PersistentVolume": "persistentVolumes", "StorageClass": "storageClasses", "CSINode": "csiNodes",
    "PodDisruptionBudget": "podDisruptionBudgets", "PriorityClass": "priorityClasses", "Namespace": "namespaces",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Workload:
    """`cluster` is what is there at the start, running pods included; `arrivals` are in order of time. `notes` are for
    the user: what was read and does not take part as one might expect."""

    cluster: tuple[Change, ...] = ()
    arrivals: tuple[Arrival, ...] = ()
    invalid: tuple[ManifestError, ...] = ()
    notes: tuple[str, ...] = ()

    def limited(self, pods: int) -> Workload:
        """With the first arrivals only."""
        return replace(self, arrivals=self.arrivals[:pods])


def of_trace(trace: OpenbTrace) -> Workload:
    """The nodes at the start, and each pod in its time."""
    return Workload(tuple(map(SetNode, trace.nodes)), tuple(trace.arrivals), tuple(trace.invalid))


def of_manifests(manifests: Manifests, *, interval: float = 0.0, skip_invalid: bool = False) -> Workload:
    """Pods that name a node run already; the others arrive in the order of the files, `interval` seconds apart.

    Raises ManifestError for a pod whose uid another has; with `skip_invalid` goes on without it.
    """
    pods, invalid = _pods(manifests.objects)
    if invalid and not skip_invalid:
        raise invalid[0]
    running = [pod for pod in pods if pod.spec.node_name]
    waiting = [pod for pod in pods if not pod.spec.node_name]
    cluster = [*_objects(manifests.objects, running), *map(SetPod, running)]
    arrivals = tuple(Arrival(pod, i * interval, None) for i, pod in enumerate(waiting))
    return Workload(
        tuple(cluster), arrivals, (*manifests.invalid, *invalid), tuple(_notes(manifests, cluster, waiting))
    )


def _objects(objects: Iterable[Loaded], running: Sequence[Pod]) -> Iterator[Change]:
    """All but the pods: nodes first, then the rest. A budget without a status has the one that its controller gives it
    beside these pods."""
    listed = list(objects)
    yield from (SetNode(defaulted_node(each.value)) for each in listed if isinstance(each.value, Node))
    for each in listed:
        if each.kind in OBJECTS:
            value = each.value
            if isinstance(value, PodDisruptionBudget) and not each.has_status:
                value = first_status(value, running)
            yield SetObject(OBJECTS[each.kind], each.namespace, each.name, value)


def _pods(objects: Iterable[Loaded]) -> tuple[list[Pod], list[ManifestError]]:
    """The pods with what an API server fills in, and what is wrong with those left out."""
    listed = list(objects)
    priorities = Priorities(each.value for each in listed if isinstance(each.value, PriorityClass))
    seen: dict[str, Loaded] = {}
    pods, invalid = [], []
    for each in listed:
        if not isinstance(each.value, Pod):
            continue
        uid = each.value.metadata.uid
        first = seen.setdefault(uid, each)
        if first is each:
            pods.append(defaulted_pod(each.value, priorities))
        else:
            message = f"`{uid}` stands twice: first at {first.file}:{first.line}"
            invalid.append(ManifestError(each.file, each.line, "metadata.uid", message))
    return pods, invalid


def _notes(manifests: Manifests, cluster: Iterable[Change], waiting: Iterable[Pod]) -> Iterator[str]:
    if manifests.templates:
        yield (
            f"no pods are made from {_counted(manifests.templates)}: a controller would make them. "
            "Add pods, such as those that `kubectl get pods -o yaml` prints"
        )
    if manifests.unknown:
        yield f"not read by the scheduler: {_counted(manifests.unknown)}"
    nodes = {change.node.metadata.name: change.node for change in cluster if isinstance(change, SetNode)}
    for name, node in nodes.items():
        if error := NodeInfo.of(node).error:
            yield f"node {name} counts as having nothing to give: {error}"
    for change in cluster:
        if isinstance(change, SetPod) and (problem := _problem_of_running(change.pod, nodes)):
            yield problem
    yield from _notes_on_objects([change for change in cluster if isinstance(change, SetObject)])
    missing = Counter(pod.spec.priority_class_name for pod in waiting if pod.spec.priority is None)
    for name, count in missing.items():
        yield f"there is no PriorityClass {name}: its pods ({count}) get priority 0"


def _notes_on_objects(objects: Sequence[SetObject]) -> Iterator[str]:
    """On budgets that protect nobody, volumes without a size, and claims of classes that are not there."""
    classes = {change.name for change in objects if change.kind == OBJECTS["StorageClass"]}
    missing: Counter[str] = Counter()
    for change in objects:
        match change.value:
            case PodDisruptionBudget() as budget if why := _why_idle(budget):
                yield f"PodDisruptionBudget {change.namespace}/{change.name} protects no pod: {why}"
            case PersistentVolume(spec=spec) if "storage" not in spec.capacity:
                yield f"PersistentVolume {change.name} says no capacity: it counts as one of size 0"
            case PersistentVolumeClaim() as claim if not claim.spec.volume_name:
                name = class_name(claim)
                if name and name not in classes:
                    missing[name] += 1
    for name, count in missing.items():
        yield f"there is no StorageClass {name}: nothing is made for its open claims ({count})"


def _why_idle(budget: PodDisruptionBudget) -> str:
    selector = budget.spec.selector
    if selector is None:
        return "it has no selector, or an empty one in policy/v1beta1"
    return f"its selector cannot be read: {selector.error}" if selector.error else ""


def _problem_of_running(pod: Pod, nodes: Container[str]) -> str:
    name = f"{pod.metadata.namespace}/{pod.metadata.name}"
    if pod.spec.node_name not in nodes:
        return f"pod {name} runs on node {pod.spec.node_name}, which is not here"
    error = PodInfo.of(pod).error
    return f"pod {name} runs and counts for nothing: {error}" if error else ""


def _counted(kinds: Counter[str]) -> str:
    return ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items()))
