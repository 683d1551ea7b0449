"""What a simulation starts from: the cluster as it is, and the pods that arrive, with their times."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from ksp.core.changes import Change, SetNode, SetObject, SetPod
from ksp.model.info import NodeInfo, PodInfo
from ksp.model.node import Node
from ksp.model.pod import Pod
from ksp.model.policy import PriorityClass
from ksp.sim.defaults import Priorities, defaulted_node, defaulted_pod
from ksp.sim.manifests import Loaded, Manifests
from ksp.sim.openb import Arrival, OpenbTrace
from ksp.sim.texts import ManifestError

# The kinds that rules can ask for, by the names that they use.
OBJECTS = {
    "Service": "services", "ReplicationController": "replicationControllers", "ReplicaSet": "replicaSets",
    "StatefulSet": "statefulSets", "PersistentVolumeClaim": "persistentVolumeClaims",
    "PersistentVolume": "persistentVolumes", "StorageClass": "storageClasses", "CSINode": "csiNodes",
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

    Raises ManifestError for what only shows when all is read (a uid that stands twice, a priority class that is not
    there); with `skip_invalid` goes on without these pods.
    """
    reading = _Reading(skip_invalid, list(manifests.invalid))
    pods = list(reading.pods(manifests.objects))
    running = [pod for pod in pods if pod.spec.node_name]
    waiting = [pod for pod in pods if not pod.spec.node_name]
    cluster = [*_objects(manifests.objects), *map(SetPod, running)]
    arrivals = tuple(Arrival(pod, i * interval, None) for i, pod in enumerate(waiting))
    return Workload(tuple(cluster), arrivals, tuple(reading.invalid), tuple(_notes(manifests, cluster)))


def _objects(objects: Iterable[Loaded]) -> Iterator[Change]:
    """All but the pods: nodes first, then the rest."""
    listed = list(objects)
    yield from (SetNode(defaulted_node(each.value)) for each in listed if isinstance(each.value, Node))
    for each in listed:
        if each.kind in OBJECTS:
            yield SetObject(OBJECTS[each.kind], each.namespace, each.name, each.value)


@dataclass(slots=True)
class _Reading:
    """The pods that take part, and those that do not."""

    skip_invalid: bool
    invalid: list[ManifestError]
    seen: dict[str, Loaded] = field(default_factory=dict)

    def pods(self, objects: Iterable[Loaded]) -> Iterator[Pod]:
        listed = list(objects)
        priorities = Priorities(each.value for each in listed if isinstance(each.value, PriorityClass))
        for each in listed:
            if isinstance(each.value, Pod):
                pod = defaulted_pod(each.value, priorities.of(each.value.spec))
                if self._accepts(pod, each):
                    yield pod

    def _accepts(self, pod: Pod, loaded: Loaded) -> bool:
        first = self.seen.setdefault(pod.metadata.uid, loaded)
        if first is not loaded:
            message = f"`{pod.metadata.uid}` stands twice: first in the pod at {first.file}:{first.line}"
            return self._refuse(loaded, "metadata.uid", message)
        if pod.spec.priority is None and not pod.spec.node_name:
            message = f"there is no PriorityClass `{pod.spec.priority_class_name}` among the objects"
            return self._refuse(loaded, "spec.priorityClassName", message)
        return True

    def _refuse(self, loaded: Loaded, path: str, message: str) -> bool:
        error = ManifestError(loaded.file, loaded.line, path, message)
        if not self.skip_invalid:
            raise error
        self.invalid.append(error)
        return False


def _notes(manifests: Manifests, cluster: Iterable[Change]) -> Iterator[str]:
    if manifests.templates:
        yield f"no pods are made from {_counted(manifests.templates)}: a controller would make them"
    if manifests.unknown:
        yield f"not read by the scheduler: {_counted(manifests.unknown)}"
    nodes: set[str] = set()
    for change in cluster:
        match change:
            case SetNode(node=node):
                nodes.add(node.metadata.name)
                error = NodeInfo.of(node).error
                if error:
                    yield f"node {node.metadata.name} counts as empty-handed: {error}"
            case SetPod(pod=pod):
                info = PodInfo.of(pod)
                if pod.spec.node_name not in nodes:
                    yield f"pod {info.namespace}/{info.name} runs on node {pod.spec.node_name}, which is not here"
                elif info.error:
                    yield f"pod {info.namespace}/{info.name} runs and counts for nothing: {info.error}"
            case _:
                pass


def _counted(kinds: Counter[str]) -> str:
    return ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items()))
