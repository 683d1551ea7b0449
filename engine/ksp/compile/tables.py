"""All views over one state of the cluster, by what they count and for which values.

`Tables` is what a compiled rule knows as the cluster: it gives objects of other kinds, views, and which affinity terms
of running pods match a pod. A view is found by the values that its expressions have for the pod at hand, so that pods
with the same values share a `Table`; it is brought up to date when it is asked for.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

import msgspec
from cachetools import LRUCache

from ksp.compile.narrow import Search, search
from ksp.compile.table import Candidates, Change, Contribute, Entry, State, Table, ViewPlan
from ksp.compile.terms import Ids, Terms
from ksp.model.affinity import AffinityTerm
from ksp.model.info import EMPTY_NODE, NodeInfo, PodInfo

__all__ = [
    "FIXED",
    "Candidates",
    "Change",
    "Contribute",
    "Entry",
    "State",
    "Table",
    "Tables",
    "ViewPlan",
    "encoded",
    "identity",
    "tally",
]

MOST_ROWS: Final = 2_000_000  # that all tables remember together: 60 bytes each, and their distinct entries once
FIXED: Final = 1_000  # what a table costs beside its rows, in rows
MOST_ENCODED: Final = 4_096  # values of views of which the encoded form is kept


def _plain(value: object) -> object:
    """Maps that only look at others, as dicts."""
    if isinstance(value, MappingProxyType):
        return dict(value)
    raise TypeError(f"no key can be made of {type(value)}")


_ENCODER = msgspec.msgpack.Encoder(enc_hook=_plain, order="deterministic")


def encoded(values: Any) -> bytes:
    """Equal bytes for equal values of a rule, whatever the order of their maps."""
    return _ENCODER.encode(values)


def identity(value: Any) -> Any:
    """Of values that hold pods or nodes, all that a rule can read of them, without what they lead to."""
    match value:
        case PodInfo():
            return value.metadata, value.spec, value.status, value.node.name
        case NodeInfo():
            return value.name, value.generation
        case tuple():
            return tuple(identity(item) for item in value)
        case dict() | MappingProxyType():
            return {key: identity(item) for key, item in value.items()}
    return value


def _weight(table: Table) -> int:
    return FIXED + table.rows


class Tables:
    """All tables over one state, by view and values. The least recently used give way when there are too many, or when
    they remember too many rows: `most`, counted when a table is made. One with more by itself is not kept.

    While `used` is a list, each table from which a view is given is appended to it. `terms` are those of the state,
    which several may share.
    """

    def __init__(self, state: State, most: int = MOST_ROWS, terms: Terms | None = None) -> None:
        self.state = state
        self.objects = state.objects
        self.terms = Terms(state) if terms is None else terms
        self.used: list[Table] | None = None
        self._tables: LRUCache[Any, Table] = LRUCache(most, _weight)
        self._encoded: dict[int, tuple[tuple[Any, ...], bytes]] = {}

    # ---- views

    def view(
        self,
        plan: ViewPlan,
        values: tuple[Any, ...],
        contribute: Contribute,
        candidates: Candidates | None = None,
    ) -> Any:
        """The view for the values that its expressions have for the pod at hand. `contribute` gives a row's entries
        for these values, `candidates` the pods that can have some; the table keeps both until the next are given."""
        table = self._table(plan, values, contribute, candidates)
        if self.used is not None:
            self.used.append(table)
        return table.first(self.state) if plan.form == "first" else table.value()

    def _table(
        self, plan: ViewPlan, values: tuple[Any, ...], contribute: Contribute, candidates: Candidates | None
    ) -> Table:
        key = (plan, self._encode(values))
        known = self._tables.get(key)
        table = known or Table(plan, contribute, candidates)
        table.renew(self.state, contribute, candidates)
        if known is None and _weight(table) <= self._tables.maxsize:
            self._tables[key] = table
        return table

    def _encode(self, values: tuple[Any, ...]) -> bytes:
        """The values as bytes, remembered by the tuple itself: a rule asks with the same one again and again."""
        known = self._encoded.get(id(values))
        if known is not None and known[0] is values:
            return known[1]
        if len(self._encoded) >= MOST_ENCODED:
            self._encoded.clear()
        made = encoded(values)
        self._encoded[id(values)] = values, made
        return made

    def clear(self) -> None:
        """Forget all tables: with what was compiled they are in a circle that only the garbage collector would find."""
        self._tables.clear()
        self._encoded.clear()

    # ---- where views start from

    def pods_where(self, wanted: Search) -> Mapping[str, PodInfo] | None:
        """The visible pods in which a search results, by uid; None if it does not narrow."""
        return search(self.state, wanted)

    # ---- affinity terms of running pods

    @property
    def terms_generation(self) -> int:
        """Grows whenever a distinct term of a visible pod comes or goes."""
        return self.terms.generation

    def matching(self, field: str, pod: PodInfo) -> Ids:
        """The ids of the terms in that list of visible pods, such as `required_anti_affinity`, that match the pod."""
        return self.terms.matching(field, pod)

    def among(self, field: str, pod: PodInfo, ids: Ids) -> Sequence[AffinityTerm]:
        """Those of a visible pod's terms in that list that have one of these ids."""
        return self.terms.among(field, pod, ids)

    def holders(self, field: str, ids: Ids) -> Mapping[str, PodInfo]:
        """The visible pods that have one of these terms in that list, by uid."""
        return self.terms.holders(field, ids)


def tally(plan: ViewPlan, contribute: Contribute, rows: Iterable[Any]) -> Any:
    """A view over the feasible nodes: made for one decision."""
    if plan.form == "first":
        return next((row for row in rows if contribute(row)), EMPTY_NODE)
    table = Table(plan, contribute)
    for row in rows:
        for entry in contribute(row):
            table.count(entry, 1)
    return table.value()
