"""Do two profiles decide the same? Asked of many pods in many clusters: verdicts and reasons for every node, scores of
every plugin, totals, messages, and what is preempted."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any

from ksp.core.cycle import Cycle
from ksp.core.equivalence.present import Present
from ksp.core.filter import Nominated
from ksp.core.state import ClusterState
from ksp.model.info import PodInfo
from ksp.policy.profile import Profile
from ksp.sim.cases import decided
from ksp.sim.dice import FirstFace
from ksp.sim.sample_clusters import Json


@dataclass(slots=True)
class Comparison:
    """How many decisions were compared, and how many of them found a node; how often each predicate's plugin denied a
    node, and each priority's told nodes apart. `difference` is the first there is: a field, and what both say; "" for
    none."""

    decisions: int = 0
    placed: int = 0
    denied: Counter[str] = field(default_factory=Counter)
    told_apart: Counter[str] = field(default_factory=Counter)
    difference: str = ""

    def idle(self, profile: Profile) -> tuple[str, ...]:
        """The rules that changed nothing, of which the comparison says nothing."""
        predicates = (active.name for active in profile.predicates if not self.denied[active.plugin])
        return (*predicates, *(active.name for active in profile.priorities if not self.told_apart[active.plugin]))


def node_by_node(profile: Profile, state: ClusterState, nominated: Nominated, pod: PodInfo) -> Cycle:
    """A cycle that is made for one decision, and asks rules of one node after the other: of a few nodes that is
    faster."""
    return Cycle(profile, Present.of(state), nominated, FirstFace(), equivalence_classes=0, columns=False)


def compared(one: Profile, other: Profile, cases: Iterable[Json]) -> Comparison:
    """Decides every case by both, until they differ."""
    result = Comparison()
    for case in cases:
        first, second = decided(one, case, node_by_node), decided(other, case, node_by_node)
        result.decisions += 1
        result.placed += bool(first.get("feasible"))
        _count(result, first)
        if first != second:
            result.difference = _difference(first, second)
            break
    return result


def said_otherwise(one: Profile, other: Profile) -> str:
    """The first thing that only one of two profiles says, be it of a rule that no sample needs; "" for none."""
    for name in ("scheduler_name", "percentage", "preempts", "checks_all", "candidates"):
        if getattr(one, name) != getattr(other, name):
            return f"{name}: {getattr(one, name)} is not {getattr(other, name)}"
    for first, second in zip_longest(_rules(one), _rules(other)):
        if first != second:
            return f"rules: {first} is not {second}"
    return ""


def _rules(profile: Profile) -> Iterator[tuple[object, ...]]:
    for predicate in profile.predicates:
        yield predicate.name, predicate.plugin, dict(predicate.arguments)
    for priority in profile.priorities:
        yield priority.name, priority.plugin, priority.weight, dict(priority.arguments)


def _count(result: Comparison, answer: dict[str, Any]) -> None:
    result.denied.update(status["plugin"] for status in answer["filters"].values() if status)
    scores = answer.get("scores") or {}
    result.told_apart.update(plugin for plugin, by_node in scores.items() if len(set(by_node.values())) > 1)


def _difference(first: dict[str, Any], second: dict[str, Any]) -> str:
    for name in sorted({**first, **second}):
        if first.get(name) != second.get(name):
            return f"{name}: {_shown(first.get(name))} is not {_shown(second.get(name))}"
    return ""


def _shown(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True)[:500]
