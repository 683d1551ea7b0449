"""Disruption budgets in virtual time: how many pods of each may be disturbed, as pods come and go.

The disruption controller writes that into a budget's status. A pod that has a node, is not on its way out and does not
say that it is not ready counts as healthy; a budget that wants so many in a hundred wants them of the pods that it
selects, where the controller asks their owners for the number of replicas. An evicted pod is still wanted: its owner
would make it anew.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from msgspec.structs import replace

from ksp.core.changes import SetObject
from ksp.model.meta import ObjectMeta
from ksp.model.pod import Pod
from ksp.model.policy import PodDisruptionBudget
from ksp.model.quantity import Quantity

KIND = "podDisruptionBudgets"


def desired_healthy(at_least: Quantity | None, at_most: Quantity | None, pods: int) -> int:
    """How many of so many pods a budget wants that states the one (minAvailable) or the other (maxUnavailable):
    numbers, or parts of a hundred, which the controller rounds up."""
    if at_least is not None:
        return _scaled(at_least, pods)
    return 0 if at_most is None else max(0, pods - _scaled(at_most, pods))


def _scaled(amount: Quantity, pods: int) -> int:
    return -(-int(amount.removesuffix("%")) * pods // 100) if isinstance(amount, str) else int(amount)


@dataclass(slots=True)
class _Counted:
    """A budget, how many pods it selects, and how many of these are healthy. `beside` is what its first status allows
    beyond what is counted here."""

    budget: PodDisruptionBudget
    pods: int = 0
    healthy: int = 0
    beside: int = 0

    def selects(self, pod: ObjectMeta) -> bool:
        selector = self.budget.spec.selector
        within = pod.namespace == self.budget.metadata.namespace
        return within and selector is not None and selector.matcher(pod.labels)

    def add(self, *, healthy: bool) -> None:
        self.pods += 1
        self.healthy += healthy

    def allowed(self) -> int:
        """What is counted here allows so many disruptions; 0 if the budget does not say what it wants."""
        spec = self.budget.spec
        if spec.min_available is None and spec.max_unavailable is None:
            return 0
        return max(0, self.healthy - desired_healthy(spec.min_available, spec.max_unavailable, self.pods))


class DisruptionController:
    """Counts pods. Each method gives the budgets whose status changes by what it is told."""

    def __init__(self, budgets: Iterable[PodDisruptionBudget], running: Mapping[str, Pod]) -> None:
        """The budgets have a status that fits the running pods, which are by uid. What it allows beyond what those
        would allow, or less, is kept: who wrote it may know more."""
        self._counted = [_Counted(each) for each in budgets]
        self._of: dict[str, tuple[bool, list[_Counted]]] = {}
        for uid, pod in running.items():
            self._count(uid, pod, healthy=is_healthy(pod))
        for each in self._counted:
            each.beside = each.budget.status.disruptions_allowed - each.allowed()

    def came(self, uid: str, pod: Pod) -> list[SetObject]:
        """A pod waits for a node."""
        return self._changes(self._count(uid, pod, healthy=False))

    def placed(self, uid: str) -> list[SetObject]:
        """A pod that waited has a node, and runs."""
        return self._changes(self._set(uid, healthy=True))

    def evicted(self, uid: str) -> list[SetObject]:
        """A pod is on its way out, or gone, and is missed."""
        return self._changes(self._set(uid, healthy=False))

    def left(self, uid: str) -> list[SetObject]:
        """A pod has left for good."""
        found = self._set(uid, healthy=False)
        for each in found:
            each.pods -= 1
        self._of.pop(uid, None)
        return self._changes(found)

    def _count(self, uid: str, pod: Pod, *, healthy: bool) -> list[_Counted]:
        found = [each for each in self._counted if each.selects(pod.metadata)]
        if found:
            self._of[uid] = (healthy, found)
        for each in found:
            each.add(healthy=healthy)
        return found

    def _set(self, uid: str, *, healthy: bool) -> list[_Counted]:
        before, found = self._of.get(uid, (healthy, []))
        for each in found:
            each.healthy += healthy - before
        if found:
            self._of[uid] = (healthy, found)
        return found

    def _changes(self, found: Iterable[_Counted]) -> list[SetObject]:
        changes = []
        for each in found:
            changed = with_allowed(each.budget, max(0, each.allowed() + each.beside))
            if changed is not each.budget:
                each.budget = changed
                changes.append(SetObject(KIND, changed.metadata.namespace, changed.metadata.name, changed))
        return changes


def with_allowed(budget: PodDisruptionBudget, allowed: int) -> PodDisruptionBudget:
    """The budget as it is if so many disruptions are allowed."""
    if budget.status.disruptions_allowed == allowed:
        return budget
    return replace(budget, status=replace(budget.status, disruptions_allowed=allowed))


def first_status(budget: PodDisruptionBudget, running: Iterable[Pod]) -> PodDisruptionBudget:
    """The budget with the status that it has beside these pods, if nobody wrote one."""
    counted = _Counted(budget)
    for pod in running:
        if counted.selects(pod.metadata):
            counted.add(healthy=is_healthy(pod))
    return with_allowed(budget, counted.allowed())


def is_healthy(pod: Pod) -> bool:
    """Whether a pod that has a node runs and stays, as far as it says."""
    ready = all(condition.status == "True" for condition in pod.status.conditions if condition.type == "Ready")
    return ready and pod.metadata.deletion_timestamp is None
