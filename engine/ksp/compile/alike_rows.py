"""What many rows contribute to a view, found out for few of them.

A view mostly reads a few labels of a node, or of a pod and its node. So a row is asked while it is watched what it is
looked at for; rows that are equal in that contribute the same. Where more is read than labels and the like, or most
rows differ in it, each is asked by itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from typing import Any, Final

from ksp.compile.watched import WatchedLabels

MANY: Final = 64  # rows, from which on it pays
ALIKE: Final = 4  # so many rows, on average, have to look the same
FIRST: Final = 4  # rows that are watched before all are told apart
LOOKS: Final = 12  # different things that are looked at, at most
PLAIN: Final = frozenset({"namespace", "terminating"})

Entries = tuple[Any, ...]
Contribute = Callable[[Any], Sequence[Any]]
Look = tuple[str, ...]  # the attributes that lead to what is looked at, and the key of a label; () for anything else


class _Row:
    """A row that notes what of it is looked at."""

    def __init__(self, row: Any, path: Look, asked: set[Look]) -> None:
        self._row = row
        self._path = path
        self._asked = asked

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._row, name)
        if name == "labels":
            path, asked = (*self._path, name), self._asked
            return WatchedLabels(value, lambda key: asked.add(() if key is None else (*path, key)))
        if name == "node" and not self._path:
            return _Row(value, (name,), self._asked)
        self._asked.add((name,) if name in PLAIN and not self._path else ())
        return value


def contributions(contribute: Contribute, rows: Mapping[str, Any]) -> tuple[dict[str, Entries], Mapping[Entries, int]]:
    """The entries of each row that has any, by its key; and how many rows have them."""
    made = _by_looks(contribute, list(rows.values())) if len(rows) >= MANY else None
    if made is None:
        equal: dict[Entries, Entries] = {}  # rows with equal entries share one tuple
        asked = ((key, contribute(row)) for key, row in rows.items())
        each = {key: equal.setdefault(found, found) for key, entries in asked if entries for found in (tuple(entries),)}
        return each, Counter(each.values())
    known, looks = made
    each = dict(zip(rows, map(known.__getitem__, looks), strict=True))
    if not all(known.values()):
        each = {key: entries for key, entries in each.items() if entries}
    times: Counter[Entries] = Counter()
    for look, number in Counter(looks).items():
        times[known[look]] += number
    return each, times


def _by_looks(contribute: Contribute, rows: Sequence[Any]) -> tuple[dict[Entries, Entries], list[Entries]] | None:
    """What rows contribute by what is looked at, and the values of that for each row; None if that is no help."""
    found: set[Look] = set()
    for row in rows[:: len(rows) // FIRST]:
        contribute(_Row(row, (), found))
    if () in found:
        return None
    looked_at = {look: _values(look, rows) for look in sorted(found)}
    while len(looked_at) <= LOOKS:
        looks = list(zip(*looked_at.values(), strict=True)) if looked_at else [()] * len(rows)
        one_of_each = dict(zip(looks, rows, strict=True))
        if len(one_of_each) * ALIKE > len(rows):
            return None
        asked: set[Look] = set()
        known = {look: tuple(contribute(_Row(row, (), asked))) for look, row in one_of_each.items()}
        if () in asked:
            return None
        more = asked.difference(looked_at)
        if not more:
            return known, looks
        looked_at.update((look, _values(look, rows)) for look in sorted(more))
    return None


def _values(look: Look, rows: Sequence[Any]) -> list[Any]:
    match look:
        case ("labels", key):
            return [row.labels.get(key) for row in rows]
        case ("node", "labels", key):
            return [row.node.labels.get(key) for row in rows]
    return list(map(attrgetter(*look), rows))
