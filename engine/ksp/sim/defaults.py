"""What an API server fills in when an object is created, as far as scheduling reads it.

Objects of `kubectl get` have it already, manifests written by hand do not:

- a container that states a limit and no request asks for the limit;
- a container's port is the host's port too if the pod uses the host's network;
- a pod takes the priority of its PriorityClass, or of the one that is the default;
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


class Priorities:
    """The priorities of pods by the names of their classes. A pod without a class has that of the default class."""

    def __init__(self, classes: Iterable[PriorityClass] = ()) -> None:
        found = list(classes)
        self._by_name = SYSTEM_PRIORITIES | {each.metadata.name: each.value for each in found}
        self._default = max((each.value for each in found if each.global_default), default=0)

    def of(self, spec: PodSpec) -> int | None:
        """None if there is no such class. (An API server would not take the pod then.)"""
        if spec.priority is not None:
            return spec.priority
        return self._by_name.get(spec.priority_class_name) if spec.priority_class_name else self._default


def defaulted_pod(pod: Pod, priority: int | None) -> Pod:
    """The pod with what is filled in, `priority` among it."""
    spec = pod.spec
    containers = tuple(_container(each, host_network=spec.host_network) for each in spec.containers)
    init_containers = tuple(_container(each, host_network=spec.host_network) for each in spec.init_containers)
    if (containers, init_containers, priority) == (spec.containers, spec.init_containers, spec.priority):
        return pod
    return replace(pod, spec=replace(spec, containers=containers, init_containers=init_containers, priority=priority))


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
