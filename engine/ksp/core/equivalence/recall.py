"""From a pod to the memos of its rules.

What a rule reads of a pod is its key. To compute those of all rules takes a good part of a decision, so pods are
remembered by the raw fields that rules read. Rules are looked up in groups, by which fields they read of those in which
pods of one kind differ (`paths.OWN`): of a pod with a claim of its own, tolerations, requests and the like are known,
and only rules that read volumes are asked what they make of it. Of labels those count that rules looked at
(`labels`).

What is remembered of raw fields stands while the objects are the same that rules find by them, and the terms of other
pods that labels are held against.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final
from weakref import WeakSet

from cachetools import LRUCache

from ksp.compile.tables import encoded
from ksp.core.equivalence.labels import Looks, looks_of
from ksp.core.equivalence.memo import Memo, Subject
from ksp.core.equivalence.paths import compared, fingerprint_of, own_of
from ksp.core.equivalence.predicates import PredicateMemo
from ksp.core.equivalence.present import Present
from ksp.core.equivalence.priorities import PriorityMemo
from ksp.model.info import PodInfo
from ksp.policy.profile import ActivePredicate

Standing = tuple[int, ...]
Memos = tuple[Memo, ...]

# Fields that the terms of other pods are held against; and those that hold the labels, beside `labels`.
MATCHED: Final = frozenset({"labels", "namespace", "metadata", "*"})
HOLDS_LABELS: Final = frozenset({"metadata", "*"})


class Recall:
    """Finds memos by pods. `most` is how many it remembers of each kind of thing, of memos four times as many; with 0
    all memos are new."""

    def __init__(self, subjects: Sequence[Subject], present: Present, most: int) -> None:
        self.present = present
        self.most = most
        self.standing: Standing = ()
        self._memos: LRUCache[tuple[int, bytes], Memo] = LRUCache(max(1, most * 4))
        self._alive: WeakSet[Memo] = WeakSet()  # those that only classes hold, too
        self._groups = [_Group(group, self) for group in _grouped(subjects)]
        self._kinds = sorted({kind for subject in subjects for kind in subject.objects})

    def stands(self) -> bool:
        """Whether pods with equal fields have the keys that they had when this was asked last. If not, what does not
        stand is forgotten."""
        present = self.present
        standing = (present.tables.terms_generation, *map(present.state.generation_of, self._kinds))
        if standing == self.standing:
            return True
        self.standing = standing
        for group in self._groups:
            group.forget()
        return False

    def of(self, pod: PodInfo) -> Memos:
        """The memos of the pod's rules, in the order of the rules, ready to be refreshed. What was remembered must
        stand."""
        found = [memo for group in self._groups for memo in group.memos(pod)]
        found.sort(key=_place)
        return tuple(found)

    def looks(self, pod: PodInfo) -> Looks:
        """Which labels decide about the memos of a pod, if nothing else of it differs, now that these were found."""
        looks = Looks()
        for group in self._groups:
            looks |= group.looks(pod)
        return looks

    def memo(self, subject: Subject, pod: PodInfo) -> Memo:
        """The memo of one rule for the pod."""
        values, at = subject.run(pod, self.present.tables)
        key = subject.place, encoded(values)
        memo = self._memos.get(key)
        if memo is None:
            kind = PredicateMemo if isinstance(subject.active, ActivePredicate) else PriorityMemo
            memo = kind(subject, self.present)
            if self.most:
                self._memos[key] = memo
                self._alive.add(memo)
        memo.take(at)
        return memo

    def keep(self, memos: Collection[Memo]) -> None:
        """Forget all other memos, and which memos a pod has."""
        for key in [key for key, memo in self._memos.items() if memo not in memos]:
            del self._memos[key]
        for group in self._groups:
            group.clear()

    def close(self) -> None:
        """No pod is looked up any more. Without its groups this is in no circle of references."""
        self._memos.clear()
        self._groups.clear()

    @property
    def bytes(self) -> int:
        """What the memos take that anybody holds."""
        return sum(memo.bytes for memo in self._alive)

    def __len__(self) -> int:
        return len(self._memos)


class _Group:
    """Rules that read the same of what pods of one kind differ in."""

    def __init__(self, subjects: Sequence[Subject], recall: Recall) -> None:
        self.subjects = subjects
        self.recall = recall
        fields = frozenset[str]().union(*(compared(s.active.footprint.pod) for s in subjects))
        self._by_looks = by_looks(fields)
        self._fingerprint = fingerprint_of(fields - {"labels"} if self._by_looks else fields)
        self._kinds = tuple(sorted({kind for subject in subjects for kind in subject.objects}))
        self._matched = bool(fields & MATCHED)
        self._standing: Standing = ()
        self._known: dict[bytes, Memos] = {}
        self._looks: dict[bytes, tuple[Looks, dict[tuple[object, ...], Memos]]] = {}
        self._remembered = 0

    def forget(self) -> None:
        """Forget what does not stand any more."""
        present = self.recall.present
        terms = present.tables.terms_generation if self._matched else 0
        standing = (terms, *map(present.state.generation_of, self._kinds))
        if standing != self._standing:
            self._standing = standing
            self.clear()

    def clear(self) -> None:
        """Forget which memos a pod has."""
        self._known.clear()
        self._looks.clear()
        self._remembered = 0

    def memos(self, pod: PodInfo) -> Memos:
        """The memos of these rules for the pod."""
        if not self.recall.most:
            return self._found(pod)
        if self._remembered >= self.recall.most:
            self.clear()
        fields = self._fingerprint(pod)
        if self._by_looks:
            return self._by_labels(pod, fields)
        memos = self._known.get(fields)
        if memos is None:
            memos = self._known[fields] = self._found(pod)
            self._remembered += 1
        return memos

    def looks(self, pod: PodInfo) -> Looks:
        """What these rules look at of the labels of pods like this one, of which memos were found."""
        return self._looks[self._fingerprint(pod)][0] if self._by_looks else Looks()

    def _by_labels(self, pod: PodInfo, fields: bytes) -> Memos:
        tables = self.recall.present.tables
        known = self._looks.get(fields)
        if known is not None:
            memos = known[1].get(known[0].of(pod, tables))
            if memos is not None:
                return memos
        looks = looks_of(self.subjects, pod, tables)
        if known is not None:
            looks |= known[0]
        if known is None or known[0] != looks:
            known = self._looks[fields] = looks, {}
        memos = known[1][known[0].of(pod, tables)] = self._found(pod)
        self._remembered += 1
        return memos

    def _found(self, pod: PodInfo) -> Memos:
        return tuple([self.recall.memo(subject, pod) for subject in self.subjects])


def by_looks(fields: frozenset[str]) -> bool:
    """Of rules that read these fields of pods it can be told which labels they look at."""
    return "labels" in fields and not fields & HOLDS_LABELS


def _place(memo: Memo) -> int:
    return memo.subject.place


def _grouped(subjects: Sequence[Subject]) -> list[list[Subject]]:
    groups: dict[object, list[Subject]] = {}
    for subject in subjects:
        fields = compared(subject.active.footprint.pod)
        groups.setdefault((own_of(fields), subject.objects), []).append(subject)
    return list(groups.values())
