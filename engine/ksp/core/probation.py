"""A new policy on probation: does it deny what the one before would have placed?

The generation before rests, and follows the cluster by its journal. For each pod that the new one finds no node for it
is asked whether it would have found one, in the same state: exactly what an attempt would have found, but for
extenders, whose answers count for neither. Each pod counts once, by what was decided for it last, so one that has its
node in the end is not denied. A pod for which neither has a node does not count: however many wait for more nodes,
they do not hide that the new policy denies all others.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final

from ksp.core.cycle import Decision
from ksp.core.generation import Generation
from ksp.core.nominations import Nominations
from ksp.model.info import PodInfo

NOTHING_DENIED: Final[frozenset[str]] = frozenset()


@dataclass(frozen=True, slots=True)
class Terms:
    """Pods count that either policy places. The new one fails if it denies more than that share of them, 0 to 1: so
    none fails with a share of 1. It cannot fail before so many different `pods` counted, and has passed after so many
    `attempts` for such pods, or `seconds`."""

    most_denied: float
    pods: int = 5
    attempts: int = 1_000
    seconds: float = 300.0


class Standing(Enum):
    """How it stands."""

    PENDING = "pending"
    PASSED = "passed"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Verdict:
    """How it stands with the policy: of so many different `pods` that one of the two places it `denied` so many."""

    standing: Standing
    pods: int
    denied: int

    @property
    def ratio(self) -> float:
        return self.denied / self.pods if self.pods else 0.0


class Probation:
    """Holds the generation that decides, `after`, against the one `before`, which may be asked for again."""

    def __init__(
        self, before: Generation, after: Generation, nominations: Nominations, terms: Terms, began: float
    ) -> None:
        self.before = before
        self.after = after
        self.terms = terms
        self._nominations = nominations
        self._ends = began + terms.seconds
        self._attempts = 0
        self._denied: dict[str, bool] = {}

    def starts_at(self, now: float) -> None:
        """Its time runs from now on: before, nobody decided by it, since the scheduler stood by."""
        self._ends = now + self.terms.seconds

    def decided(self, pod: PodInfo, decision: Decision) -> None:
        """An attempt, whose state is still there, has ended so."""
        if self._attempts >= self.terms.attempts:
            return
        denied = not decision.node and self._would_have_found_a_node(pod)
        if not denied and not decision.node:  # neither has a node for it
            self._denied.pop(pod.uid, None)
            return
        self._attempts += 1
        self._denied[pod.uid] = denied

    def verdict(self, now: float) -> Verdict:
        """How it stands by now."""
        pods, denied = len(self._denied), sum(self._denied.values())
        if pods >= self.terms.pods and denied > self.terms.most_denied * pods:
            return Verdict(Standing.FAILED, pods, denied)
        over = self._attempts >= self.terms.attempts or now >= self._ends
        return Verdict(Standing.PASSED if over else Standing.PENDING, pods, denied)

    def _would_have_found_a_node(self, pod: PodInfo) -> bool:
        if not self._rules_admit(self.before, pod):
            return False
        return not self.before.extenders.deciding(pod) or not self._rules_admit(self.after, pod)

    def _rules_admit(self, generation: Generation, pod: PodInfo) -> bool:
        cycle = generation.cycles.get(pod.scheduler_name)
        return cycle is not None and cycle.denied_by(pod, self._nominations) == NOTHING_DENIED
