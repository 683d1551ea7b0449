"""Views at run time: tables of counts that remember what each row contributed.

A `Table` starts from the rows of an index and then follows the journal of the cluster's state: for a row that changed
it takes out exactly what it once put in, and puts in what the row contributes now. What was never counted is never
taken out, whatever happened to the objects that the row names. `Tables` keeps tables by the values that their view
depends on, and brings one up to date when it is asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Protocol

import msgspec
from cachetools import LRUCache

from ksp.model.info import EMPTY_NODE, EMPTY_POD, NodeInfo, PodInfo
from ksp.model.int64 import wrap

MOST_ROWS = 2_000_000  # that all tables remember together: some hundreds of megabytes
FIXED = 1_000  # what a table costs beside its rows, in rows
Entry = Any  # of a count: the tuple of its keys; of a sum: that and the amount
Contribute = Callable[[Any], Sequence[Entry]]


class Change(Protocol):
    """A line of the journal: `kind` is pod, node or a kind of other objects."""

    @property
    def kind(self) -> str: ...
    @property
    def key(self) -> Any: ...


class State(Protocol):
    """What views need of the cluster's state."""

    @property
    def generation(self) -> int: ...
    @property
    def nodes(self) -> Mapping[str, NodeInfo]: ...
    @property
    def pods(self) -> Mapping[str, PodInfo]: ...
    @property
    def objects(self) -> Mapping[str, Any]: ...
    def changes_since(self, generation: int) -> Sequence[Change] | None: ...
    def node_list(self) -> Sequence[NodeInfo]: ...
    def pods_in_namespace(self, namespace: str) -> Mapping[str, PodInfo]: ...
    def pods_with(self, field: str) -> Mapping[str, PodInfo]: ...


@dataclass(frozen=True, slots=True, eq=False)
class ViewPlan:
    """A view of a compiled rule.

    `depth` is the number of keys. `pods_with` names the list that a pod must have for it to contribute, "" if none;
    `by_namespace` if the first of the values is the one namespace whose pods contribute; `objects` are the kinds of
    other objects that its expressions read; `reads_nodes` if what a pod contributes depends on its node; `reads_sums`
    if what a row contributes depends on the other pods of its node.
    """

    name: str
    relation: str
    form: str
    depth: int
    by_namespace: bool
    pods_with: str
    objects: frozenset[str]
    reads_nodes: bool
    reads_sums: bool = False


