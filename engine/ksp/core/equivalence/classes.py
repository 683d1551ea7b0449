"""The equivalence classes of one profile."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final
from weakref import WeakSet

from cachetools import LRUCache

from ksp.compile.runtime import Denial
from ksp.core.equivalence.all_verdicts import AllVerdicts
from ksp.core.equivalence.counters import Counters
from ksp.core.equivalence.labels import Looks
from ksp.core.equivalence.memo import Memo, Subject
from ksp.core.equivalence.paths import compared, fingerprint_of
from ksp.core.equivalence.predicates import PredicateMemo
from ksp.core.equivalence.present import Present
from ksp.core.equivalence.priorities import PriorityMemo
from ksp.core.equivalence.recall import Recall, by_looks
from ksp.core.equivalence.totals import Totals
from ksp.core.equivalence.verdicts import Verdicts, reasons_in
from ksp.core.filter import Filtered
from ksp.core.fit_error import fit_error
from ksp.model.info import PodInfo
from ksp.policy.profile import ActivePredicate, ActivePriority, Profile

MOST_BYTES: Final = 256 * 2**20  # of the classes and memos of a profile
MEASURED: Final = 16  # new classes, after which it is seen whether they still take no more than that
CLASS: Final = 16_384  # bytes of a class without its arrays


@dataclass(frozen=True, slots=True)
class Unfit:
    """Why no node fits the pods of a class, while nothing changes: what is said, and which rules denied nodes."""

    message: str
    denied_by: frozenset[str]


class PodClass:
    """The pods of which the rules of a profile know nothing different."""

    def __init__(self, present: Present, memos: Sequence[Memo], *, checks_all: bool = False) -> None:
        self.present = present
        verdicts = AllVerdicts if checks_all else Verdicts
        self.priorities = [memo for memo in memos if isinstance(memo, PriorityMemo)]
        self.verdicts = verdicts(present, [memo for memo in memos if isinstance(memo, PredicateMemo)])
        self.totals = Totals(present, self.verdicts, self.priorities)
        self._unfit: Unfit | None = None
        self._unfit_of: tuple[int, object] = (-1, None)

    @property
    def bytes(self) -> int:
        """What it takes beside its memos."""
        return CLASS + self.verdicts.bytes + self.totals.bytes

    def filtered(self) -> Filtered:
        """The verdicts of now, to be looked at later."""
        return self.verdicts.shown(self.present.state.node_list())

    def unfit(self) -> Unfit:
        """What is said if no node is feasible: made once while no verdict changes."""
        nodes = self.present.state.node_list()
        of = self.verdicts.version, nodes
        if self._unfit is None or self._unfit_of[0] != of[0] or self._unfit_of[1] is not nodes:
            reasons, rules = reasons_in(self.verdicts.counts())
            self._unfit = Unfit(fit_error(len(nodes), reasons), rules)
            self._unfit_of = of
        return self._unfit


NO_CLASSES: Final[dict[tuple[object, ...], PodClass]] = {}  # of a kind of pods of which nothing is known
UNKNOWN: Final = Looks(), NO_CLASSES


class Classes:
    """Finds the class of a pod. `most` is how many are kept, fewer if nodes are many: once all together take more than
    `most_bytes`, the least recently used give way, until it is three quarters of that. With `most` 0 all are made anew,
    so that nothing is remembered from one decision to the next. Without `columns` rules are asked node by node only.

    `counters` says how often a class was known (hits) or not (misses), and a memo wholly made again (invalidations).
    """

    def __init__(
        self, profile: Profile, present: Present, *, most: int = 1_000, most_bytes: int = MOST_BYTES,
        columns: bool = True,
    ) -> None:  # fmt: skip
        self.present = present
        self.most = most
        self.most_bytes = most_bytes
        self._checks_all = profile.checks_all
        self.counters = Counters()
        rules: tuple[ActivePredicate | ActivePriority, ...] = (*profile.predicates, *profile.priorities)
        subjects = [Subject(i, rule, self.counters, columns=columns) for i, rule in enumerate(rules)]
        self._recall = Recall(subjects, present, most)
        self._classes: LRUCache[tuple[Memo, ...], PodClass] = LRUCache(max(1, most))
        fields = compared(path for rule in rules for path in rule.footprint.pod)
        self._by_looks = by_looks(fields)
        self._fingerprint = fingerprint_of(fields - {"labels"} if self._by_looks else fields)
        # By the other fields: the labels that are looked at, and by what these are the class.
        self._known: dict[bytes, tuple[Looks, dict[tuple[object, ...], PodClass]]] = {}
        self._remembered = 0
        self._alive: WeakSet[PodClass] = WeakSet()  # those that only `_known` holds, too
        self._unmeasured = 0
        self._slots = 0
        self._last: tuple[PodInfo, int, PodClass] | None = None

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

    def looked_up(self, pod: PodInfo) -> PodClass:
        """The class of the pod, its verdicts up to date, where no decision is made: this is not counted. To ask for it
        several times while nothing changes costs no more than once."""
        generation = self.present.follow()
        last = self._last
        if last is not None and last[0] is pod and last[1] == generation:
            return last[2]
        found = self._found(pod)[0]
        found.verdicts.refresh()
        self._last = pod, generation, found
        return found

    def prepared(self, pod: PodInfo) -> Iterator[None]:
        """Make the class of the pod before it is asked for, rule by rule, each of which takes a while. Things may
        change whenever this gives way."""
        if not self.most:
            return
        self._recall_stands()
        for memo in self._recall.of(pod):
            if memo.since < 0:
                self.present.follow()
                memo.refresh()
                yield
        if self._lacks_totals(self.looked_up(pod)):
            yield
            found = self.looked_up(pod)
            if self._lacks_totals(found):
                found.totals.refresh()
            yield

    @staticmethod
    def _lacks_totals(found: PodClass) -> bool:
        """There is a choice between nodes, and the sums by which it is made were never made."""
        verdicts = found.verdicts
        return verdicts.before is None and not verdicts.failed and verdicts.feasible > 1 and found.totals.stale

    def close(self) -> None:
        """No pod is looked up any more: all is given back at once."""
        self._forget_pods()
        self._classes.clear()
        self._last = None
        self._recall.close()

    def limit(self, most_bytes: int) -> None:
        """Take no more than that from now on."""
        self.most_bytes = most_bytes
        self._make_room()

    def denied_by(self, pod: PodInfo) -> frozenset[str] | None:
        """The rules that keep the pod from all nodes, none if some node is feasible; None if a rule fails on a node."""
        found = self.looked_up(pod)
        verdicts = found.verdicts
        if verdicts.before is not None:
            return frozenset({verdicts.before.rule}) if isinstance(verdicts.before.answer, Denial) else None
        if verdicts.fails():
            return None
        return frozenset() if verdicts.feasible else found.unfit().denied_by

    def _found(self, pod: PodInfo) -> tuple[PodClass, bool]:
        """The class of the pod, and whether it was known."""
        if not self.most:
            return self._new(self._recall.of(pod)), False
        if self._unmeasured >= MEASURED or self._slots != self.present.columns.slots:
            self._make_room()
        self._recall_stands()
        fields = self._fingerprint(pod)
        tables = self.present.tables
        looks, by_labels = self._known.get(fields, UNKNOWN)
        found = by_labels.get(looks.of(pod, tables))
        if found is not None:
            return found, True
        memos = self._recall.of(pod)
        found = self._classes.get(memos)
        known = found is not None
        if found is None:
            found = self._new(memos)
        now = self._recall.looks(pod) if self._by_looks else looks
        if by_labels is NO_CLASSES or now != looks:
            looks, by_labels = self._known[fields] = now, {}
        by_labels[looks.of(pod, tables)] = found
        self._remembered += 1
        return found, known

    def _recall_stands(self) -> None:
        """What is remembered of pods stands from here on, while nothing changes."""
        if not self._recall.stands() or self._remembered >= self.most:
            self._forget_pods()

    def _new(self, memos: tuple[Memo, ...]) -> PodClass:
        made = PodClass(self.present, memos, checks_all=self._checks_all)
        if self.most:
            self._classes[memos] = made
            self._alive.add(made)
            self._unmeasured += 1
        return made

    # ---- memory

    @property
    def bytes(self) -> int:
        """What classes and memos take now, without views and the texts of refusals."""
        return sum(each.bytes for each in self._alive) + self._recall.bytes

    def _forget_pods(self) -> None:
        """Which class a pod has is to be found by its memos again."""
        self._known.clear()
        self._remembered = 0

    def _make_room(self) -> None:
        self._unmeasured, self._slots = 0, self.present.columns.slots
        if self.bytes <= self.most_bytes:
            return
        self._forget_pods()
        while True:
            self._recall.keep({memo for memos in self._classes for memo in memos})
            if not self._classes or self.bytes <= self.most_bytes * 3 // 4:
                return
            for _ in range(1 + len(self._classes) // 8):
                self._classes.popitem()
