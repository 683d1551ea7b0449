"""The weighted sums of the scores of all nodes for the pods of a class, kept up to date."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np

from ksp.compile.node_columns import BoolArray, IntArray
from ksp.compile.runtime import Failure
from ksp.core.equivalence.combined import Combined, is_combined
from ksp.core.equivalence.memo import FEW
from ksp.core.equivalence.present import Present
from ksp.core.equivalence.priorities import PriorityMemo, Scores, first_outside
from ksp.core.equivalence.scores import Feasible, normalized
from ksp.core.equivalence.verdicts import FEASIBLE, MANY, Verdicts
from ksp.policy.profile import ActivePriority
from ksp.ports import Dice

NARROW: Final = 256  # elements of a mask that are listed
LOWEST: Final = -(2**62)  # of a node that is not feasible


class Totals:
    """What the nodes that `verdicts` calls feasible score, up to a number that is the same for all of them.

    Scores that stand as they are given are summed by slot, and follow the nodes that got another. Those that are
    normalised are made again when one of them changed, or which nodes are feasible.
    """

    def __init__(self, present: Present, verdicts: Verdicts, memos: Sequence[PriorityMemo]) -> None:
        self.present = present
        self.verdicts = verdicts
        self.memos = memos
        self._weights = [_weight(memo) for memo in memos]
        self._plain = np.empty(0, dtype=np.int64)
        self._seen = [-1] * len(memos)
        # Of each priority that is normalised, unless all its scores are the same: its scores by slot, weighted.
        self._normal: dict[int, Scores] = {}
        self._normal_of: dict[int, tuple[int, IntArray | None]] = {}
        self._combined = [Combined(memo, verdicts, present.columns) for memo in memos]
        self._version = -1

    @property
    def bytes(self) -> int:
        """What its arrays take."""
        kept = [*self._normal.values(), *(slots for _, slots in self._normal_of.values() if slots is not None)]
        own = {id(array): array.nbytes for array in kept if array is not self.present.columns.order}
        return self._plain.nbytes + sum(own.values()) + sum(combined.bytes for combined in self._combined)

    @property
    def stale(self) -> bool:
        """The sums were never made."""
        return self._version < 0

    def refresh(self) -> bool:
        """Bring the sums up to date. False if a rule fails on some node, or gives what is no score: then the nodes have
        to be looked at in order."""
        self.refresh_memos()
        changed = feasibility = self.verdicts.changed
        version, self._version = self._version, self.verdicts.version
        seen = self._seen
        normalised = []
        for place, memo in enumerate(self.memos):
            if memo.odd:
                return False
            if memo.normalised:
                normalised.append(place)
            elif place in self._normal:
                del self._normal[place], self._normal_of[place]
            if memo.end != seen[place]:
                slots = () if memo.normalised else memo.changed_since(seen[place])
                changed = None if slots is None or changed is None else {*changed, *slots}
        if changed is None or changed:
            self._sum(changed)
        for place, memo in enumerate(self.memos):
            seen[place] = memo.end
        return all(self._normalise(place, version, feasibility) for place in normalised)

    def refresh_memos(self) -> None:
        """Bring what the rules said up to date."""
        generation = self.present.generation
        for memo in self.memos:
            if memo.since != generation and not memo.fixed:
                memo.refresh()

    def best(self, dice: Dice) -> int:
        """The slot of the node with the highest sum; one of those that tie, each as likely as the others."""
        sums = self._plain
        for values in self._normal.values():
            sums = sums + values
        columns = self.present.columns
        first = int(sums.argmax())  # faster than max
        highest = sums == sums[first]
        ties = int(np.count_nonzero(highest))
        if ties == 1:
            return first
        chosen = dice.below(ties)
        if columns.in_order:
            return nth(highest, chosen)
        return int(columns.order[nth(highest[columns.order], chosen)])

    # ---- scores as they are given

    def _sum(self, changed: set[int] | None) -> None:
        arrays = [
            (memo.raw, weight)
            for memo, weight in zip(self.memos, self._weights, strict=True)
            if memo.raw is not None and not memo.normalised
        ]
        codes = self.verdicts.codes
        if changed is None or len(changed) > MANY or len(self._plain) != len(codes):
            sums = np.zeros(len(codes), dtype=np.int64)
            for raw, weight in arrays:
                sums += raw if weight == 1 else raw * weight
            sums[codes != FEASIBLE] = LOWEST
            self._plain = sums
        elif len(changed) > FEW:
            slots = np.array(list(changed), dtype=np.int64)
            sums = np.zeros(len(slots), dtype=np.int64)
            for raw, weight in arrays:
                sums += raw[slots] * weight
            sums[codes[slots] != FEASIBLE] = LOWEST
            self._plain[slots] = sums
        else:
            self._sum_of(changed, arrays)
        self.verdicts.changed = set()

    def _sum_of(self, slots: Iterable[int], arrays: Sequence[tuple[Scores, int]]) -> None:
        codes = self.verdicts.codes
        for slot in slots:
            if codes[slot] != FEASIBLE:
                self._plain[slot] = LOWEST
            else:
                self._plain[slot] = sum([weight * int(raw[slot]) for raw, weight in arrays])

    # ---- normalised scores

    def _normalise(self, place: int, version: int, feasibility: Iterable[int] | None) -> bool:
        """Makes the scores of one priority again, if need be; whether it gave scores. Those of a priority that is
        steady are made for all nodes at once, as they do not depend on which are feasible. `feasibility` is what
        changed of verdicts since they had that version."""
        memo = self.memos[place]
        if is_combined(memo):
            made = self._by_combination(place, version, feasibility)
            if made is not None:
                return made
        steady = memo.steady and memo.uniform == 0
        slots = self.present.columns.order if steady else self.verdicts.slots()
        made_of = memo.edition, None if steady else slots
        known = self._normal_of.get(place)
        if known is not None and known[0] == made_of[0] and known[1] is made_of[1]:
            return True
        self._normal_of.pop(place, None)
        self._normal.pop(place, None)
        feasible = Feasible(self.present.columns, slots)
        scores = normalized(memo, feasible)
        if isinstance(scores, Failure):
            return False
        least, most = (scores, scores) if isinstance(scores, int) else (int(scores.min()), int(scores.max()))
        if least < 0 or most > 100:
            return False
        if least < most and not isinstance(scores, int):
            self._normal[place] = self._by_slot(scores, place, feasible)
        self._normal_of[place] = made_of
        return True

    def _by_combination(self, place: int, version: int, feasibility: Iterable[int] | None) -> bool | None:
        """The same, of scores that are normalised by combinations; None if these are too many."""
        combined = self._combined[place]
        if not combined.changed():
            return True
        found = combined.scores(version, feasibility)
        self._normal.pop(place, None)
        self._normal_of.pop(place, None)
        if found is None:
            combined.forget()
            return None
        scores = found if isinstance(found, int) else found[0]
        if first_outside(scores) is not None:
            combined.forget()
            return False
        if not isinstance(found, int):
            self._normal[place] = (found[0] * self._weights[place]).take(found[1])
            self._normal_of[place] = -1, None
        return True

    def _by_slot(self, scores: Scores, place: int, feasible: Feasible) -> Scores:
        by_slot = np.zeros(len(self._plain), dtype=np.int64)
        by_slot[feasible.slots] = scores * self._weights[place]
        return by_slot


def _weight(memo: PriorityMemo) -> int:
    active = memo.subject.active
    assert isinstance(active, ActivePriority)
    return active.weight


def nth(mask: BoolArray, n: int) -> int:
    """The place of the n-th that is true, from 0; there must be so many. Faster than to list all of them."""
    low, high = 0, len(mask)
    while high - low > NARROW:
        middle = (low + high) // 2
        before = int(np.count_nonzero(mask[low:middle]))
        if n < before:
            high = middle
        else:
            n -= before
            low = middle
    return low + int(mask[low:high].nonzero()[0][n])
