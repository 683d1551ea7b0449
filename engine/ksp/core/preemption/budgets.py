"""Disruption budgets, as far as preemption respects them: it prefers victims that violate none.

A budget covers the pods of its namespace that its selector matches; not those that have no labels, nor those whose
eviction it has counted already (`status.disruptedPods`). A selector that cannot be read covers nothing, and users of
victims are told so. As in kube-scheduler, with one difference: an empty selector covers all pods of the namespace,
which is what policy/v1 says. In v1beta1 it covers none, and such a budget is decoded as one without a selector.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from ksp.core.state import ClusterState
from ksp.model.info import PodInfo
from ksp.model.policy import PodDisruptionBudget

Key = tuple[str, str]  # namespace and name of a budget
Covering = tuple[Key, ...]

KIND: Final = "podDisruptionBudgets"
_NONE: Final[Mapping[str, PodDisruptionBudget]] = {}


class Budgets:
    """The budgets of a state. What they allow changes often, whom they cover seldom: `coverage` grows when the latter
    may have, `version` with each change of what one allows."""

    def __init__(self, state: ClusterState) -> None:
        self.coverage = 0
        self.version = 0
        self._state = state
        self._generation = state.generation_of(KIND)
        self._budgets: Mapping[str, Mapping[str, PodDisruptionBudget]] = state.objects[KIND]
        self._all = self._listed()
        self._changed: dict[Key, int] = {}  # at which version, of those that allow another number by now
        self._known: dict[str, tuple[PodInfo, Covering]] = {}
        self._unreadable = self._without_meaning()

    def __bool__(self) -> bool:
        return bool(self._budgets)

    def follow(self) -> None:
        """Take in what changed."""
        generation = self._state.generation_of(KIND)
        if generation == self._generation:
            return
        self._generation = generation
        before, self._all = self._all, self._listed()
        if before.keys() != self._all.keys() or any(_covers_others(before[key], b) for key, b in self._all.items()):
            self.coverage += 1
            self._known.clear()
            self._changed.clear()
            self._unreadable = self._without_meaning()
            return
        self.version += 1
        for key, budget in self._all.items():
            if budget.status.disruptions_allowed != before[key].status.disruptions_allowed:
                self._changed[key] = self.version

    def stand(self, coverings: Iterable[Covering], version: int) -> bool:
        """Whether these budgets allow what they allowed at that version."""
        if version == self.version:
            return True
        changed = self._changed
        return all(changed.get(key, 0) <= version for covering in coverings for key in covering)

    def _listed(self) -> dict[Key, PodDisruptionBudget]:
        return {(space, name): budget for space, there in self._budgets.items() for name, budget in there.items()}

    def _without_meaning(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for (namespace, name), budget in self._all.items():
            error = "" if budget.spec.selector is None else budget.spec.selector.error
            if error:
                found.setdefault(namespace, []).append(f'poddisruptionbudget "{name}" protects no pod: {error}')
        return found

    def unreadable(self, namespace: str) -> list[str]:
        """What is wrong with budgets of the namespace whose selectors cannot be read: they might have been to protect
        any pod there."""
        return self._unreadable.get(namespace, [])

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
        if len(self._known) > 2 * len(self._state.pods):
            self._known.clear()  # most of them are gone
        self._known[pod.uid] = pod, found
        return found

    def split(self, pods: Iterable[PodInfo]) -> tuple[list[int], list[int]]:
        """The places of the pods whose eviction would violate a budget, and of the others, if they were evicted in this
        order. Each counts against the budgets for those after it, be it spared later or not."""
        left: dict[Key, int] = {}
        violating: list[int] = []
        others: list[int] = []
        for place, pod in enumerate(pods):
            violates = False
            for key in self.covering(pod):
                left[key] = left.get(key, self._allowed(key)) - 1
                violates |= left[key] < 0
            (violating if violates else others).append(place)
        return violating, others

    def _allowed(self, key: Key) -> int:
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


def _covers_others(before: PodDisruptionBudget, now: PodDisruptionBudget) -> bool:
    """Whether the one may cover other pods than the other did."""
    return before is not now and (
        before.spec.selector != now.spec.selector or before.status.disrupted_pods != now.status.disrupted_pods
    )
