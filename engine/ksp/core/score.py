"""What is said of how good the feasible nodes are."""

from __future__ import annotations

from dataclasses import dataclass, field

from ksp.compile.runtime import Failure
from ksp.policy.profile import ActivePriority


@dataclass(slots=True)
class Scored:
    """`by_plugin` has the scores, 0 to 100, of each priority in the order of the nodes, `total` their weighted sums;
    of priorities with one plugin name it has the last. `error` is why scoring failed, "" if it did not."""

    by_plugin: dict[str, list[int]] = field(default_factory=dict)
    total: list[int] = field(default_factory=list)
    error: str = ""


def prescore_failing(active: ActivePriority, pod: str, failure: Failure) -> str:
    """The error of an attempt that a `prescore` ended."""
    return f'error while running "{active.plugin}" prescore plugin for pod "{pod}": {failure.message}'


def failing(pod: str, failure: Failure) -> str:
    """The error of an attempt in which a score could not be given."""
    return f'error while running score plugin for pod "{pod}": {failure.message}'


def out_of_range(active: ActivePriority, score: int) -> str:
    """The error of an attempt in which a score is none."""
    return f"the priority {active.name} gives a score of {score}, outside of 0 to 100"
