"""Which nodes can take the pods of a class, or else all rules that refuse them: for a profile that asks all rules of
each node (`Profile.checks_all`). One that does not has `Verdicts`, and pays nothing for this."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from ksp.compile.runtime import Denial
from ksp.core.equivalence.predicates import Codes, PredicateMemo
from ksp.core.equivalence.present import Present
from ksp.core.equivalence.verdicts import FEASIBLE, Verdicts, refused_by
from ksp.core.filter import together

Combination = tuple[int, ...]  # of each memo that says anything, its code


class AllVerdicts(Verdicts):
    """The refusals of each node, by slot. Each distinct combination of refusals is one of `refusals`: the first denial,
    with the others."""

    def __init__(self, present: Present, memos: Sequence[PredicateMemo]) -> None:
        super().__init__(present, memos)
        self._combinations: dict[tuple[tuple[int, ...], Combination], int] = {}

    def _of_all(self, slots: int) -> Codes:
        self._combinations.clear()
        judging = [(place, memo.codes) for place, memo in enumerate(self.memos) if memo.codes is not None]
        if not judging:
            return np.zeros(slots, dtype=np.int32)
        places = tuple(place for place, _ in judging)
        distinct, which = np.unique(np.stack([codes for _, codes in judging]), axis=1, return_inverse=True)
        own = [self._combined(places, tuple(combination)) for combination in distinct.T.tolist()]
        return np.array(own, dtype=np.int32)[which.reshape(-1)]

    def _of_one(self, judging: Iterable[tuple[int, Codes]], slot: int) -> int:
        said = [(place, int(codes[slot])) for place, codes in judging]
        return self._combined(tuple(place for place, _ in said), tuple(code for _, code in said))

    def _combined(self, places: tuple[int, ...], combination: Combination) -> int:
        """The index in `refusals` of these rules' answers. A failure hides denials, as in kube-scheduler."""
        known = self._combinations.get((places, combination))
        if known is None:
            known = self._combinations[places, combination] = self._added(zip(places, combination, strict=True))
        return known

    def _added(self, said: Iterable[tuple[int, int]]) -> int:
        denials = []
        for place, code in said:
            memo = self.memos[place]
            answer = memo.answers[code]
            if isinstance(answer, Denial):
                denials.append(refused_by(memo, answer))
            elif answer is not None:
                return self._refusal(place, code)
        refused = together(denials)
        if refused is None:
            return FEASIBLE
        self.refusals.append(refused)
        return len(self.refusals) - 1
