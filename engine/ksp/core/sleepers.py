"""Unschedulable pods, by whom an event may help, and who of them is worth another attempt.

Pods are *alike* if the same rules denied them and rules cannot tell them apart (`kind_of`): whatever happens in the
cluster, an attempt for one ends as an attempt for any other. So it is enough to ask for one of them, and where there
is room for one, to wake one.

After an event all groups whose rules it may help are *owed* a question: does a node take such a pod now? The answers:

- no: the group sleeps on, until the next event that may help it;
- yes: one pod wakes, the one whose backoff ends first. The group is *held* until that pod has been tried, or is gone;
  then it is owed the question again, since there may be room for more. If the pod comes back unschedulable, by the same
  rules, its attempt was the answer: no;
- not known: all wake, as they do where nobody can be asked.

Once a pod wakes that is due, groups of the same or a lower priority are not asked about until it has been tried: what
room there is may be gone by then, and who tries in vain has to back off. The group of the highest priority is asked
about first.

Pods that claim a node by a nomination are not like others: claims of their own do not stand in their way. They wake
with their group, unasked.

Nothing is lost: a group sleeps only while the last answer was no and nothing that may help it happened since. Events
that come faster than they are answered cost one question. `asks` bounds the questions between two attempts; the groups
for which that is too few stay owed.

`help` costs a question of `may_help` for each set of rules; putting a pod in or out is O(1).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Hashable
from dataclasses import dataclass, field
from itertools import islice
from typing import Final, Generic, Protocol, TypeVar

from ksp.model.info import PodInfo

UNKNOWN_CAUSE: Final = "Unknown"

Kind = Hashable
Fits = Callable[[PodInfo], bool | None]
KindOf = Callable[[PodInfo], Kind]

_NAMES: Final = {True: "fits", False: "waits", None: "unknown"}
ANSWERS: Final = tuple(_NAMES.values())

ASKS: Final = 16
"""Questions between two attempts. A question costs about as much as an attempt."""
LOOKED_AT: Final = 8  # pods of a group, for the one whose backoff ends first; groups, for the highest priority


class Sleeper(Protocol):
    """A pod that waits."""

    @property
    def uid(self) -> str: ...

    @property
    def info(self) -> PodInfo: ...

    @property
    def added(self) -> float: ...

    @property
    def unschedulable_by(self) -> frozenset[str]: ...


T = TypeVar("T", bound=Sleeper)


@dataclass(slots=True, eq=False)
class _Group(Generic[T]):
    """Pods that are alike, in the order in which they failed."""

    kind: Kind
    denied: _Denied[T]
    pods: dict[str, T] = field(default_factory=dict)


@dataclass(slots=True, eq=False)
class _Denied(Generic[T]):
    """The groups that the same rules denied, by kind. `cause` is what happened last that may help them."""

    rules: frozenset[str]
    groups: dict[Kind, _Group[T]] = field(default_factory=dict)
    settled: dict[Kind, _Group[T]] = field(default_factory=dict)
    owed: dict[Kind, _Group[T]] = field(default_factory=dict)
    cause: str = UNKNOWN_CAUSE

    def helped(self, cause: str) -> None:
        """All groups that are not held are owed a question. Amortised O(1): each was settled by a question."""
        self.cause = cause
        if not self.owed:
            self.owed, self.settled = self.settled, self.owed
        else:
            self.owed.update(self.settled)
            self.settled.clear()


class Sleepers(Generic[T]):
    """The groups of unschedulable pods. `backoff_end` says of a pod when it may be tried. Without `fits` nobody is
    asked. `answers` counts what came of questions: fits, waits, unknown; `left_waiting` the pods that an event would
    have woken, and an answer did not."""

    def __init__(self, backoff_end: Callable[[T], float]) -> None:
        self.fits: Fits | None = None
        self.kind_of: KindOf = _all_alike
        self.answers: Counter[str] = Counter()
        self.left_waiting = 0
        self._backoff_end = backoff_end
        self._denied: dict[frozenset[str], _Denied[T]] = {}
        self._group_of: dict[str, _Group[T]] = {}
        self._held: dict[str, _Group[T]] = {}
        self._due: dict[str, int] = {}  # the priorities of pods that woke for an answer, and wait to be tried
        self.asks = ASKS
        self._left = ASKS

    def add(self, pod: T) -> None:
        """An attempt found no node for the pod; so none would for those like it."""
        group = self._put(pod)
        if group.denied.owed.pop(group.kind, None) is not None:
            group.denied.settled[group.kind] = group

    def _put(self, pod: T) -> _Group[T]:
        denied = self._denied.get(pod.unschedulable_by)
        if denied is None:
            denied = self._denied[pod.unschedulable_by] = _Denied(pod.unschedulable_by)
        kind = self.kind_of(pod.info)
        group = denied.groups.get(kind)
        if group is None:
            group = denied.groups[kind] = denied.settled[kind] = _Group(kind, denied)
        group.pods[pod.uid] = pod
        self._group_of[pod.uid] = group
        return group

    def discard(self, uid: str) -> None:
        """The pod sleeps no more."""
        group = self._group_of.pop(uid)
        del group.pods[uid]
        if not group.pods:
            self._forget(group)

    def _forget(self, group: _Group[T]) -> None:
        denied = group.denied
        del denied.groups[group.kind]
        denied.owed.pop(group.kind, None)
        denied.settled.pop(group.kind, None)
        if not denied.groups:
            del self._denied[denied.rules]

    def changed(self, pod: T) -> None:
        """The pod has another status, and may be of another kind: then no answer is known of it."""
        if self.kind_of(pod.info) == self._group_of[pod.uid].kind:
            return
        self.discard(pod.uid)
        group = self._put(pod)
        if group.denied.settled.pop(group.kind, None) is not None:
            group.denied.owed[group.kind] = group

    # ---- events

    def help(self, may_help: Callable[[frozenset[str]], bool], cause: str) -> None:
        """Something happened that may help the pods which certain rules denied."""
        for rules, denied in self._denied.items():
            if may_help(rules):
                denied.helped(cause)

    @property
    def owing(self) -> bool:
        """Some group is owed a question, so that a pod of it may be due."""
        return any(denied.owed for denied in self._denied.values())

    def renew(self) -> None:
        """There was an attempt: as many questions may be asked as before."""
        self._left = self.asks

    def tried(self, uid: str) -> None:
        """A pod that was woken is being tried, or is gone: there may be room for more like it."""
        self._due.pop(uid, None)
        group = self._held.pop(uid, None)
        if group is not None and group.pods:
            group.denied.owed[group.kind] = group

    def woken(self, claiming: Collection[str], now: float) -> list[tuple[T, str]]:
        """The pods that are to be tried, with the cause, as far as questions may be asked. `claiming` are the uids of
        nominated pods. The caller takes them out."""
        found: list[tuple[T, str]] = []
        while self._left > 0 and (group := self._first_owed()) is not None:
            priority, _ = _turn(group)
            if priority <= max(self._due.values(), default=priority - 1):
                break
            del group.denied.owed[group.kind]
            chosen = self._chosen(group, claiming)
            found += [(pod, group.denied.cause) for pod in chosen]
            if chosen and self._held.get(chosen[0].uid) is group and self._backoff_end(chosen[0]) <= now:
                self._due[chosen[0].uid] = priority
        return found

    def _first_owed(self) -> _Group[T] | None:
        """The group whose turn it is: of the highest priority, of equal ones the one with the pod that failed first.
        Of many with the same rules only those are looked at that have waited longest."""
        owed = (group for denied in self._denied.values() for group in islice(denied.owed.values(), LOOKED_AT))
        return max(owed, key=_turn, default=None)

    def _chosen(self, group: _Group[T], claiming: Collection[str]) -> list[T]:
        """The pods of a group that are to be tried."""
        group.denied.settled[group.kind] = group
        alike = group.pods.values()
        apart = [pod for uid in claiming if (pod := group.pods.get(uid)) is not None]
        others = islice((pod for pod in alike if pod.uid not in claiming), LOOKED_AT)
        first = min(others, key=self._backoff_end, default=None)
        if self.fits is None or first is None or not group.denied.rules:
            return list(alike)
        self._left -= 1
        answer = self.fits(first.info)
        self.answers[_NAMES[answer]] += 1
        if answer is None:
            return list(alike)
        self.left_waiting += len(alike) - len(apart) - answer
        if answer:
            del group.denied.settled[group.kind]
            self._held[first.uid] = group
            return [first, *apart]
        return apart


def _turn(group: _Group[T]) -> tuple[int, float]:
    first = next(iter(group.pods.values()))
    return first.info.priority, -first.added


def _all_alike(_: PodInfo) -> Kind:
    return None
