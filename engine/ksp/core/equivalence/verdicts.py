"""Which nodes can take the pods of a class, or else which rule refuses them first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from ksp.compile.node_columns import IntArray
from ksp.compile.runtime import Denial, Failure
from ksp.core.equivalence.predicates import Codes, PredicateMemo
from ksp.core.equivalence.present import Present, replaced
from ksp.core.filter import Filtered, Refused
from ksp.model.info import NodeInfo

FEASIBLE: Final = 0
NO_NODE: Final = -1
REFUSAL: Final = 192  # bytes of a refusal, whose answer is the memo's
CHANGED: Final = 64  # bytes of a slot in a set
MANY: Final = 64  # nodes with other verdicts: from here on all are put together anew


class Verdicts:
    """The first refusal of each node, by slot: FEASIBLE, or the index of it in `refusals`, or NO_NODE.

    `refusals` only grows, and is another list after it was begun anew. `version` grows when a node's verdict changes.
    `before` is what a rule decided for all nodes; then the rest is not kept up. `changed` are the slots that changed
    since it was last emptied, None if any may have. `failed` if one of the refusals is a failure, be it of no node any
    more.
    """

    def __init__(self, present: Present, memos: Sequence[PredicateMemo]) -> None:
        self.present = present
        self.memos = memos
        self.before: Refused | None = None
        self.codes = np.empty(0, dtype=np.int32)
        self.refusals: list[Refused | None] = [None]
        self.failed = False
        self.feasible = 0
        self.version = 0
        self.changed: set[int] | None = None
        self._since = -1
        self._seen = [-1] * len(memos)
        self._index: list[dict[int, int]] = [{} for _ in memos]
        self._slots: IntArray | None = None
        self._order: object = None
        self._slots_version = -1
        self._may_deny: tuple[int, frozenset[str]] = (-1, frozenset())

    # ---- following

    def refresh(self) -> None:
        """Bring the verdicts up to date with the present, which has followed the state."""
        generation = self.present.generation
        if self._since == generation:
            return
        self.before = None
        since, self._since = self._since, -1  # unless this comes to its end, next time all is put together anew
        seen = self._seen
        changed: list[int] | None = []
        for place, memo in enumerate(self.memos):
            if memo.since != generation and not memo.fixed:
                memo.refresh()
            if memo.outcome is not None:
                self.before = refused_by(memo, memo.outcome)
                return
            if memo.end != seen[place]:
                slots = memo.changed_since(seen[place])
                changed = None if slots is None or changed is None else [*changed, *slots]
                seen[place] = memo.end
        self._put_together(changed, since)
        self._since = generation

    def _put_together(self, changed: list[int] | None, since: int) -> None:
        delta = self.present.delta(since) if since >= 0 else None
        if delta is None or changed is None or len(changed) > MANY:
            self._all()
            return
        came = replaced(delta)
        if came or changed:
            self._some({*changed, *came})

    def _all(self) -> None:
        columns = self.present.columns
        self.refusals, self.failed = [None], False
        self._index = [{} for _ in self.memos]
        codes = self._of_all(columns.slots)
        codes[~columns.alive[: len(codes)]] = NO_NODE
        self.codes = codes
        self.feasible = int(np.count_nonzero(codes == FEASIBLE))
        self.version += 1
        self.changed = None

    def _of_all(self, slots: int) -> Codes:
        """The verdict on each slot, as if there were a node."""
        codes = np.zeros(slots, dtype=np.int32)
        for place in range(len(self.memos) - 1, -1, -1):
            memo = self.memos[place]
            if memo.codes is not None and memo.codes.any():
                own = np.array([self._refusal(place, code) for code in range(len(memo.answers))], dtype=np.int32)
                codes = np.where(memo.codes, own[memo.codes], codes)
        return codes

    def _some(self, slots: Iterable[int]) -> None:
        columns = self.present.columns
        if len(self.codes) != columns.slots:
            self._all()
            return
        judging = [(place, memo.codes) for place, memo in enumerate(self.memos) if memo.codes is not None]
        for slot in slots:
            new = self._of_one(judging, slot) if columns.alive[slot] else NO_NODE
            old = int(self.codes[slot])
            if new != old:
                self.codes[slot] = new
                self.feasible += (new == FEASIBLE) - (old == FEASIBLE)
                self.version += 1
                if self.changed is not None:
                    self.changed.add(slot)

    def _of_one(self, judging: Iterable[tuple[int, Codes]], slot: int) -> int:
        """The verdict on a slot, from the places and codes of the memos that say anything."""
        for place, codes in judging:
            if code := int(codes[slot]):
                return self._refusal(place, code)
        return FEASIBLE

    def _refusal(self, place: int, code: int) -> int:
        """The index in `refusals` of a rule's answer."""
        known = self._index[place]
        index = known.get(code)
        if index is None:
            memo = self.memos[place]
            answer = memo.answers[code]
            index = known[code] = 0 if answer is None else len(self.refusals)
            if answer is not None:
                self.refusals.append(refused_by(memo, answer))
                self.failed |= isinstance(answer, Failure)
        return index

    # ---- reading

    def refusal(self, node: str) -> Refused | None:
        """What is said of a node; None if it is feasible, or not there."""
        if self.before is not None:
            return self.before
        slot = self.present.columns.slot_of.get(node)
        return None if slot is None else self.refusals[max(int(self.codes[slot]), FEASIBLE)]

    def may_deny(self) -> frozenset[str]:
        """The rules that do not admit every node, whatever others say of it."""
        generation = self.present.generation
        if self._may_deny[0] != generation:
            for memo in self.memos:
                memo.refresh()
            asked = (memo for memo in self.memos if memo.outcome is not None or memo.bound.check is not None)
            self._may_deny = generation, frozenset(memo.subject.active.name for memo in asked)
        return self._may_deny[1]

    @property
    def bytes(self) -> int:
        """What its arrays and refusals take, roughly."""
        slots = self._slots
        own = 0 if slots is None or slots is self.present.columns.order else slots.nbytes
        return self.codes.nbytes + own + REFUSAL * len(self.refusals) + CHANGED * len(self.changed or ())

    def shown(self, nodes: Sequence[NodeInfo]) -> Filtered:
        """The verdicts of now on the nodes of the list, to be looked at later."""
        judged = Judged(nodes, self.present.columns.order, self.codes.copy(), self.refusals)
        return Filtered(examined=len(nodes), judged=judged)

    def slots(self) -> IntArray:
        """The slots of the feasible nodes, in the order of the nodes."""
        order = self.present.columns.order
        if self._slots is None or self._slots_version != self.version or self._order is not order:
            if self.feasible == len(order):
                self._slots = order  # by which columns know that they are asked for all nodes
            elif self.present.columns.in_order:
                self._slots = np.flatnonzero(self.codes == FEASIBLE)
            else:
                self._slots = order[self.codes[order] == FEASIBLE]
            self._slots_version, self._order = self.version, order
        return self._slots

    def counts(self) -> list[tuple[Refused, int]]:
        """How many nodes each refusal is for."""
        return counted(self.codes, self.refusals)

    def overridden(self, judged: Mapping[str, Refused | None]) -> tuple[Codes, list[Refused | None]]:
        """Codes and refusals where these nodes, by name, are refused, whatever was said of them."""
        codes, refusals = self.codes.copy(), list(self.refusals)
        slot_of = self.present.columns.slot_of
        for name, refused in judged.items():
            if refused is not None:
                codes[slot_of[name]] = len(refusals)
                refusals.append(refused)
        return codes, refusals

    def fails(self) -> bool:
        """A rule fails on some node."""
        return self.failed and fails(self.counts())


