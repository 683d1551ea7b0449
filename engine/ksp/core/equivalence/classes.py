"""The equivalence classes of one profile."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from cachetools import LRUCache

from ksp.compile.runtime import Denial
from ksp.core.equivalence.counters import Counters
from ksp.core.equivalence.memo import Memo, Subject
from ksp.core.equivalence.paths import compared, fingerprint_of
from ksp.core.equivalence.predicates import PredicateMemo
from ksp.core.equivalence.present import Present
from ksp.core.equivalence.priorities import PriorityMemo
from ksp.core.equivalence.recall import Recall, remember
from ksp.core.equivalence.totals import Totals
from ksp.core.equivalence.verdicts import Verdicts, reasons_in
from ksp.core.filter import Filtered
from ksp.core.fit_error import fit_error
from ksp.model.info import PodInfo
from ksp.policy.profile import ActivePredicate, ActivePriority, Profile

MOST_SLOTS: Final = 5_000_000  # of all classes together: some 500 MB if all are as different as they can be


@dataclass(frozen=True, slots=True)
class Unfit:
    """Why no node fits the pods of a class, while nothing changes: what is said, and which rules denied nodes."""

    message: str
    denied_by: frozenset[str]
    filtered: Filtered


class PodClass:
    """The pods of which the rules of a profile know nothing different."""

    def __init__(self, present: Present, memos: Sequence[Memo]) -> None:
        self.present = present
        self.priorities = [memo for memo in memos if isinstance(memo, PriorityMemo)]
        self.verdicts = Verdicts(present, [memo for memo in memos if isinstance(memo, PredicateMemo)])
        self.totals = Totals(present, self.verdicts, self.priorities)
        self._unfit: Unfit | None = None
        self._unfit_of: tuple[int, object] = (-1, None)

    def filtered(self) -> Filtered:
        """The verdicts of now, to be looked at later."""
        return self.verdicts.shown(self.present.state.node_list())

    def unfit(self) -> Unfit:
        """What is said if no node is feasible: made once while no verdict changes."""
        nodes = self.present.state.node_list()
        of = self.verdicts.version, nodes
        if self._unfit is None or self._unfit_of[0] != of[0] or self._unfit_of[1] is not nodes:
            reasons, rules = reasons_in(self.verdicts.counts())
            self._unfit = Unfit(fit_error(len(nodes), reasons), rules, self.filtered())
            self._unfit_of = of
        return self._unfit


class Classes:
    """Finds the class of a pod. `most` is how many are kept, fewer if nodes are many; with 0 all are made anew, so that
    nothing is remembered from one decision to the next. Without `columns` rules are asked node by node only.

    `counters` says how often a class was known (hits) or not (misses), and a memo wholly made again (invalidations).
    """

    def __init__(self, profile: Profile, present: Present, *, most: int = 1_000, columns: bool = True) -> None:
        self.present = present
        self.most = most
        self.counters = Counters()
        rules: tuple[ActivePredicate | ActivePriority, ...] = (*profile.predicates, *profile.priorities)
        subjects = [Subject(i, rule, self.counters, columns=columns) for i, rule in enumerate(rules)]
        self._recall = Recall(subjects, present, most)
        self._classes: LRUCache[tuple[Memo, ...], PodClass] = LRUCache(max(1, most))
        self._fingerprint = fingerprint_of(compared(path for rule in rules for path in rule.footprint.pod))
        self._by_fields: dict[bytes, PodClass] = {}

    def size(self) -> dict[str, int]:
        """How many classes and memos are kept."""
        return {"classes": len(self._classes), "memos": len(self._recall)}

    def of(self, pod: PodInfo) -> PodClass:
        """The class of the pod, its verdicts up to date. The present must have followed the state."""
        found, known = self._found(pod)
        self.counters.hits += known
        self.counters.misses += not known
        found.verdicts.refresh()
        return found

    def fits(self, pod: PodInfo) -> bool | None:
        """Whether some node is feasible for the pod; None if a rule fails on one of them."""
        self.present.follow()
        verdicts = self._found(pod)[0].verdicts
        verdicts.refresh()
        if verdicts.before is not None:
            return False if isinstance(verdicts.before.answer, Denial) else None
        return None if verdicts.fails() else verdicts.feasible > 0

    def _found(self, pod: PodInfo) -> tuple[PodClass, bool]:
        """The class of the pod, and whether it was known."""
        if not self.most:
            return self._new(self._recall.of(pod)), False
        if not self._recall.stands():
            self._by_fields.clear()
        fields = self._fingerprint(pod)
        found = self._by_fields.get(fields)
        if found is not None:
            return found, True
        memos = self._recall.of(pod)
        found = self._classes.get(memos)
        known = found is not None
        if found is None:
            found = self._new(memos)
        remember(self._by_fields, fields, found, self.most)
        return found, known

    def _new(self, memos: tuple[Memo, ...]) -> PodClass:
        made = PodClass(self.present, memos)
        if self.most:
            self._classes[memos] = made
            while len(self._classes) * self.present.columns.slots > MOST_SLOTS and len(self._classes) > 1:
                self._classes.popitem()
        return made
