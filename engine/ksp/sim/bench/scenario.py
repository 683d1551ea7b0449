"""What a workload is made of: the cluster before, the pods that are measured, and what happens meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from ksp.core.changes import Change, SetObject
from ksp.model.node import Node
from ksp.model.pod import Pod
from ksp.sim.bench.templates import DEFAULT_SCHEDULER, PodTemplate


@dataclass(frozen=True, slots=True)
class Size:
    """How large a workload is to be: nodes, measured pods, pods that run already, pods that wait and fit nowhere. None
    is what the workload has by itself. `scheduler` is whose pods they are."""

    nodes: int
    pods: int
    existing: int | None = None
    pending: int | None = None
    scheduler: str = DEFAULT_SCHEDULER

    def existing_or(self, usual: int) -> int:
        return usual if self.existing is None else self.existing

    def pending_or(self, usual: int) -> int:
        return usual if self.pending is None else self.pending


@dataclass(frozen=True, slots=True)
class Numbered:
    """One pod of a template."""

    template: PodTemplate
    number: int

    def pod(self) -> Pod:
        """As it waits."""
        return self.template.pod(self.number)

    def running(self, node: str) -> Pod:
        """As the watch shows it once it is bound."""
        return self.template.running(self.number, node)


@dataclass(frozen=True, slots=True)
class Churn:
    """Changes beside the decisions: before each `every`-th decision those that `step` gives for 0, 1, 2, …"""

    every: int
    step: Callable[[int], Sequence[Change]]


@dataclass(frozen=True, slots=True)
class Scenario:
    """`running` pods run already, spread evenly over the nodes in their order; `pending` ones have been tried in vain
    when measuring begins; `measured` ones come then. `objects` are Services and the like."""

    nodes: Sequence[Node]
    running: Sequence[Numbered]
    measured: Sequence[Numbered]
    pending: Sequence[Numbered] = ()
    objects: Sequence[SetObject] = ()
    churn: Churn | None = None

    def bound(self) -> Iterator[Pod]:
        """The running pods, on their nodes."""
        for i, each in enumerate(self.running):
            yield each.running(self.nodes[i % len(self.nodes)].metadata.name)


def in_turn(templates: Sequence[PodTemplate], count: int, first: int = 0) -> list[Numbered]:
    """So many pods, of one template after the other; each template numbers its own. `first` pods came before."""
    places = (divmod(first + i, len(templates)) for i in range(count))
    return [Numbered(templates[turn], number) for number, turn in places]
