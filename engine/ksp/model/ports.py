"""Ports of the host that pods take."""

from __future__ import annotations

import msgspec

from ksp.model.meta import Int
from ksp.model.pod import Container, PodSpec


class HostPort(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """A port of the node; the address 0.0.0.0 stands for all of them."""

    port: Int = 0
    protocol: str = ""
    ip: str = ""


def host_ports_of(spec: PodSpec) -> tuple[HostPort, ...]:
    """The ports that the pod's containers and sidecars take. Init containers that end take none."""
    if not any([container.ports for container in spec.containers]) and not spec.init_containers:  # noqa: C419 - cheaper
        return ()
    sidecars = (container for container in spec.init_containers if container.restart_policy == "Always")
    return tuple(port for container in (*spec.containers, *sidecars) for port in _ports(container))


def _ports(container: Container) -> list[HostPort]:
    return [
        HostPort(port=port.host_port, protocol=port.protocol or "TCP", ip=port.host_ip or "0.0.0.0")  # noqa: S104
        for port in container.ports
        if port.host_port > 0
    ]
