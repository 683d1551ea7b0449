"""Unschedulable pods, by whom an event may help, and who of them is worth another attempt.

Pods are *alike* if the same rules denied them and rules cannot tell them apart (`kind_of`): whatever happens in the
cluster, an attempt for one ends as an attempt for any other. So it is enough to ask for one of them, and where there
is room for one, to wake one. A pod that claims a node is like no other: its claim does not count against itself.

After an event all groups that it may help are *owed* a question: which rules keep such a pod from all nodes now? The
answers:

- some: the group sleeps on, until the next event that may help those rules. They need not be the ones that denied its
  pods: what happened meanwhile may have helped against these and set others against them;
- none: one pod wakes, the one that would be tried first if all woke: of those that have backed off the one that failed
  first, else the one whose backoff ends first. The group is *held* until that pod is tried, or is gone; then it is
  owed the question again, since there may be room for more;
- not known: all wake, as they do where nobody can be asked.

A pod that is tried and comes back unschedulable is an answer, too, for those like it.

Once a pod wakes that is due, groups that would be tried after it are not asked about until it has been tried: what room
there is may be gone by then, and who tries in vain has to back off. Groups are asked about in the order in which their
pods would be tried, the highest priority first; with the second half of the questions those that have waited longest
for theirs, so that nobody waits for ever where events come faster than questions are answered.

Nothing is lost: a group sleeps only while the last answer was no and nothing that may help it happened since. Events
that come faster than they are answered cost one question. `asks` bounds the questions between two attempts, of which
dear ones count for several (`spend`); the groups for which that is too few stay owed.

`help` costs a question of `may_help` for each set of rules, and O(log n) for each group that was answered since the
last; putting a pod in or out is O(log n).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, field
from itertools import count, islice
from typing import Final, Generic, NamedTuple, Protocol, TypeVar

from ksp.core.lazy_heap import LazyHeap
from ksp.model.info import PodInfo

UNKNOWN_CAUSE: Final = "Unknown"

Kind = Hashable
Rules = frozenset[str]
DeniedBy = Callable[[PodInfo], Rules | None]
KindOf = Callable[[PodInfo], Kind]
ClaimOf = Callable[[str], str | None]
Turn = tuple[float, float]  # who is tried first: the highest priority, of these who failed first; smaller is earlier

FITS: Final = "fits"
WAITS: Final = "waits"
UNKNOWN: Final = "unknown"
ANSWERS: Final = (FITS, WAITS, UNKNOWN)

ASKS: Final = 16
"""Questions between two attempts. A question costs about as much as a decision."""
LOOKED_AT: Final = 64


class Sleeper(Protocol):
    """A pod that waits."""

    @property
    def uid(self) -> str: ...

    @property
    def info(self) -> PodInfo: ...

    @property
    def added(self) -> float: ...

    @property
    def unschedulable_by(self) -> Rules: ...


T = TypeVar("T", bound=Sleeper)


class _Alike(NamedTuple):
    """What pods of a group have in common. Of a pod that claims a node, which is the only one of its group, `claim` is
    its uid and the node."""

    rules: Rules
    kind: Kind
    claim: tuple[str, str] | None


@dataclass(slots=True, eq=False)
class _Group(Generic[T]):
    """Pods that are alike, in the order in which they failed."""

    name: str
    alike: _Alike
    denied: _Denied[T]
    pods: dict[str, T] = field(default_factory=dict)
    by_backoff_end: LazyHeap[T] = field(default_factory=LazyHeap)

    def put(self, pod: T, backoff_end: float) -> None:
        self.pods[pod.uid] = pod
        self.by_backoff_end.put(pod.uid, pod, (backoff_end,))

    def discard(self, uid: str) -> None:
        del self.pods[uid]
        self.by_backoff_end.discard(uid)


@dataclass(slots=True, eq=False)
class _Denied(Generic[T]):
    """The groups that the same rules deny, as far as is known, by name; `settled` are those of them that are neither
    owed a question nor held. `cause` is what happened last that may help them."""

    rules: Rules
    groups: dict[str, _Group[T]] = field(default_factory=dict)
    settled: dict[str, _Group[T]] = field(default_factory=dict)
    cause: str = UNKNOWN_CAUSE


class Sleepers(Generic[T]):
    """The groups of unschedulable pods. `backoff_end` says of a pod when it may be tried; it does not change while the
    pod sleeps. `claim_of` says of a uid which node the pod is nominated to.

    `denied_by` says which rules keep a pod from all nodes now, none if a node takes it; None if only an attempt can
    tell, or if the answer would not do for all that are alike. Without it nobody is asked.
    `answers` counts what came of questions: fits, waits, unknown; `left_waiting` the pods that an event would have
    woken, and an answer did not.
    """

    def __init__(self, backoff_end: Callable[[T], float], claim_of: ClaimOf = lambda _: None) -> None:
        self.denied_by: DeniedBy | None = None
        self.kind_of: KindOf = _all_alike
        self.answers: Counter[str] = Counter()
        self.left_waiting = 0
        self.asks = ASKS
        self._left = ASKS
        self._backoff_end = backoff_end
        self._claim_of = claim_of
        self._names = count()
        self._groups: dict[_Alike, _Group[T]] = {}
        self._group_of: dict[str, _Group[T]] = {}
        self._denied: dict[Rules, _Denied[T]] = {}
        self._owed: LazyHeap[_Group[T]] = LazyHeap()  # by turn; and in the order in which they came to be owed
        self._held: dict[str, _Group[T]] = {}  # by the pod that woke for it
        self._due: dict[str, Turn] = {}  # of pods that woke for an answer, and wait to be tried

    # ---- pods

    def add(self, pod: T) -> None:
        """An attempt found no node for the pod; so none would for those like it."""
        self._settle(self._put(pod), pod.unschedulable_by)

    def changed(self, pod: T) -> None:
        """The pod has another status or claim. If rules tell it from others by that, no answer is known of it. What was
        said of a pod stands when it gets a claim; one that has lost its claim may be able to evict others."""
        group = self._group_of[pod.uid]
        alike = self._alike(pod)
        if alike == group.alike:
            return
        better = self.denied_by is not None and group.alike.claim is not None
        stands = alike.kind == group.alike.kind and not better and group.name in group.denied.settled
        rules = group.denied.rules
        self.discard(pod.uid)
        joined = self._put(pod)
        if not stands:
            self._owe(joined)
        elif len(joined.pods) == 1:
            self._settle(joined, rules)

    def discard(self, uid: str) -> None:
        """The pod sleeps no more."""
        group = self._group_of.pop(uid)
        group.discard(uid)
        if not group.pods:
            del self._groups[group.alike]
            self._owed.discard(group.name)
            self._part(group)

    def tried(self, uid: str) -> None:
        """A pod that was woken is being tried, or is gone: there may be room for more like it."""
        self._due.pop(uid, None)
        group = self._held.pop(uid, None)
        if group is not None and group.pods and group.name not in group.denied.settled:
            self._owe(group)

    def _alike(self, pod: T) -> _Alike:
        node = self._claim_of(pod.uid)
        return _Alike(pod.unschedulable_by, self.kind_of(pod.info), None if node is None else (pod.uid, node))

    def _put(self, pod: T) -> _Group[T]:
        alike = self._alike(pod)
        group = self._groups.get(alike)
        if group is None:
            group = self._groups[alike] = _Group(str(next(self._names)), alike, self._by(pod.unschedulable_by))
            group.denied.groups[group.name] = group
        group.put(pod, self._backoff_end(pod))
        self._group_of[pod.uid] = group
        return group

    # ---- groups

    def _by(self, rules: Rules) -> _Denied[T]:
        denied = self._denied.get(rules)
        if denied is None:
            denied = self._denied[rules] = _Denied(rules)
        return denied

    def _part(self, group: _Group[T]) -> None:
        """The group is not among those that its rules deny any more."""
        denied = group.denied
        del denied.groups[group.name]
        denied.settled.pop(group.name, None)
        if not denied.groups:
            del self._denied[denied.rules]

    def _settle(self, group: _Group[T], rules: Rules) -> None:
        """These rules deny the group now; if a pod of it is awake, that does not matter any more."""
        if group.denied.rules != rules:
            self._part(group)
            group.denied = self._by(rules)
            group.denied.groups[group.name] = group
        group.denied.settled[group.name] = group
        self._owed.discard(group.name)

    def _owe(self, group: _Group[T]) -> None:
        group.denied.settled.pop(group.name, None)
        if group.name not in self._owed:
            self._owed.put(group.name, group, _turn(next(iter(group.pods.values()))))

    # ---- events

    def help(self, may_help: Callable[[Rules], bool], cause: str) -> None:
        """Something happened that may help the pods which certain rules denied."""
        for rules, denied in self._denied.items():
            if may_help(rules):
                denied.cause = cause
                for group in list(denied.settled.values()):
                    self._owe(group)

    def spend(self, asks: int) -> None:
        """The question that is being asked costs as much as so many more."""
        self._left -= asks

    @property
    def owing(self) -> bool:
        """Some group is owed a question, so that a pod of it may be due."""
        return len(self._owed) > 0

    def renew(self) -> None:
        """There was an attempt: as many questions may be asked as before."""
        self._left = self.asks

    def woken(self, now: float) -> Iterator[tuple[T, str]]:
        """The pods that are to be tried, with the cause, as far as questions may be asked. The caller takes them out:
        also those that it got before a question raised an error."""
        while self._left > 0 and (group := self._next()) is not None:
            cause = group.denied.cause
            yield from [(pod, cause) for pod in self._chosen(group, now)]

    def _next(self) -> _Group[T] | None:
        """The group that is to be asked about, if none is on its way that would be tried before it."""
        first, before = self._owed.first(), min(self._due.values(), default=None)
        if first is None or (before is not None and first[0] >= before):
            return None
        oldest = next(iter(self._owed))
        by_age = 2 * self._left <= self.asks and (before is None or _turn_of(oldest) < before)
        return oldest if by_age else first[1]

    def _chosen(self, group: _Group[T], now: float) -> list[T]:
        """The pods of a group that are to be tried."""
        rules = group.denied.rules
        self._settle(group, rules)
        if self.denied_by is None or not rules:
            return list(group.pods.values())
        self._left -= 1
        first = self._first(group, now)
        answer = self.denied_by(first.info)
        if answer is None:
            self.answers[UNKNOWN] += 1
            return list(group.pods.values())
        if answer:
            self.answers[WAITS] += 1
            self.left_waiting += len(group.pods)
            self._settle(group, answer)
            return []
        self.answers[FITS] += 1
        self.left_waiting += len(group.pods) - 1
        self._hold(group, first, now)
        return [first]

    def _first(self, group: _Group[T], now: float) -> T:
        """Who would be tried first if all woke. Only a few are looked at for one that failed before the one whose
        backoff ends first, and is ready, too."""
        found = group.by_backoff_end.first()
        assert found is not None
        (end,), soonest = found
        if end > now:
            return soonest
        longest = islice(group.pods.values(), LOOKED_AT)
        return next((pod for pod in longest if self._backoff_end(pod) <= now), soonest)

    def _hold(self, group: _Group[T], pod: T, now: float) -> None:
        """The group is asked about again when the pod has been tried."""
        del group.denied.settled[group.name]
        self._held[pod.uid] = group
        if self._backoff_end(pod) <= now:
            self._due[pod.uid] = _turn(pod)


def _turn(pod: Sleeper) -> Turn:
    return -pod.info.priority, pod.added


def _turn_of(group: _Group[T]) -> Turn:
    return _turn(next(iter(group.pods.values())))


def _all_alike(_: PodInfo) -> Kind:
    return None
