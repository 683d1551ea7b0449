"""Where to look for the pods that a view counts: what of its conditions an index can answer.

A *search* is a list of groups; a pod that contributes to the view is in one of them at least. A group has the
namespaces in which its pods are, if they are known, and labels that its pods have: each a key and the values of which
it has one. ALL is the search that narrows nothing. Generated code makes searches from the values that a view's
conditions have for the pod at hand; what it says of a row is still decided by the view's contribution.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple, Protocol

from ksp.model.affinity import AffinityTerm
from ksp.model.info import PodInfo
from ksp.model.selector import NOTHING, LabelSelector

Wanted = tuple[str, tuple[str, ...]]  # a label's key, and its possible values


class Group(NamedTuple):
    """`namespaces` is None if any will do."""

    namespaces: tuple[str, ...] | None = None
    labels: tuple[Wanted, ...] = ()


Search = tuple[Group, ...] | None

ALL: Final[Search] = None
NONE: Final[Search] = ()
MOST_GROUPS: Final = 64  # of what must hold together; beyond that one of the parts has to do


class Indexes(Protocol):
    """What of the cluster's state finds pods."""

    def pods_in_namespace(self, namespace: str) -> Mapping[str, PodInfo]: ...
    def pods_labelled(self, namespace: str, key: str, value: str) -> Mapping[str, PodInfo]: ...


# ---- making searches


def in_namespace(namespace: str) -> Search:
    """`p.namespace == NAMESPACE`."""
    return (Group((namespace,)),)


def labelled(key: str, value: str) -> Search:
    """`p.labels[KEY] == VALUE`, where a label that is absent reads as ""."""
    return (Group(None, ((key, (value,)),)),) if value else ALL


def wanted_labels(selector: LabelSelector) -> tuple[Wanted, ...] | None:
    """The labels that a pod must have for the selector to match; None if it matches nothing."""
    if selector is NOTHING or selector.error:
        return None
    listed = (r for r in selector.match_expressions if r.operator == "In")
    return (*((k, (v,)) for k, v in selector.match_labels.items()), *((r.key, r.values) for r in listed))


def selected(selector: LabelSelector) -> Search:
    """`SELECTOR.matches(p.labels)`."""
    wanted = wanted_labels(selector)
    return NONE if wanted is None else (Group(None, wanted),) if wanted else ALL


def about(term: AffinityTerm) -> Search:
    """`TERM.matches(p)`."""
    wanted = wanted_labels(term.selector)
    return NONE if wanted is None else (Group(term.namespaces, wanted),)


def both(parts: Sequence[Search]) -> Search:
    """All of them hold."""
    found: Search = ALL
    for part in parts:
        found = part if found is None else found if part is None else _meet(found, part)
    return found


def _meet(one: tuple[Group, ...], other: tuple[Group, ...]) -> tuple[Group, ...]:
    if len(one) * len(other) > MOST_GROUPS:
        return min(one, other, key=len)
    met = (_joined(a, b) for a in one for b in other)
    return tuple(group for group in met if group.namespaces != ())


def _joined(a: Group, b: Group) -> Group:
    labels = (*a.labels, *(wanted for wanted in b.labels if wanted not in a.labels))
    if a.namespaces is None or b.namespaces is None:
        return Group(b.namespaces if a.namespaces is None else a.namespaces, labels)
    return Group(tuple(n for n in a.namespaces if n in b.namespaces), labels)


def either(parts: Sequence[Search]) -> Search:
    """One of them holds."""
    found: dict[Group, None] = {}
    for part in parts:
        if part is None:
            return ALL
        found.update(dict.fromkeys(part))
    return tuple(found)


# ---- searching


def search(indexes: Indexes, wanted: Search) -> Mapping[str, PodInfo] | None:
    """The pods of all groups by uid, and maybe others of their namespaces; None if there is nothing to search by."""
    if wanted is None or any(group.namespaces is None for group in wanted):
        return None
    lists = [
        found
        for group in wanted
        for namespace in dict.fromkeys(group.namespaces or ())
        for found in _shortest(indexes, namespace, group.labels)
    ]
    if len(lists) == 1:
        return lists[0]
    merged: dict[str, PodInfo] = {}
    for pods in lists:
        merged.update(pods)
    return merged


def _shortest(indexes: Indexes, namespace: str, labels: Sequence[Wanted]) -> Sequence[Mapping[str, PodInfo]]:
    """The lists for the label that fewest pods have with one of its values."""
    best: Sequence[Mapping[str, PodInfo]] = [indexes.pods_in_namespace(namespace)]
    fewest = len(best[0])
    for key, values in labels:
        lists = [indexes.pods_labelled(namespace, key, value) for value in values]
        number = sum(map(len, lists))
        if number < fewest:
            best, fewest = lists, number
    return best
