"""A small cluster in which pods find no room."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from tests.unit.core.scheduling import FakeDice, default_profile, info, node

from ksp.core.cycle import Cycle
from ksp.core.equivalence.present import Present
from ksp.core.filter import Filtered
from ksp.core.nominations import Nominations
from ksp.core.preemption import NotEligible, Preempted, Preemption
from ksp.core.state import ClusterState
from ksp.model.decode import convert
from ksp.model.info import PodInfo
from ksp.model.policy import PodDisruptionBudget
from ksp.policy.profile import Profile

DAY = "2024-01-0{}T00:00:00Z"


def running(name: str, *, cpu: str = "1", started: int = 1, **fields: Any) -> PodInfo:
    """A pod that started on a day; 0: it has not started yet."""
    made = info(name, requests={"cpu": cpu}, **fields)
    status = {"startTime": DAY.format(started) if started else None}
    made.status = convert(type(made.status), status)
    return made


class World:
    """`pods` by their nodes, each of which has 4 cpus; nominations, budgets, and what decides."""

    def __init__(self, pods: Mapping[str, Iterable[PodInfo]], profile: Profile | None = None, **nodes: Any) -> None:
        self.state = ClusterState()
        for name in pods:
            self.state.set_node(node(name, **nodes.get(name, {})))
        for name, there in pods.items():
            for each in there:
                self.state.add_pod(each, name)
        self.nominations = Nominations()
        self.dice = FakeDice()
        self.profile = profile or default_profile()
        self.present = Present.of(self.state)
        self.preemption = Preemption(self.profile, self.present, self.nominations, self.dice)

    def budget(
        self,
        name: str,
        selector: object,
        *,
        allowed: int = 0,
        disrupted: Collection[str] = (),
        namespace: str = "default",
    ) -> None:
        status = {"disruptionsAllowed": allowed, "disruptedPods": dict.fromkeys(disrupted, DAY.format(1))}
        metadata = {"name": name, "namespace": namespace}
        raw = {"metadata": metadata, "spec": {"selector": selector}, "status": status}
        self.state.set_object("podDisruptionBudgets", namespace, name, convert(PodDisruptionBudget, raw))

    def attempt(self, pod: PodInfo, evicting: Collection[str] = ()) -> Preempted | NotEligible | None:
        """After a decision that found no node."""
        return self.preemption.attempt(pod, self.decided(pod), evicting)

    def decided(self, pod: PodInfo) -> Filtered:
        decision = Cycle(self.profile, self.present, self.nominations.nodes, FakeDice()).decide(pod)
        assert not decision.node, decision
        assert not decision.failed, decision
        return decision.filtered

    def victims(self, pod: PodInfo) -> tuple[str, list[str]] | None:
        """The node, and the names of those that have to leave it."""
        outcome = self.attempt(pod)
        assert not isinstance(outcome, NotEligible)
        return None if outcome is None else (outcome.node, [victim.name for victim in outcome.victims])


def urgent(name: str = "urgent", *, cpu: str = "2", priority: int = 10, **fields: Any) -> PodInfo:
    return info(name, requests={"cpu": cpu}, priority=priority, **fields)