@dataclass(frozen=True, slots=True)
class Judged:
    """Verdicts as they were once: by the slots that the nodes had then. None of it is changed by others, as refusals
    are only added."""

    nodes: Sequence[NodeInfo]
    slots: IntArray
    codes: Codes
    refusals: Sequence[Refused | None]

    def __call__(self) -> list[tuple[NodeInfo, Refused | None]]:
        codes = self.codes[self.slots].tolist()
        return [(node, self.refusals[code]) for node, code in zip(self.nodes, codes, strict=True)]


def counted(codes: Codes, refusals: Sequence[Refused | None]) -> list[tuple[Refused, int]]:
    """How often each refusal is among the codes."""
    numbers = np.bincount(codes[codes > FEASIBLE], minlength=len(refusals)).tolist()
    return [(refused, n) for refused, n in zip(refusals, numbers, strict=True) if refused is not None and n]


def fails(counts: Iterable[tuple[Refused, int]]) -> bool:
    """One of the refusals is a failure."""
    return any(isinstance(refused.answer, Failure) for refused, _ in counts)


def reasons_in(counts: Iterable[tuple[Refused, int]]) -> tuple[Counter[str], frozenset[str]]:
    """How often each reason was given, and which rules denied."""
    reasons: Counter[str] = Counter()
    rules = set()
    for refused, n in counts:
        for each in refused.each():
            if isinstance(each.answer, Denial):
                rules.add(each.rule)
                for reason in each.answer.reasons:
                    reasons[reason] += n
    return reasons, frozenset(rules)


def refused_by(memo: PredicateMemo, answer: Denial | Failure) -> Refused:
    """What a rule says of nodes."""
    active = memo.subject.active
    return Refused(active.name, active.plugin, answer)
