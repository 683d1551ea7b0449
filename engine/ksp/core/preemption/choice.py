"""Which of the nodes on which victims were found.

The best has, in this order: no victims at all; the fewest violations of disruption budgets; the first victim with the
lowest priority; the smallest sum of priorities; the fewest victims; and those of its victims that have the highest
priority started the latest, of each node the earliest of these. What is equal then is left to the dice.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ksp.model.info import PodInfo

Rank = tuple[int, ...]  # smaller is better

# Priorities are ints of 32 bits. With this added each counts, and the sum grows with the number of victims.
LIFT: Final = 2**31
NOT_STARTED: Final = "~"  # after every time


def rank(victims: Sequence[PodInfo], violations: int) -> Rank:
    """All but the times. The victims are in order: those that violate budgets first."""
    if not victims:
        return ()
    return violations, victims[0].priority, sum(pod.priority + LIFT for pod in victims), len(victims)


def started(victim: PodInfo) -> str:
    """When the victim started, as the API writes times; who has not started yet starts now."""
    return victim.status.start_time or NOT_STARTED


def earliest(victims: Sequence[PodInfo]) -> str:
    """When the first of the victims with the highest priority started."""
    highest = max(victim.priority for victim in victims)
    return min(started(victim) for victim in victims if victim.priority == highest)
