"""What came of a simulation."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum

from ksp.model.info import NodeInfo


class Fate(Enum):
    """What became of a pod: it has a node; or waits; or it had one and had to go for another pod; or is not this
    scheduler's to place."""

    PLACED = "placed"
    WAITING = "waiting"
    EVICTED = "evicted"
    LEFT_ALONE = "left alone"


@dataclass(slots=True)
class PodRecord:
    """A pod that arrived. Times are virtual seconds.

    `node` is where it has its place, "" if nowhere. `evicted_by` is NAMESPACE/NAME of the pod for which it had to go,
    if it did. `message` is why not, of the last attempt: kube-scheduler's sentence,
    or for a pod left alone why that is; `reasons` counts the nodes by reason, and is empty if the attempt failed
    with an error. `decided` is the time of the last attempt, `left` when the pod went away, None if it did not.
    """

    uid: str
    namespace: str
    name: str
    arrived: float
    fate: Fate = Fate.WAITING
    node: str = ""
    message: str = ""
    reasons: Mapping[str, int] = field(default_factory=dict)
    attempts: int = 0
    decided: float | None = None
    left: float | None = None
    evicted_by: str = ""


@dataclass(frozen=True, slots=True)
class Eviction:
    """A pod that had to go from a node, and `by` the one for which it had to; both as NAMESPACE/NAME. `at` is when it
    was told, in virtual seconds. `was_running`: it ran from the start, and has no PodRecord. `against_budget`: a
    disruption budget did not allow it."""

    pod: str
    node: str
    by: str
    at: float
    was_running: bool
    against_budget: bool = False


@dataclass(frozen=True, slots=True)
class NodeUse:
    """What a node has, what the pods on it ask for, and how many they are. Amounts are in base units: cpu in milli, all
    else in whole units."""

    name: str
    pods: int
    requested: Mapping[str, int]
    allocatable: Mapping[str, int]

    @staticmethod
    def of(node: NodeInfo) -> NodeUse:
        requested = dict(node.requested) | {"pods": node.pod_count}
        return NodeUse(node.name, node.pod_count, requested, dict(node.allocatable))


@dataclass(frozen=True, slots=True)
class Allocation:
    """Of one resource: what pods ask for, and what there is, in base units over all nodes; `peak` is the most that was
    asked for at one time."""

    requested: int
    allocatable: int
    peak: int


@dataclass(frozen=True, slots=True)
class Outcome:
    """The end of a simulation. `running` pods were on nodes from the start; `evictions` are in the order in which they
    were decided; `now` is the virtual time at which nothing more could happen. `decisions` counts attempts, `seconds`
    is what they took by the stopwatch, 0 if it stood still.
    """

    records: tuple[PodRecord, ...]
    nodes: tuple[NodeUse, ...]
    allocation: Mapping[str, Allocation]
    running: int
    now: float
    decisions: int
    seconds: float
    evictions: tuple[Eviction, ...] = ()

    @property
    def rate(self) -> float:
        """Decisions a second; 0 if they were not measured."""
        return self.decisions / self.seconds if self.seconds else 0.0

    def count(self, fate: Fate) -> int:
        return sum(record.fate is fate for record in self.records)


def totals(amounts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """The sums by resource, sorted: Kubernetes' own first."""
    sums: dict[str, int] = {}
    for each in amounts:
        for name, n in each.items():
            sums[name] = sums.get(name, 0) + n
    return dict(sorted(sums.items(), key=lambda item: (_OWN.get(item[0], len(_OWN)), item[0])))


_OWN = {name: i for i, name in enumerate(("cpu", "memory", "ephemeral-storage", "pods"))}
