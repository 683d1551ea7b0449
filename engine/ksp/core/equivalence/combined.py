"""The normalised scores of one priority, by combinations of parts of nodes and raw scores; see
ksp.compile.columns.combinations. Which node has which combination is followed, so that a pod that comes costs the nodes
that it changed, and one look at each combination that there is."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import numpy as np

from ksp.compile.columns.combinations import Bins, ByCombination
from ksp.compile.node_columns import IntArray, NodeColumns
from ksp.compile.node_values import Groups
from ksp.core.equivalence.priorities import PriorityMemo
from ksp.core.equivalence.verdicts import FEASIBLE, Verdicts

ROOM: Final = 8  # scores above the highest, before all nodes are counted anew
MANY: Final = 64  # nodes that changed, from which on that is cheaper


class Combined:
    """Follows one memo and the verdicts. `codes` are the combinations by slot, the last of all for nodes that are not
    feasible; `times` is how many nodes have each."""

    def __init__(self, memo: PriorityMemo, verdicts: Verdicts, columns: NodeColumns) -> None:
        self.memo = memo
        self.verdicts = verdicts
        self.columns = columns
        self.made_of = (-1, -1)
        self._normal: ByCombination
        self._bins: Bins | None = None
        self._groups: Groups | None = None
        self._codes: IntArray
        self._times: IntArray
        self._seen = (-1, -1)

    @property
    def bytes(self) -> int:
        """What its arrays take."""
        return 0 if self._bins is None else self._codes.nbytes + self._times.nbytes

    def changed(self) -> bool:
        """Whether the scores may be others than when this was asked last."""
        made_of, self.made_of = self.made_of, (self.memo.asked, self.verdicts.version)
        return made_of != self.made_of

    def forget(self) -> None:
        """What was made last is not kept."""
        self.made_of = (-1, -1)

    def scores(self, version: int, feasibility: Iterable[int] | None) -> tuple[IntArray, IntArray] | int | None:
        """The scores of combinations, and the combinations by slot; one number if all get the same, None if there are
        too many combinations. `feasibility` are the slots with other verdicts since these had that version, None if
        they may be any."""
        normal = self.memo.bound.normal
        assert isinstance(normal, ByCombination)
        self._normal = normal
        changed = self._changed(version, feasibility)
        if changed is None or not self._follow(changed):
            self._count()
        self._seen = self.memo.end, self.verdicts.version
        if self._bins is None or self._groups is None:
            return None
        nodes, firsts = self.columns.nodes, self._groups.firsts
        made = normal.of_bins(self._bins, self._times[:-1], lambda group: nodes[firsts[group]])
        return made if isinstance(made, int) else (made, self._codes)

    def _changed(self, version: int, feasibility: Iterable[int] | None) -> set[int] | None:
        """The slots of which the score or the verdict changed; None if it may be any, or are many."""
        end, seen = self._seen
        slots = self.memo.changed_since(end)
        if slots is None or feasibility is None or seen != version or self._bins is None:
            return None
        if self._groups_now() is not self._groups:
            return None
        changed = {*slots, *feasibility}
        return changed if len(changed) <= MANY else None

    def _groups_now(self) -> Groups:
        """The nodes by the parts that are read; without any, all are in one group."""
        parts, known, columns = self._normal.parts, self._groups, self.columns
        if parts:
            return columns.groups(parts)
        if known is not None and len(known.codes) == columns.slots:
            return known
        return Groups(np.zeros(columns.slots, np.int64), columns.order[:1])

    def _follow(self, changed: Iterable[int]) -> bool:
        """False if there is a score for which there is no combination."""
        bins, groups, raw = self._bins, self._groups, self.memo.raw
        assert bins is not None
        assert groups is not None
        assert raw is not None
        feasible, codes, times = self.verdicts.codes, self._codes, self._times
        for slot in changed:
            new = bins.size
            if feasible[slot] == FEASIBLE:
                score = int(raw[slot]) - bins.least
                if not 0 <= score < bins.width:
                    return False
                new = int(groups.codes[slot]) * bins.width + score
            times[codes[slot]] -= 1
            times[new] += 1
            codes[slot] = new
        return True

    def _count(self) -> None:
        """All nodes anew."""
        raw = self.memo.raw
        assert raw is not None
        feasible = self.verdicts.codes == FEASIBLE
        groups = self._groups = self._groups_now()
        if not feasible.any():
            self._bins = None
            return
        bins = self._bins = Bins.of(raw[feasible], groups.count, ROOM)
        if bins is not None:
            self._codes = np.where(feasible, bins.codes(groups.codes, raw), bins.size)
            self._times = np.bincount(self._codes, minlength=bins.size + 1)


def is_combined(memo: PriorityMemo) -> bool:
    """The memo's scores are normalised, and can be so by combinations."""
    return memo.in_columns and memo.raw is not None and isinstance(memo.bound.normal, ByCombination)
