"""Which labels of a pod rules look at, found out by watching them.

Pods of one controller may each have a label of its own, its name or index, and rules that are given labels seldom look
at that one: they hold them against selectors, which name a few keys. So while a rule says what it makes of a pod, it
is given labels that note which of them are asked for. Of a pod that is equal in all else, and in these labels, the rule
makes the same: it is a function of what it reads. If the labels themselves are part of its key, all of them count.

Terms of other pods are held against labels through an index, `Tables.matching`. There it is the answer that counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from ksp.compile.tables import Tables
from ksp.compile.watched import WatchedLabels
from ksp.core.equivalence.memo import Subject
from ksp.model.info import PodInfo

Labels = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Looks:
    """What was looked at: labels by their keys, or all if `whole`; and lists of terms that were held against them. Both
    are sorted."""

    keys: tuple[str, ...] = ()
    whole: bool = False
    lists: tuple[str, ...] = ()

    def __or__(self, other: Looks) -> Looks:
        return Looks(
            tuple(sorted({*self.keys, *other.keys})),
            self.whole or other.whole,
            tuple(sorted({*self.lists, *other.lists})),
        )

    def of(self, pod: PodInfo, tables: Tables) -> tuple[object, ...]:
        """What is seen of a pod."""
        labels = pod.labels
        seen = tuple(sorted(labels.items())) if self.whole else tuple(map(labels.get, self.keys))
        return (seen, *[tables.matching(name, pod) for name in self.lists])


def looks_of(subjects: Iterable[Subject], pod: PodInfo, tables: Tables) -> Looks:
    """What these rules look at of the pod's labels."""
    notes = _Notes()
    labels: Any = WatchedLabels(pod.labels, notes.asked)
    watched = replace(pod, labels=labels, metadata=replace(pod.metadata, labels=labels))
    watching: Any = _WatchedTables(tables, pod, notes)
    for subject in subjects:
        key, _ = subject.run(watched, watching)
        _ENCODER.encode(key)
    return Looks(tuple(sorted(notes.keys)), notes.whole, tuple(sorted(notes.lists)))


def _plain(value: object) -> object:
    """What a key cannot hold as it is. Labels that stand in a key are read later on, nobody knows which."""
    if isinstance(value, WatchedLabels | MappingProxyType):
        return dict(value)
    raise TypeError(f"no key can be made of {type(value)}")


_ENCODER: Final = msgspec.msgpack.Encoder(enc_hook=_plain)


@dataclass(slots=True)
class _Notes:
    keys: set[str] = field(default_factory=set)
    whole: bool = False
    lists: set[str] = field(default_factory=set)

    def asked(self, key: str | None) -> None:
        if key is None:
            self.whole = True
        else:
            self.keys.add(key)


class _WatchedTables:
    """The cluster, as it is; it notes which lists of terms are held against the pod."""

    def __init__(self, tables: Tables, pod: PodInfo, notes: _Notes) -> None:
        self._tables = tables
        self._pod = pod
        self._notes = notes

    def matching(self, name: str, _: PodInfo) -> tuple[int, ...]:
        self._notes.lists.add(name)
        return self._tables.matching(name, self._pod)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._tables, name)