class Table:
    """The contents of one view for certain values: nested dicts by key in `result`, or a number, or the first row."""

    def __init__(self, plan: ViewPlan, contribute: Contribute, namespace: str | None) -> None:
        self.plan = plan
        self.contribute = contribute
        self.namespace = namespace
        self.result: Any = {}
        self.total = 0
        self.generation = -1
        self._rows: dict[str, Sequence[Entry]] = {}
        self._counts: dict[tuple[Any, ...], int] = {}

    # ---- following the state

    def follow(self, state: State) -> None:
        """Bring the table up to date."""
        if self.generation == state.generation:
            return
        changes = state.changes_since(self.generation) if self.generation >= 0 else None
        if changes is None or any(change.kind in self.plan.objects for change in changes):
            self._rebuild(state)
        else:
            for kind, key in dict.fromkeys((change.kind, change.key) for change in changes):
                self._changed(state, kind, key)
            if self.plan.reads_sums:
                for node in state.nodes.values():
                    if node.generation > self.generation:
                        self._changed(state, "node", node.name)
        self.generation = state.generation

    def _rebuild(self, state: State) -> None:
        self.result, self.total = {}, 0
        self._rows.clear()
        self._counts.clear()
        for key, row in self._candidates(state).items():
            self._put(key, row)

    def _candidates(self, state: State) -> Mapping[str, Any]:
        if self.plan.relation == "nodes":
            return state.nodes
        if self.namespace is not None:
            return state.pods_in_namespace(self.namespace)
        return state.pods_with(self.plan.pods_with) if self.plan.pods_with else state.pods

    def _changed(self, state: State, kind: str, key: Any) -> None:
        if kind == "pod" and self.plan.relation == "pods":
            self._replace(key, state.pods.get(key))
        elif kind == "node" and self.plan.relation == "nodes":
            self._replace(key, state.nodes.get(key))
        elif kind == "node" and self.plan.reads_nodes:
            node = state.nodes.get(key)
            for uid, pod in node.pods.items() if node is not None else ():
                self._replace(uid, pod)

    def _replace(self, key: str, row: Any) -> None:
        old = self._rows.pop(key, None)
        if old is not None:
            for entry in old:
                self.count(entry, -1)
        if row is not None:
            self._put(key, row)

    def _put(self, key: str, row: Any) -> None:
        entries = self.contribute(row)
        if entries:
            self._rows[key] = entries
            for entry in entries:
                self.count(entry, 1)

    # ---- counting

    def count(self, entry: Entry, sign: int) -> None:
        keys, amount = entry if self.plan.form == "sum" else (entry, 1)
        count = self._counts.get(keys, 0) + sign
        if count:
            self._counts[keys] = count
        else:
            del self._counts[keys]
        if not keys:
            self.total = _plus(self.total, sign * amount)
            return
        path: list[dict[Any, Any]] = [self.result]
        for key in keys[:-1]:
            path.append(path[-1].setdefault(key, {}))
        last = keys[-1]
        if count:
            path[-1][last] = _plus(path[-1].get(last, 0), sign * amount)
            return
        del path[-1][last]
        for inner, key in zip(reversed(path[1:]), reversed(keys[:-1]), strict=True):
            if inner:
                break
            del path[path.index(inner) - 1][key]

    # ---- reading

    @property
    def rows(self) -> int:
        """How many rows contribute."""
        return len(self._rows)

    def value(self) -> Any:
        """What a rule reads: the map, or the number."""
        return self.result if self.plan.depth else self.total

    def first(self, state: State) -> Any:
        """The first row, in the order of the node list and then of arrival."""
        empty = EMPTY_NODE if self.plan.relation == "nodes" else EMPTY_POD
        if not self._rows:
            return empty
        if self.plan.relation == "nodes":
            return next((node for node in state.node_list() if node.name in self._rows), empty)
        matching = (pod for node in state.node_list() for pod in node.pods.values() if pod.uid in self._rows)
        return next(matching, empty)


def _plus(a: Any, b: Any) -> Any:
    total = a + b
    return wrap(total) if isinstance(total, int) else total


def _plain(value: object) -> object:
    """Maps that only look at others, as dicts."""
    if isinstance(value, MappingProxyType):
        return dict(value)
    raise TypeError(f"no key can be made of {type(value)}")


_ENCODER = msgspec.msgpack.Encoder(enc_hook=_plain, order="deterministic")


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
    they remember too many rows: `most`, counted when a table is made. One with more by itself is not kept."""

    def __init__(self, state: State, most: int = MOST_ROWS) -> None:
        self.state = state
        self.objects = state.objects
        self._tables: LRUCache[Any, Table] = LRUCache(most, _weight)

    def view(self, plan: ViewPlan, values: tuple[Any, ...], contribute: Contribute) -> Any:
        """The view for the values that its expressions have for the pod at hand. `contribute` gives a row's entries
        for these values; the table keeps it until the next one is given."""
        table = self._table(plan, values, contribute)
        return table.first(self.state) if plan.form == "first" else table.value()

    def _table(self, plan: ViewPlan, values: tuple[Any, ...], contribute: Contribute) -> Table:
        key = (plan, _ENCODER.encode(values))
        known = self._tables.get(key)
        table = known or Table(plan, contribute, values[0] if plan.by_namespace else None)
        table.contribute = contribute  # of equal values, but these are the state's own objects of today
        table.follow(self.state)
        if known is None and _weight(table) <= self._tables.maxsize:
            self._tables[key] = table
        return table


def tally(plan: ViewPlan, contribute: Contribute, rows: Iterable[Any]) -> Any:
    """A view over the feasible nodes: made for one decision."""
    if plan.form == "first":
        return next((row for row in rows if contribute(row)), EMPTY_NODE)
    table = Table(plan, contribute, None)
    for row in rows:
        for entry in contribute(row):
            table.count(entry, 1)
    return table.value()
