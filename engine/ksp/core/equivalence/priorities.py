"""How one priority scores every node, for the pods of one key."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

import numpy as np

from ksp.compile.node_columns import IntArray
from ksp.compile.program import BoundPriority
from ksp.compile.runtime import Failure, largest, reversed_
from ksp.core.equivalence.memo import FEW, MEMO, Memo, Subject
from ksp.core.equivalence.present import Present
from ksp.policy.profile import ActivePriority

ODD: Final = 512  # bytes of a node of which the rule fails or gives what is no score, roughly

Scores = IntArray


class PriorityMemo(Memo):
    """Scores by slot, before they are normalised: `uniform` if all nodes have the same, else `raw`. `failures` and
    `outside` are the slots where the rule failed, or gave what is no score though it is not normalised. Of rules that
    read which nodes are feasible it keeps nothing: `of_feasible`. `normalised` if the scores are not the last word;
    `normalises_alone` if what is made of them depends on nothing but them; `steady` if, where all are 0, what is made
    of that of a node depends on the node alone."""

    def __init__(self, subject: Subject, present: Present) -> None:
        super().__init__(subject, present)
        self.bound: BoundPriority
        self.uniform: int | None = 0
        self.raw: Scores | None = None
        self.failures: dict[int, Failure] = {}
        self.outside: set[int] = set()
        self.of_feasible = False
        self.normalised = False
        self.normalises_alone = False
        self.in_columns = subject.columns
        self.steady = False
        self._steady_at_zero = isinstance(subject.active, ActivePriority) and subject.active.priority.steady_at_zero

    @property
    def bytes(self) -> int:
        odd = len(self.failures) + len(self.outside)
        return MEMO + ODD * odd + (0 if self.raw is None else self.raw.nbytes)

    def _set(self, bound: tuple[Any, ...]) -> None:
        self.bound = BoundPriority(*bound)
        of_feasible = self.bound.constant is None and self.bound.score is None and self.bound.outcome is None
        self.of_feasible = of_feasible
        self.normalised = of_feasible or self.bound.normalize is not None
        self.normalises_alone = not of_feasible and self.bound.normalize in (None, largest, reversed_)
        self.steady = self._steady_at_zero and not of_feasible  # whose scores are not kept, so not known to be 0

    def _stand(self) -> object:
        bound = self.bound
        return bound.outcome, bound.constant, bound.score is None, bound.column is None, bound.shared

    @property
    def odd(self) -> bool:
        """The attempt may end with an error for what the rule says, be it of a node that is not feasible."""
        return bool(self.failures or self.outside or self.bound.outcome is not None)

    @property
    def edition(self) -> int:
        """Another number whenever `normalize` may make something else of the scores of the same feasible nodes. The
        numbers of either kind are no numbers of the other, as a rule can go from one to the other and back."""
        return self.end if self.normalises_alone else -1 - self.asked

    def _same_everywhere(self) -> bool:
        return self.bound.outcome is not None or (self.bound.constant is not None and self.normalises_alone)

    def _ask_all(self) -> None:
        bound = self.bound
        old_uniform, old = self.uniform, self.raw
        self.failures, self.outside = {}, set()
        if bound.constant is not None or bound.score is None:
            self._store(bound.constant or 0)
        elif bound.column is not None and self.in_columns:
            self._store_column(bound.column(self.present.columns.rows()))
        else:
            self._store(self._scored(bound.score))
        if old is not None and self.raw is not None and len(old) == len(self.raw):
            self._compare(np.flatnonzero(old != self.raw))
        elif old_uniform != self.uniform or old is not self.raw or not self.end:
            self._note_all()

    def _scored(self, score: Callable[[Any], int | Failure]) -> Scores:
        columns = self.present.columns
        raw = np.zeros(columns.slots, dtype=np.int64)
        for slot in self._alive():
            found = score(columns.nodes[slot])
            if isinstance(found, Failure):
                self.failures[slot] = found
            else:
                raw[slot] = found
        return raw

    def _store_column(self, scores: Any) -> None:
        if scores.codes is not None:
            alive = self.present.columns.alive
            for slot in np.flatnonzero((scores.codes != 0) & alive[: len(scores.codes)]).tolist():
                self.failures[slot] = scores.answers[scores.codes[slot]]
        self._store(scores.values if isinstance(scores.values, int) else np.array(scores.values, dtype=np.int64))

    def _store(self, scores: Scores | int) -> None:
        """Keeps the scores of all nodes, as one number if they are all the same."""
        if isinstance(scores, int):
            least = most = scores
        else:
            self._fill(scores)
            least, most = int(scores.min()), int(scores.max())
        if self.bound.normalize is None and (least < 0 or most > 100):
            self.outside.update(slot for slot in self._alive() if not 0 <= _at(scores, slot) <= 100)
        if least == most and not self.failures:
            self.uniform, self.raw = least, None
        else:
            self.uniform, self.raw = None, scores if not isinstance(scores, int) else self._spread(scores)

    def _fill(self, scores: Scores) -> None:
        """Slots without a node get the score of the first, so that they do not make all differ."""
        columns = self.present.columns
        if len(columns.order) < len(scores):
            scores[~columns.alive] = scores[columns.order[0]] if len(columns.order) else 0

    def _spread(self, score: int) -> Scores:
        return np.full(self.present.columns.slots, score, dtype=np.int64)

    def _ask(self, slots: Sequence[int]) -> None:
        bound = self.bound
        if bound.score is None or bound.constant is not None:
            return
        if self.raw is not None and len(self.raw) != self.present.columns.slots:
            self._ask_all()
        elif len(slots) <= FEW or bound.column is None or not self.in_columns:
            self._ask_each(bound.score, slots)
        else:
            self._ask_columns(slots)

    def _ask_each(self, score: Callable[[Any], int | Failure], slots: Iterable[int]) -> None:
        columns = self.present.columns
        for slot in slots:
            if columns.alive[slot]:
                self._put(slot, score(columns.nodes[slot]))
            else:
                self._forget(slot)

    def _forget(self, slot: int) -> None:
        """There is no node any more."""
        self.failures.pop(slot, None)
        self.outside.discard(slot)

    def _ask_columns(self, slots: Sequence[int]) -> None:
        assert self.bound.column is not None
        where, rows = self.present.rows(slots)
        scores = self.bound.column(rows)
        values = scores.values
        plain = scores.codes is None and not self.failures and not self.outside
        if plain and (self.normalised or first_outside(values) is None):
            self._put_all(where, values)
            return
        for slot in set(slots).difference(where.tolist()):
            self._forget(slot)
        for i, slot in enumerate(where.tolist()):
            failed = scores.codes is not None and scores.codes[i]
            value = values if isinstance(values, int) else int(values[i])
            self._put(slot, scores.answers[scores.codes[i]] if failed else value)

    def _put_all(self, where: IntArray, values: Scores | int) -> None:
        """Keeps the scores of some nodes, none of which failed or is none."""
        if self.raw is None:
            assert self.uniform is not None
            if not np.any(values != self.uniform):
                return
            self.raw, self.uniform = self._spread(self.uniform), None
            self._note_all()
        other = where[self.raw[where] != values]
        self.raw[where] = values
        self._compare(other)

    def _put(self, slot: int, found: int | Failure) -> None:
        """Keeps the score of one node."""
        if isinstance(found, Failure):
            self.failures[slot] = found
            found = 0
        elif self.failures:
            self.failures.pop(slot, None)
        if self.bound.normalize is None:
            if not 0 <= found <= 100:
                self.outside.add(slot)
            elif self.outside:
                self.outside.discard(slot)
        if self.raw is None:
            assert self.uniform is not None
            if found == self.uniform and not self.failures:
                return
            self.raw, self.uniform = self._spread(self.uniform), None
            self._note_all()
        if self.raw[slot] != found:
            self.raw[slot] = found
            self._note((slot,))


def first_outside(scores: Scores | int) -> int | None:
    """The first score that is not in 0..100."""
    if isinstance(scores, int):
        return None if 0 <= scores <= 100 else scores
    if not len(scores) or (scores.min() >= 0 and scores.max() <= 100):
        return None
    return int(scores[np.flatnonzero((scores < 0) | (scores > 100))[0]])


def _at(scores: Scores | int, slot: int) -> int:
    return scores if isinstance(scores, int) else int(scores[slot])
