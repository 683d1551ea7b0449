"""Disruption budgets, as far as preemption respects them: it prefers victims that violate none.

A budget covers the pods of its namespace that its selector matches; not those that have no labels, nor those whose
eviction it has counted already (`status.disruptedPods`). A selector that cannot be read covers nothing. As in
kube-scheduler, with one difference: an empty selector covers all pods of the namespace, which is what policy/v1 says.
In v1beta1 it covers none, and such a budget is decoded as one without a selector.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from ksp.model.info import PodInfo
from ksp.model.policy import PodDisruptionBudget

Covering = tuple[tuple[str, str], ...]  # namespaces and names of budgets

MOST: Final = 100_000  # pods whose budgets are remembered
_NONE: Final[Mapping[str, PodDisruptionBudget]] = {}


class Budgets:
    """The budgets by namespace and name, while none of them changes."""

    def __init__(self, budgets: Mapping[str, Mapping[str, PodDisruptionBudget]]) -> None:
        self._budgets = budgets
        self._known: dict[str, tuple[PodInfo, Covering]] = {}

    def __bool__(self) -> bool:
        return bool(self._budgets)

    def covering(self, pod: PodInfo) -> Covering:
        """The budgets that cover the pod."""
        if not self._budgets:
            return ()
        known = self._known.get(pod.uid)
        if known is not None and known[0] is pod:
            return known[1]
        found = tuple(
            (pod.namespace, name)
            for name, budget in self._budgets.get(pod.namespace, _NONE).items()
            if _covers(budget, pod)
        )
        if len(self._known) >= MOST:
            self._known.clear()
        self._known[pod.uid] = pod, found
        return found

    def split(self, pods: Iterable[PodInfo]) -> tuple[list[int], list[int]]:
        """The places of the pods whose eviction would violate a budget, and of the others, if they were evicted in this
        order. Each counts against the budgets for those after it, be it spared later or not."""
        left: dict[tuple[str, str], int] = {}
        violating: list[int] = []
        others: list[int] = []
        for place, pod in enumerate(pods):
            violates = False
            for key in self.covering(pod):
                left[key] = left.get(key, self._allowed(key)) - 1
                violates |= left[key] < 0
            (violating if violates else others).append(place)
        return violating, others

    def _allowed(self, key: tuple[str, str]) -> int:
        namespace, name = key
        return self._budgets[namespace][name].status.disruptions_allowed


def _covers(budget: PodDisruptionBudget, pod: PodInfo) -> bool:
    selector = budget.spec.selector
    return (
        selector is not None
        and bool(pod.labels)
        and pod.name not in budget.status.disrupted_pods
        and selector.matcher(pod.labels)
    )
