"""How good the feasible nodes are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from ksp.compile.program import BoundPriority
from ksp.compile.runtime import Failure
from ksp.compile.tables import Tables
from ksp.model.info import NodeInfo, PodInfo
from ksp.policy.profile import ActivePriority, Profile


@dataclass(slots=True)
class Scored:
    """`by_plugin` has the scores, 0 to 100, of each priority in the order of the nodes, `total` their weighted sums;
    of priorities with one plugin name it has the last. `error` is why scoring failed, "" if it did not."""

    by_plugin: dict[str, list[int]] = field(default_factory=dict)
    total: list[int] = field(default_factory=list)
    error: str = ""


def score(profile: Profile, tables: Tables, pod: PodInfo, feasible: Sequence[NodeInfo]) -> Scored:
    """Scores of all nodes by all priorities. Without a priority each node scores 1."""
    result = Scored()
    bound: list[tuple[ActivePriority, BoundPriority]] = []
    for active in profile.priorities:
        priority = active.priority.bind(pod, tables)
        if priority.outcome is not None:
            message = priority.outcome.message
            result.error = f'error while running "{active.plugin}" prescore plugin for pod "{pod.name}": {message}'
            return result
        bound.append((active, priority))
    total = [0 if bound else 1] * len(feasible)
    for active, priority in bound:
        scores = priority.scores(feasible)
        if isinstance(scores, Failure):
            result.error = f'error while running score plugin for pod "{pod.name}": {scores.message}'
            return result
        normal = scores if priority.normalize is None else priority.normalize(feasible, scores)
        outside = next((s for s in normal if not 0 <= s <= 100), None)
        if outside is not None:
            result.error = f"the priority {active.name} gives a score of {outside}, outside of 0 to 100"
            return result
        result.by_plugin[active.plugin] = normal
        total = [t + active.weight * s for t, s in zip(total, normal, strict=True)]
    result.total = total
    return result
