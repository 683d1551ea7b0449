"""What counts of a node when victims are looked for on it: the node's own parts, and its pods by importance."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cache
from operator import attrgetter
from typing import Any

import msgspec

from ksp.check.schema import fields_of
from ksp.check.types import Struct
from ksp.compile.node_parts import HOST_PORTS, NONZERO_REQUESTED, REQUESTED, SUMS, parts_of, parts_read
from ksp.model.info import NodeInfo, PodInfo

Parts = frozenset[str]  # and entries of maps: `podCount`, `allocatable`, `labels["disk"]`
_ENCODER = msgspec.msgpack.Encoder(order="deterministic")


def by_importance(pods: Iterable[PodInfo]) -> list[PodInfo]:
    """In the order in which pods are spared: the highest priority first, then who runs longest; who has not started yet
    comes last. Else as they came."""
    return sorted(pods, key=_importance)


def _importance(pod: PodInfo) -> tuple[int, bool, str]:
    start = pod.status.start_time
    return -pod.priority, start is None, start or ""


@dataclass(slots=True)
class Shape:
    """What counts of a node for rules that read these parts of nodes: `own` are the parts themselves, `pods` the node's
    by importance, and `counted` what these count for. `numbers` are those of its shapes by the number of last pods."""

    node: NodeInfo
    parts: Parts
    generation: int = field(init=False)
    pods: list[PodInfo] = field(init=False)
    priorities: list[int] = field(init=False)
    own: bytes = field(init=False)
    counted: list[bytes] = field(init=False)
    numbers: dict[int, int] = field(init=False)

    def __post_init__(self) -> None:
        node = self.node
        self.generation = node.generation
        self.pods = by_importance(node.pods.values())
        self.priorities = [-pod.priority for pod in self.pods]
        self.own = _ENCODER.encode([_getter(part)(node) for part in sorted(self.parts)])
        sums = parts_read(self.parts) & SUMS
        first_ports = _first_ports(node) if HOST_PORTS in sums else {}
        self.counted = [_ENCODER.encode(_counted(pod, sums, first_ports.get(pod.uid))) for pod in self.pods]
        self.numbers = {}

    def below(self, priority: int) -> list[PodInfo]:
        """The pods of lower priority."""
        return self.pods[bisect_right(self.priorities, -priority) :]

    def last(self, victims: int) -> tuple[bytes, ...]:
        """The shape of the node, with so many of its last pods in question."""
        return (self.own, *self.counted[len(self.counted) - victims :])


def counted_for(pod: PodInfo, parts: Parts) -> bytes:
    """What a pod counts for in those of the sums that are among the parts, as the last one on its node."""
    sums = parts_read(parts) & SUMS
    return _ENCODER.encode(_counted(pod, sums, 0 if HOST_PORTS in sums and pod.host_ports else None))


def _first_ports(node: NodeInfo) -> dict[str, int]:
    """Where the ports of pods that have some begin among the node's."""
    found: dict[str, int] = {}
    place = 0
    for uid, pod in node.pods.items():
        if pod.host_ports:
            found[uid] = place
            place += len(pod.host_ports)
    return found


def _counted(pod: PodInfo, sums: Parts, first_port: int | None) -> list[object]:
    """What the pod counts for in the sums; of ports, where they stand among the others, too."""
    return [
        pod.priority,
        pod.requests if REQUESTED in sums else None,
        pod.nonzero_requests if NONZERO_REQUESTED in sums else None,
        None if first_port is None else (first_port, pod.host_ports),
    ]


def values_under(path: str) -> Parts:
    """What is read under a path of a footprint: one entry of a map, or the parts that it leads to."""
    return frozenset({path}) if _entry_of(path) is not None else parts_of(path)


def _entry_of(path: str) -> tuple[str, str] | None:
    """The map and the key, if the path is that of one entry of a map that stands in the node itself."""
    head, bracket, rest = path.partition('["')
    return (head, rest[:-2]) if bracket and rest.endswith('"]') and "." not in head else None


@cache
def _getter(part: str) -> Callable[[NodeInfo], Any]:
    """Gives a part of a node, or an entry of it: None if that is absent."""
    entry = _entry_of(part)
    if entry is not None:
        head, key = entry
        return lambda node: _getter(head)(node).get(key)
    path: list[str] = []
    owner = "Node"
    for name in part.split("."):
        found = fields_of(owner)[name]
        path += found.path
        owner = found.type.name if isinstance(found.type, Struct) else ""
    return attrgetter(".".join(path))
