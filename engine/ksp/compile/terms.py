"""The affinity terms of running pods, by what they are about.

Many pods have equal terms. Each distinct term of a list has an id, which is never used for another; a term that went
and comes again soon gets its own back. Which terms match a pod is found through an index by namespace and one label
that the term asks for, so it costs what the pod's labels find and not the number of terms.
`Terms` follows the journal of the cluster's state.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from typing import Any, Final, Protocol

import msgspec

from ksp.compile.narrow import wanted_labels
from ksp.model.affinity import AffinityTerm, affinity_term_matches
from ksp.model.info import PodInfo

FIELDS: Final = ("required_affinity", "required_anti_affinity", "preferred_affinity", "preferred_anti_affinity")
FEW: Final = 16  # ids that are looked through one by one
REMEMBERED: Final = 4_096  # terms of each list that went, and may come again

Ids = tuple[int, ...]
_NO_PODS: Final[Mapping[str, PodInfo]] = {}
_NO_TERMS: Final[Mapping[int, AffinityTerm]] = {}
_ENCODER = msgspec.msgpack.Encoder(order="deterministic")


class Change(Protocol):
    """A line of the journal; `key` of a pod is its uid."""

    @property
    def kind(self) -> str: ...
    @property
    def key(self) -> Any: ...


class State(Protocol):
    """What is needed of the cluster's state."""

    @property
    def generation(self) -> int: ...
    @property
    def pods(self) -> Mapping[str, PodInfo]: ...
    def changes_since(self, generation: int) -> Sequence[Change] | None: ...
    def generation_of(self, kind: str) -> int: ...
    def pods_with(self, field: str) -> Mapping[str, PodInfo]: ...


class TermList:
    """The distinct terms that the visible pods have in one list, such as `required_anti_affinity`."""

    def __init__(self, field: str, ids: Iterator[int]) -> None:
        self.field = field
        self._new_ids = ids
        self._id_of: dict[bytes, int] = {}
        self._gone: dict[bytes, int] = {}
        self._terms: dict[int, bytes] = {}
        self._holders: dict[int, dict[str, PodInfo]] = {}
        self._of_pod: dict[str, Ids] = {}
        # Where a term is looked for: under (namespace, key, value) of one label, or (namespace,) if it asks for none.
        self._places: dict[int, list[tuple[str, ...]]] = {}
        self._by_place: dict[tuple[str, ...], dict[int, AffinityTerm]] = {}

    # ---- following pods

    def put(self, pod: PodInfo) -> bool:
        """The pod is there, or another of its uid was; whether a distinct term came or went."""
        came = False
        terms = getattr(pod, self.field)
        if not terms and pod.uid not in self._of_pod:
            return False
        ids = []
        for term in terms:
            key = _ENCODER.encode(term)
            if key not in self._id_of:
                self._add(key, term)
                came = True
            ids.append(self._id_of[key])
        old = self._of_pod.pop(pod.uid, ())
        if ids:
            self._of_pod[pod.uid] = tuple(ids)
        for i in ids:
            self._holders[i][pod.uid] = pod
        return self._left(pod.uid, {*old}.difference(ids)) or came

    def drop(self, uid: str) -> bool:
        """The pod is gone; whether a term went with it."""
        return self._left(uid, {*self._of_pod.pop(uid, ())})

    def _left(self, uid: str, ids: set[int]) -> bool:
        gone = False
        for i in ids:
            holders = self._holders[i]
            del holders[uid]
            if not holders:
                self._remove(i)
                gone = True
        return gone

    def _add(self, key: bytes, term: AffinityTerm) -> None:
        i = self._gone.pop(key, 0) or next(self._new_ids)
        self._id_of[key] = i
        self._terms[i] = key
        self._holders[i] = {}
        self._places[i] = self._choose(term)
        for place in self._places[i]:
            self._by_place.setdefault(place, {})[i] = term

    def _remove(self, i: int) -> None:
        key = self._terms.pop(i)
        del self._id_of[key], self._holders[i]
        self._gone[key] = i
        if len(self._gone) > REMEMBERED:
            del self._gone[next(iter(self._gone))]
        for place in self._places.pop(i):
            del self._by_place[place][i]
            if not self._by_place[place]:
                del self._by_place[place]

    def _choose(self, term: AffinityTerm) -> list[tuple[str, ...]]:
        """Under which label the term is looked for: one that few others are looked for under."""
        wanted = wanted_labels(term.selector)
        if wanted is None:
            return []
        namespaces = dict.fromkeys(term.namespaces)
        choices: list[list[tuple[str, ...]]] = [
            [(n, key, value) for n in namespaces for value in dict.fromkeys(values)] for key, values in wanted
        ]
        return min(choices, key=self._crowd) if choices else [(n,) for n in namespaces]

    def _crowd(self, places: Sequence[tuple[str, ...]]) -> int:
        return sum(len(self._by_place.get(place, _NO_TERMS)) for place in places)

    # ---- asking

    def matching(self, pod: PodInfo) -> Ids:
        """The ids of the terms that are about the pod, sorted."""
        if not self._terms:
            return ()
        namespace, by_place = pod.namespace, self._by_place
        found = [i for i, term in by_place.get((namespace,), _NO_TERMS).items() if affinity_term_matches(term, pod)]
        for key, value in pod.labels.items():
            there = by_place.get((namespace, key, value))
            if there is not None:
                found += [i for i, term in there.items() if affinity_term_matches(term, pod)]
        return tuple(sorted(found))

    def among(self, pod: PodInfo, ids: Ids) -> Sequence[AffinityTerm]:
        """Those of a visible pod's terms that have one of these ids."""
        mine = self._of_pod.get(pod.uid, ())
        terms: tuple[AffinityTerm, ...] = getattr(pod, self.field)
        if len(mine) == 1:
            return terms if _is_among(mine[0], ids) else ()
        return [term for i, term in zip(mine, terms, strict=True) if _is_among(i, ids)]

    def holders(self, ids: Ids) -> Mapping[str, PodInfo]:
        """The pods that have one of these terms, by uid."""
        if len(ids) == 1:
            return self._holders.get(ids[0], _NO_PODS)
        found: dict[str, PodInfo] = {}
        for i in ids:
            found.update(self._holders.get(i, _NO_PODS))
        return found


