"""One view at run time: counts or sums by key that remember what each row contributed.

A `Table` starts from the rows of an index and then follows the journal of the cluster's state: for a row that changed
it takes out exactly what it once put in, and puts in what the row contributes now. What was never counted is never
taken out, whatever happened to the objects that the row names. It tells who uses it which keys have another value.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from ksp.compile.alike_rows import contributions
from ksp.compile.node_parts import ANYTHING, SUMS
from ksp.model.info import EMPTY_NODE, EMPTY_POD, NodeInfo, PodInfo
from ksp.model.int64 import wrap

Entry = Any  # of a count: the tuple of its keys; of a sum: that and the amount
Contribute = Callable[[Any], Sequence[Entry]]
Candidates = Callable[[], Mapping[str, PodInfo] | None]
Keys = tuple[Any, ...]

LOG: Final = 2_048  # the last changed keys that a table remembers, at least
NOTHING: Final[tuple[Entry, ...]] = ()


class Change(Protocol):
    """A line of the journal: `kind` is pod, node or a kind of other objects; see `ksp.compile.node_parts`."""

    @property
    def kind(self) -> str: ...
    @property
    def key(self) -> Any: ...
    @property
    def node(self) -> str: ...
    @property
    def parts(self) -> frozenset[str]: ...


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
    def generation_of(self, kind: str) -> int: ...
    def node_list(self) -> Sequence[NodeInfo]: ...
    def pods_in_namespace(self, namespace: str) -> Mapping[str, PodInfo]: ...
    def pods_labelled(self, namespace: str, key: str, value: str) -> Mapping[str, PodInfo]: ...
    def pods_with(self, field: str) -> Mapping[str, PodInfo]: ...


@dataclass(frozen=True, slots=True, eq=False)
class ViewPlan:
    """A view of a compiled rule.

    `depth` is the number of keys. `pods_with` names the list that a pod must have for it to contribute, "" if none.
    `objects` are the kinds of other objects that its expressions read; `node_parts` the parts of nodes: of its rows, or
    of the nodes of the pods that are its rows. `kinds` are the kinds of changes after which it can be another.
    """

    name: str
    relation: str
    form: str
    depth: int
    pods_with: str = ""
    objects: frozenset[str] = frozenset()
    node_parts: frozenset[str] = frozenset()
    kinds: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        pods = self.relation == "pods" or self.reads_sums
        nodes = self.relation == "nodes" or self.reads_nodes or self.form == "first"
        kinds = [*(["pod"] if pods else []), *(["node"] if nodes else []), *sorted(self.objects)]
        object.__setattr__(self, "kinds", tuple(kinds))

    @property
    def reads_nodes(self) -> bool:
        """A row reads what a node itself has, and can change."""
        return bool(self.node_parts - SUMS)

    @property
    def reads_sums(self) -> bool:
        """A row reads what depends on the pods of a node."""
        return bool(self.node_parts & SUMS)


class Table:
    """The contents of one view for certain values: nested dicts by key in `result`, or a number, or the first row.

    `contribute` gives a row's entries. `candidates` gives the pods that can have any, or None if there is no list of
    them. `version` grows with each key whose value changes; `result` is the same dict for as long as the table lives.
    """

    def __init__(self, plan: ViewPlan, contribute: Contribute, candidates: Candidates | None = None) -> None:
        self.plan = plan
        self.contribute = contribute
        self.candidates = candidates
        self.result: dict[Any, Any] = {}
        self.total = 0
        self.version = 0
        self.generation = -1
        self._rows: dict[str, tuple[Entry, ...]] = {}
        self._counts: dict[Keys, int] = {}
        self._equal: dict[tuple[Entry, ...], tuple[Entry, ...]] = {}  # rows with equal entries share one tuple
        self._log: list[tuple[Keys, bool]] = []
        self._logged_from = 0
        self._read_objects = False  # that changed since `contribute` was given: it may hold others than the state's
        self._first: tuple[int, Any] = (-1, None)

    # ---- following the state

    def renew(self, state: State, contribute: Contribute, candidates: Candidates | None) -> None:
        """Bring the table up to date with the functions of today: of equal values, but with the state's own objects as
        they are now."""
        if contribute is not self.contribute:
            self.contribute, self.candidates = contribute, candidates
            if self._read_objects:
                self.generation = -1
        self.follow(state)
        self._read_objects = False

    def follow(self, state: State) -> None:
        """Bring the table up to date."""
        generation = self.generation
        if generation == state.generation:
            return
        if generation < 0:
            self._refresh(state)
        else:
            for kind in self.plan.kinds:
                if state.generation_of(kind) > generation:
                    self._catch_up(state)
                    break
        self.generation = state.generation

    def _catch_up(self, state: State) -> None:
        changes = state.changes_since(self.generation)
        if changes is None:
            self._refresh(state)
            return
        plan = self.plan
        parts, of_pods, with_sums = plan.node_parts, plan.relation == "pods", plan.reads_sums
        pods: dict[str, None] = {}
        nodes: dict[str, None] = {}
        for change in changes:
            if change.kind == "pod":
                if of_pods:
                    pods[change.key] = None
                if with_sums and not parts.isdisjoint(change.parts):
                    nodes[change.node] = None
            elif change.kind == "node":
                if not parts.isdisjoint(change.parts) and not (of_pods and ANYTHING in change.parts):
                    nodes[change.key] = None
                if plan.form == "first" and change.parts:
                    self._restart_log()  # the order of the nodes may be another
            elif change.kind in plan.objects:
                self._refresh(state)
                return
        self._nodes_changed(state, nodes)
        for uid in pods:
            self._replace(uid, state.pods.get(uid))

    def _nodes_changed(self, state: State, names: Mapping[str, None]) -> None:
        """The pods of a node that comes or goes are in the journal themselves."""
        for name in names:
            node = state.nodes.get(name)
            if self.plan.relation == "nodes":
                self._replace(name, node)
            elif node is not None:
                for uid, pod in node.pods.items():
                    self._replace(uid, pod)

    def _refresh(self, state: State) -> None:
        """Ask all rows again. Which of them read an object that changed is not known."""
        rows = self._candidates(state)
        if self._rows or self.generation >= 0:
            for key, row in rows.items():
                self._replace(key, row)
            for key in [key for key in self._rows if key not in rows]:
                self._replace(key, None)
        else:
            self._build(rows)
        self._read_objects = bool(self.plan.objects)

    def _build(self, rows: Mapping[str, Any]) -> None:
        """Ask all rows for the first time: equal entries are counted together."""
        self._rows, times = contributions(self.contribute, rows)
        for entries, number in times.items():
            for entry in entries:
                self.count(entry, number)
        self._restart_log()

    def _candidates(self, state: State) -> Mapping[str, Any]:
        if self.plan.relation == "nodes":
            return state.nodes
        found = self.candidates() if self.candidates is not None else None
        if found is not None:
            return found
        return state.pods_with(self.plan.pods_with) if self.plan.pods_with else state.pods

    def _replace(self, key: str, row: Any) -> None:
        """A row came, left or changed. What goes is counted last, so that no map is emptied that is filled again."""
        old = self._rows.get(key, NOTHING)
        new = NOTHING if row is None else tuple(self.contribute(row))
        if new == old and not (new and self.plan.form == "first"):
            return
        if new:
            self._rows[key] = self._shared(new)
        elif old:
            del self._rows[key]
        if self.plan.form == "first":
            self._restart_log()
            return
        for entry in new:
            self._note(entry, 1)
        for entry in old:
            self._note(entry, -1)

    def _shared(self, entries: tuple[Entry, ...]) -> tuple[Entry, ...]:
        if len(self._equal) > 2 * len(self._rows) + LOG:
            self._equal.clear()
        return self._equal.setdefault(entries, entries)

    # ---- counting

    def count(self, entry: Entry, times: int) -> bool:
        """Count an entry in so many times, or out if negative; whether it was not there, or is not there any more."""
        keys, amount = entry if self.plan.form == "sum" else (entry, 1)
        counts = self._counts
        before = counts.get(keys, 0)
        count = before + times
        if count:
            counts[keys] = count
        else:
            del counts[keys]
        if not keys:
            self.total = _plus(self.total, times * amount)
            return not (before and count)
        inner = self.result
        for key in keys[:-1]:
            inner = inner.setdefault(key, {})
        if count:
            inner[keys[-1]] = _plus(inner.get(keys[-1], 0), times * amount)
            return not before
        del inner[keys[-1]]
        if not inner and len(keys) > 1:
            self._prune(keys)
        return True

    def _prune(self, keys: Keys) -> None:
        """Take out the maps on the way to the keys that are empty."""
        path = [self.result]
        for key in keys[:-1]:
            path.append(path[-1][key])
        for outer, key in zip(reversed(path[:-1]), reversed(keys[:-1]), strict=True):
            if outer[key]:
                return
            del outer[key]

    # ---- what changed

    def _note(self, entry: Entry, times: int) -> None:
        """Count an entry, and remember that."""
        came_or_went = self.count(entry, times)
        self._log.append((entry[0] if self.plan.form == "sum" else entry, came_or_went))
        self.version += 1
        if len(self._log) > 2 * LOG:
            del self._log[:-LOG]
            self._logged_from = self.version - LOG

    def _restart_log(self) -> None:
        self.version += 1
        self._logged_from = self.version
        self._log.clear()

    def changed(self, since: int, *, presence: bool = False) -> list[Keys] | None:
        """The keys whose values may differ from those of that version, or with `presence` those whose entries came or
        went; None if that is no longer known. Of a `first` it never is."""
        if since < self._logged_from:
            return None
        log = self._log[since - self._logged_from :]
        return list(dict.fromkeys([keys for keys, came_or_went in log if came_or_went or not presence]))

    # ---- reading

    @property
    def rows(self) -> int:
        """How many rows contribute."""
        return len(self._rows)

    def contributes(self, key: str) -> bool:
        """Whether a row counts in the view: a pod by its uid, a node by its name."""
        return key in self._rows

    def value(self) -> Any:
        """What a rule reads: the map, or the number."""
        return self.result if self.plan.depth else self.total

    def first(self, state: State) -> Any:
        """The first row, in the order of the node list and then of arrival."""
        if self._first[0] != self.version:
            self._first = self.version, self._find_first(state)
        return self._first[1]

    def _find_first(self, state: State) -> Any:
        if self.plan.relation == "nodes":
            return next((node for node in state.node_list() if node.name in self._rows), EMPTY_NODE)
        names = {state.pods[uid].node.name for uid in self._rows}
        node = next((node for node in state.node_list() if node.name in names), EMPTY_NODE)
        return next((pod for uid, pod in node.pods.items() if uid in self._rows), EMPTY_POD)


def _plus(a: Any, b: Any) -> Any:
    total = a + b
    return wrap(total) if isinstance(total, int) else total
