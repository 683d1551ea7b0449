"""What an API server fills in when an object is created, as far as scheduling reads it.

Objects of `kubectl get` have it already, manifests written by hand do not:

- a container that states a limit and no request asks for the limit;
- a container's port is the host's port too if the pod uses the host's network;
- a pod takes the priority of its PriorityClass, or of the one that is the default, and whether it may preempt;
- a node that does not say what it can give away gives all that it has.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from ksp.model.node import Node
from ksp.model.pod import Container, ContainerPort, Pod, PodSpec
from ksp.model.policy import PriorityClass

# Present in every cluster.
SYSTEM_PRIORITIES = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}
_SYSTEM_CLASSES = {name: PriorityClass(value=value) for name, value in SYSTEM_PRIORITIES.items()}


class Priorities:
    """What pods have of their PriorityClasses. A pod without a class has it of the default class: of several, of the
    one with the lowest value."""

    def __init__(self, classes: Iterable[PriorityClass] = ()) -> None:
        found = list(classes)
        self._by_name = _SYSTEM_CLASSES | {each.metadata.name: each for each in found}
        defaults = (each for each in found if each.global_default)
        self._default = min(defaults, key=lambda each: each.value, default=PriorityClass())

    def filled_in(self, spec: PodSpec) -> PodSpec:
        """The spec with a priority, and with a policy of preemption if the class has one. Neither is filled in if there
        is no such class; an API server would not take the pod then."""
        named = spec.priority_class_name
        found = self._by_name.get(named) if named else self._default
        if found is None:
            return spec
        priority = found.value if spec.priority is None else spec.priority
        policy = found.preemption_policy if spec.preemption_policy is None else spec.preemption_policy
        if (priority, policy) == (spec.priority, spec.preemption_policy):
            return spec
        return replace(spec, priority=priority, preemption_policy=policy)


def defaulted_pod(pod: Pod, priorities: Priorities) -> Pod:
    """The pod with what is filled in."""
    spec = priorities.filled_in(pod.spec)
    containers = tuple(_container(each, host_network=spec.host_network) for each in spec.containers)
    init_containers = tuple(_container(each, host_network=spec.host_network) for each in spec.init_containers)
    if spec is pod.spec and (containers, init_containers) == (spec.containers, spec.init_containers):
        return pod
    return replace(pod, spec=replace(spec, containers=containers, init_containers=init_containers))


def defaulted_node(node: Node) -> Node:
    """The node with what is filled in."""
    if node.status.allocatable or not node.status.capacity:
        return node
    return replace(node, status=replace(node.status, allocatable=node.status.capacity))


def _container(container: Container, *, host_network: bool) -> Container:
    ports = tuple(map(_host_port, container.ports)) if host_network else container.ports
    resources = container.resources
    missing = {name: limit for name, limit in resources.limits.items() if name not in resources.requests}
    if missing:
        resources = replace(resources, requests=resources.requests | missing)
    if ports == container.ports and not missing:
        return container
    return replace(container, ports=ports, resources=resources)


def _host_port(port: ContainerPort) -> ContainerPort:
    return port if port.host_port else replace(port, host_port=port.container_port)