class Terms:
    """All lists of terms of the visible pods of one state."""

    def __init__(self, state: State) -> None:
        self.state = state
        self._generation = 0
        self._followed = -1
        ids = count(1)
        self._lists = {field: TermList(field, ids) for field in FIELDS}
        self._known: dict[str, PodInfo] = {}  # pods that have a term

    @property
    def generation(self) -> int:
        """Grows whenever a distinct term comes or goes: as long as it does not, the same terms match a pod."""
        self.follow()
        return self._generation

    def matching(self, field: str, pod: PodInfo) -> Ids:
        """The ids of the terms in this list of visible pods that are about the pod, sorted."""
        self.follow()
        return self._lists[field].matching(pod)

    def among(self, field: str, pod: PodInfo, ids: Ids) -> Sequence[AffinityTerm]:
        """Those of a visible pod's terms in this list that have one of these ids."""
        self.follow()
        return self._lists[field].among(pod, ids)

    def holders(self, field: str, ids: Ids) -> Mapping[str, PodInfo]:
        """The visible pods that have one of these terms in this list, by uid: not to be kept across changes."""
        self.follow()
        return self._lists[field].holders(ids)

    def follow(self) -> None:
        """Bring the lists up to date."""
        state = self.state
        if self._followed == state.generation:
            return
        if self._followed < 0 or state.generation_of("pod") > self._followed:
            changes = state.changes_since(self._followed) if self._followed >= 0 else None
            uids = self._all() if changes is None else [c.key for c in changes if c.kind == "pod"]
            for uid in uids:
                self._changed(uid, state.pods.get(uid))
        self._followed = state.generation

    def _all(self) -> dict[str, None]:
        """The pods that have a term, or had one."""
        uids = dict.fromkeys(self._known)
        for field in FIELDS:
            uids.update(dict.fromkeys(self.state.pods_with(field)))
        return uids

    def _changed(self, uid: str, pod: PodInfo | None) -> None:
        known = self._known.get(uid)
        if pod is known:
            return
        if pod is not None and any(getattr(pod, field) for field in FIELDS):
            self._known[uid] = pod
            moved = [terms.put(pod) for terms in self._lists.values()]
        elif known is not None:
            del self._known[uid]
            moved = [terms.drop(uid) for terms in self._lists.values()]
        else:
            return
        if any(moved):
            self._generation += 1


def _is_among(i: int, ids: Ids) -> bool:
    if len(ids) <= FEW:
        return i in ids
    at = bisect_left(ids, i)
    return at < len(ids) and ids[at] == i
