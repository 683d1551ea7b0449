"""What one predicate says of every node, for the pods of one key."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ksp.compile.program import BoundPredicate
from ksp.compile.runtime import Denial, Failure
from ksp.core.equivalence.memo import FEW, MEMO, Memo, Subject
from ksp.core.equivalence.present import Present

SPARE: Final = 1_000  # answers beyond one for each node, before those that no node has any more are dropped
ANSWER: Final = 512  # bytes of an answer with its text, roughly

Codes = NDArray[np.int32]


class PredicateMemo(Memo):
    """Verdicts by slot: 0 where the node is admitted, else the index of the answer in `answers`. `codes` is None where
    the rule admits every node. Of a slot without a node it says nothing."""

    def __init__(self, subject: Subject, present: Present) -> None:
        super().__init__(subject, present)
        self.bound: BoundPredicate
        self.outcome: Denial | Failure | None = None  # of `prefilter`
        self.codes: Codes | None = None
        self.answers: list[Denial | Failure | None] = [None]
        self._index: dict[Denial | Failure | None, int] = {None: 0}

    @property
    def bytes(self) -> int:
        return MEMO + ANSWER * len(self.answers) + (0 if self.codes is None else self.codes.nbytes)

    def _set(self, bound: tuple[Any, ...]) -> None:
        self.bound = BoundPredicate(*bound)
        self.outcome = self.bound.outcome

    def _stand(self) -> object:
        bound = self.bound
        return bound.outcome, bound.check is None, bound.column is None, bound.shared

    def _same_everywhere(self) -> bool:
        return self.bound.check is None

    def _code(self, answer: Denial | Failure | None) -> int:
        code = self._index.get(answer)
        if code is None:
            code = self._index[answer] = len(self.answers)
            self.answers.append(answer)
        return code

    def _ask_all(self) -> None:
        slots = self.present.columns.slots
        if len(self.answers) > slots + SPARE:
            self.answers, self._index, self.codes = [None], {None: 0}, None
            self._note_all()
        new = None if self.bound.check is None else self._judged(slots)
        old, self.codes = self.codes, new
        if old is None or new is None or len(old) != len(new):
            if old is not new or not self.end:
                self._note_all()
        else:
            self._compare(np.flatnonzero(old != new))

    def _judged(self, slots: int) -> Codes:
        bound = self.bound
        if bound.column is not None and self.subject.columns:
            return self._translated(bound.column(self.present.columns.rows()))
        assert bound.check is not None
        check, nodes = bound.check, self.present.columns.nodes
        codes = np.zeros(slots, dtype=np.int32)
        for slot in self._alive():
            answer = check(nodes[slot])
            if answer is not None:
                codes[slot] = self._code(answer)
        return codes

    def _translated(self, verdicts: Any) -> Codes:
        """Codes of the memo's own list of answers."""
        own = [self._code(answer) for answer in verdicts.answers]
        if own == list(range(len(own))):
            return np.array(verdicts.codes, dtype=np.int32)
        codes: Codes = np.array(own, dtype=np.int32)[verdicts.codes]
        return codes

    def _ask(self, slots: Sequence[int]) -> None:
        if self.bound.check is None:
            return
        codes = self.codes
        slots_now = self.present.columns.slots
        if codes is None or len(codes) != slots_now or len(self.answers) > slots_now + SPARE:
            self._ask_all()
        elif len(slots) <= FEW or self.bound.column is None or not self.subject.columns:
            self._ask_each(codes, slots)
        else:
            where, rows = self.present.rows(slots)
            new = self._translated(self.bound.column(rows))
            other = codes[where] != new
            where = where[other]
            codes[where] = new[other]
            self._compare(where)

    def _ask_each(self, codes: Codes, slots: Iterable[int]) -> None:
        columns, check = self.present.columns, self.bound.check
        assert check is not None
        other = []
        for slot in slots:
            if columns.alive[slot]:
                code = self._code(check(columns.nodes[slot]))
                if codes[slot] != code:
                    codes[slot] = code
                    other.append(slot)
        if other:
            self._note(other)
