"""Nodes that a search for victims need not tell apart.

Victims are looked for on a node by taking off the pods of lower priority and putting them back one by one, in order of
importance, asking each time whether the pod still fits (`ksp.core.fits`). The answers, and so which places in that
order become victims, follow from what the rules read of the node and of the pods on it. Nodes that have the same of
that give the same, and one of them is enough to be judged:

- Rules that read no sums over a node's pods answer the same throughout, as long as none of the pods in question counts
  in a view that they read. If such a rule refuses the node, no victims help.
- For the other rules the parts of the node that they read must be equal, and so must, place by place, what the pods in
  question count for in the sums that they read, and their priorities.
- If one of the pods does count in a view, the node is a group of its own.

Names and labels make no difference unless one of those other rules reads them. What is read comes from footprints, as
far as the rules can refuse the pod at all; no rule has code of its own here.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Collection, Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache
from operator import attrgetter
from typing import Any, Final

import msgspec

from ksp.check.schema import fields_of
from ksp.check.types import Struct
from ksp.compile.node_parts import ANYTHING, HOST_PORTS, NONZERO_REQUESTED, REQUESTED, SUMS, parts_of, parts_read
from ksp.core.fits import Fits
from ksp.model.info import NodeInfo, PodInfo

HOPELESS: Final = "no victims help"
MOST: Final = 100_000  # distinct shapes that are remembered

Signature = Hashable
Parts = frozenset[str]  # and entries of maps: `podCount`, `allocatable`, `labels["disk"]`
_ENCODER = msgspec.msgpack.Encoder(order="deterministic")


def by_importance(pods: Iterable[PodInfo]) -> list[PodInfo]:
    """In the order in which pods are spared: the highest priority first, then who runs longest; who has not started yet
    comes last. Else as they came."""
    return sorted(pods, key=_importance)


def _importance(pod: PodInfo) -> tuple[int, bool, str]:
    start = pod.status.start_time
    return -pod.priority, start is None, start or ""


class Alike:
    """Groups nodes. Remembers between searches what is equal of nodes that did not change."""

    def __init__(self) -> None:
        self._known: dict[Parts, dict[str, _Known]] = {}
        self._numbers: dict[tuple[bytes, ...], int] = {}
        self._next = 0

    def groups(
        self,
        fits: Fits,
        nodes: Iterable[NodeInfo],
        *,
        apart: Collection[str] = (),
        covered: Callable[[PodInfo], Hashable] | None = None,
    ) -> dict[Signature, list[NodeInfo]]:
        """The nodes by what matters when victims for the pod are looked for; those where none can be found under
        HOPELESS. `apart` are names of nodes to be judged by themselves, such as those with nominated pods; `covered`
        says what protects a pod from being a victim, such as its disruption budgets."""
        found: dict[Signature, list[NodeInfo]] = {}
        search = _Search(fits)
        known = self._known_with(search.parts, len(fits.tables.state.nodes))
        for node in nodes:
            shape = known.get(node.name)
            if shape is None or shape.generation != node.generation:
                shape = known[node.name] = _Known(node, search.parts)
            signature: Signature
            victims = shape.below(fits.pod.priority)
            if not victims:
                signature = HOPELESS
            elif node.name in apart or search.sees_any(victims):
                signature = node.name
            elif search.refuses(node):
                signature = HOPELESS
            else:
                signature = self._number(shape, len(victims))
                if covered is not None:
                    signature = (signature, tuple(covered(pod) for pod in victims))
            found.setdefault(signature, []).append(node)
        return found

    def _known_with(self, parts: Parts, nodes: int) -> dict[str, _Known]:
        known = self._known.setdefault(parts, {})
        if len(known) > 2 * nodes:
            known.clear()  # most of them are gone
        return known

    def _number(self, shape: _Known, victims: int) -> int:
        """Equal for equal shapes; none is used twice."""
        number = shape.numbers.get(victims)
        if number is None:
            if len(self._numbers) >= MOST:
                self._numbers.clear()
            self._next += 1
            number = self._numbers.setdefault(shape.last(victims), self._next)
            shape.numbers[victims] = number
        return number


class _Search:
    """What the rules read that can refuse the pod."""

    def __init__(self, fits: Fits) -> None:
        asked = [rule for rule in fits.rules if rule.check is not None]
        reads = {rule.active.name: rule.active.footprint.node for rule in asked}
        of_pods = {name for name, paths in reads.items() if not parts_read(paths).isdisjoint(SUMS)}
        tables = [table for rule in fits.rules for table in rule.tables]
        self._constant = [rule.check for rule in asked if rule.active.name not in of_pods and rule.check is not None]
        self._hopeless = any(rule.outcome is not None for rule in fits.rules)
        self.parts: Parts = frozenset().union(*(_values(path) for name in of_pods for path in reads[name]))
        self._apart = ANYTHING in self.parts or any(table.plan.reads_sums for table in tables)
        self._tables = [table for table in tables if table.rows]

    def sees_any(self, pods: Sequence[PodInfo]) -> bool:
        """A view can be another when these pods are gone, or be read as another."""
        if self._apart:
            return True
        return bool(self._tables) and any(table.contributes(pod.uid) for table in self._tables for pod in pods)

    def refuses(self, node: NodeInfo) -> bool:
        """The node is refused whichever of its pods are gone."""
        for check in self._constant:
            if check(node) is not None:
                return True
        return self._hopeless


@dataclass(slots=True)
class _Known:
    """What counts of a node for rules that read these parts of nodes: `own` are the parts themselves, `pods` the node's
    by importance, and `shapes` what these count for. `numbers` are those of its shapes by the number of last pods."""

    node: NodeInfo
    parts: Parts
    generation: int = field(init=False)
    pods: list[PodInfo] = field(init=False)
    priorities: list[int] = field(init=False)
    own: bytes = field(init=False)
    shapes: list[bytes] = field(init=False)
    numbers: dict[int, int] = field(init=False)

    def __post_init__(self) -> None:
        node = self.node
        self.generation = node.generation
        self.pods = by_importance(node.pods.values())
        self.priorities = [-pod.priority for pod in self.pods]
        self.own = _ENCODER.encode([_getter(part)(node) for part in sorted(self.parts)])
        sums = parts_read(self.parts) & SUMS
        with_ports = [uid for uid, pod in node.pods.items() if pod.host_ports] if HOST_PORTS in sums else []
        self.shapes = [_ENCODER.encode(_counted(pod, sums, with_ports)) for pod in self.pods]
        self.numbers = {}

    def below(self, priority: int) -> list[PodInfo]:
        """The pods of lower priority."""
        return self.pods[bisect_right(self.priorities, -priority) :]

    def last(self, victims: int) -> tuple[bytes, ...]:
        """The shape of the node, with so many of its last pods in question."""
        return (self.own, *self.shapes[len(self.shapes) - victims :])


def _counted(pod: PodInfo, sums: Parts, with_ports: Sequence[str]) -> list[object]:
    """What the pod counts for in the sums; of ports, where they stand among the others."""
    return [
        pod.priority,
        pod.requests if REQUESTED in sums else None,
        pod.nonzero_requests if NONZERO_REQUESTED in sums else None,
        (with_ports.index(pod.uid), pod.host_ports) if pod.uid in with_ports else None,
    ]


def _values(path: str) -> Parts:
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
