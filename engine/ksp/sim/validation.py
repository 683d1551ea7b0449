"""What an API server would not have taken: amounts and numbers that no object of a cluster has.

The rules are those of pkg/apis/core/validation, as far as they concern what scheduling computes with. Amounts that are
no quantities are left to who sums them: such a pod waits, and says why.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

import msgspec

from ksp.model.decode import DecodeError, Steps
from ksp.model.meta import ResourceList
from ksp.model.node import Node
from ksp.model.pod import Affinity, Container, Pod, PodSpec, ResourceRequirements
from ksp.model.policy import PodDisruptionBudget, PodDisruptionBudgetSpec, PriorityClass
from ksp.model.quantity import Quantity, QuantityError, milli_value
from ksp.model.storage import PersistentVolume, PersistentVolumeClaim, StorageClass

Wrong = Iterator[DecodeError]
WHOLE = 1000  # thousandths of one
LARGEST_PORT = 65_535
LARGEST_WEIGHT = 100
PREEMPTION_POLICIES = ("Never", "PreemptLowerPriority")
BINDING_MODES = ("Immediate", "WaitForFirstConsumer")
_PERCENTAGE = re.compile(r"[0-9]{1,5}%")


def first_mistake(value: msgspec.Struct) -> DecodeError | None:
    """The first thing in an object that an API server would refuse; None if there is none."""
    match value:
        case Pod():
            found = _pod(value.spec)
        case Node():
            found = _node(value)
        case PersistentVolumeClaim():
            found = _amounts(("spec", "resources", "requests"), value.spec.resources.requests)
        case PersistentVolume():
            found = _amounts(("spec", "capacity"), value.spec.capacity)
        case PodDisruptionBudget():
            found = _budget(value.spec)
        case PriorityClass():
            found = _one_of(("preemptionPolicy",), value.preemption_policy, PREEMPTION_POLICIES)
        case StorageClass():
            found = _one_of(("volumeBindingMode",), value.volume_binding_mode, BINDING_MODES)
        case _:
            return None
    return next(found, None)


def _one_of(where: Steps, value: str | None, known: tuple[str, ...]) -> Wrong:
    """Nothing said is as good."""
    if value and value not in known:
        yield DecodeError(where, f"`{value}` is not one of {', '.join(known)}")


def _budget(spec: PodDisruptionBudgetSpec) -> Wrong:
    if spec.min_available is not None and spec.max_unavailable is not None:
        yield DecodeError(("spec", "maxUnavailable"), "stands beside `minAvailable`: a budget has one of them")
    for name, amount in (("minAvailable", spec.min_available), ("maxUnavailable", spec.max_unavailable)):
        if isinstance(amount, str):
            sound = _PERCENTAGE.fullmatch(amount) is not None
        else:
            sound = amount is None or (isinstance(amount, int) and amount >= 0)
        if not sound:
            yield DecodeError(("spec", name), f"a number of pods or a part of a hundred is expected, not `{amount}`")


def _node(node: Node) -> Wrong:
    yield from _amounts(("status", "allocatable"), node.status.allocatable)
    yield from _amounts(("status", "capacity"), node.status.capacity)


def _pod(spec: PodSpec) -> Wrong:
    yield from _one_of(("spec", "preemptionPolicy"), spec.preemption_policy, PREEMPTION_POLICIES)
    for kind, containers in (("containers", spec.containers), ("initContainers", spec.init_containers)):
        for i, container in enumerate(containers):
            yield from _container(("spec", kind, i), container)
    if spec.resources is not None:
        yield from _resources(("spec", "resources"), spec.resources)
    yield from _amounts(("spec", "overhead"), spec.overhead)
    yield from _named(("spec", "overhead"), spec.overhead)
    for i, constraint in enumerate(spec.topology_spread_constraints):
        if constraint.max_skew < 1:
            yield DecodeError(("spec", "topologySpreadConstraints", i, "maxSkew"), "a number above 0 is expected")
    if spec.affinity is not None:
        yield from _weights(spec.affinity)


def _container(steps: Steps, container: Container) -> Wrong:
    yield from _resources((*steps, "resources"), container.resources)
    for i, port in enumerate(container.ports):
        for name, number in (("containerPort", port.container_port), ("hostPort", port.host_port)):
            if not 0 <= number <= LARGEST_PORT:
                yield DecodeError((*steps, "ports", i, name), f"a port from 1 to {LARGEST_PORT} is expected")


def _weights(affinity: Affinity) -> Wrong:
    for kind, weights in _weights_by_kind(affinity):
        for i, weight in enumerate(weights):
            if not 1 <= weight <= LARGEST_WEIGHT:
                steps = ("spec", "affinity", kind, "preferredDuringSchedulingIgnoredDuringExecution", i, "weight")
                yield DecodeError(steps, f"a weight from 1 to {LARGEST_WEIGHT} is expected")


def _weights_by_kind(affinity: Affinity) -> Iterator[tuple[str, list[int]]]:
    """The weights of the preferred terms of each kind of affinity."""
    node, pod, anti = affinity.node_affinity, affinity.pod_affinity, affinity.pod_anti_affinity
    if node is not None:
        yield "nodeAffinity", [term.weight for term in node.preferred_during_scheduling_ignored_during_execution]
    if pod is not None:
        yield "podAffinity", [term.weight for term in pod.preferred_during_scheduling_ignored_during_execution]
    if anti is not None:
        yield "podAntiAffinity", [term.weight for term in anti.preferred_during_scheduling_ignored_during_execution]


# ---- amounts


def _resources(steps: Steps, resources: ResourceRequirements) -> Wrong:
    for kind, amounts in (("requests", resources.requests), ("limits", resources.limits)):
        yield from _amounts((*steps, kind), amounts)
        yield from _named((*steps, kind), amounts)
    for name, limit in resources.limits.items():
        asked, most = _milli(resources.requests.get(name)), _milli(limit)
        if asked is not None and most is not None and asked > most:
            yield DecodeError((*steps, "requests", name), f"{resources.requests[name]} is more than the limit {limit}")


def _amounts(steps: Steps, amounts: ResourceList) -> Wrong:
    for name, quantity in amounts.items():
        milli = _milli(quantity)
        if milli is not None and milli < 0:
            yield DecodeError((*steps, name), f"{quantity} is negative")
        elif milli is not None and milli % WHOLE and _is_counted_in_pieces(name):
            yield DecodeError((*steps, name), f"{quantity} is not a whole number")


def _named(steps: Steps, amounts: Mapping[str, Quantity]) -> Wrong:
    """What a pod can ask for: resources without a domain are Kubernetes' own."""
    for name in amounts:
        if "/" not in name and name not in ("cpu", "memory", "ephemeral-storage") and not name.startswith("hugepages-"):
            message = "there is no such resource; one that is not Kubernetes' own has a domain, such as nvidia.com/gpu"
            yield DecodeError((*steps, name), message)


def _is_counted_in_pieces(name: str) -> bool:
    return name == "pods" or ("/" in name and "kubernetes.io/" not in name)


def _milli(quantity: Quantity | None) -> int | None:
    """Thousandths; None if there is no amount, or none that can be read."""
    try:
        return None if quantity is None else milli_value(quantity)
    except QuantityError:
        return None
