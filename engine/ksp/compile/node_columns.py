"""The nodes of a cluster as columns: for each part that rules read, one value for each node, in NumPy arrays.

Each node has a *slot*, which it keeps while it is there; the slot of a node that goes is taken by the next that comes.
A slot without a node reads as EMPTY_NODE. A column is made when it is first asked for. `NodeColumns.follow` then
brings all of them up to date from the journal of the state: of what changed it takes the new values, and only of the
parts that changed, so it costs what changed and not what there is.

Who keeps something by slot asks `changed` which slots to look at again. Rarely slots are numbered anew: when the
journal does not go back far enough, or most slots are empty. Then `changed` gives None, and everything that was kept is
to be made again. Ids are given anew, too, when as many may have fallen out of use as there are, so nobody keeps them.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple, Protocol

import numpy as np

from ksp.compile.node_parts import EVERYTHING
from ksp.compile.node_rows import Rows
from ksp.compile.node_values import (
    ABSENT,
    MAPS,
    AmountColumn,
    BoolArray,
    Column,
    Groups,
    IdArray,
    IdColumn,
    IntArray,
    Interner,
    Part,
    PodCountColumn,
    PresenceColumn,
    Selection,
    grouped,
    shown,
)
from ksp.model.info import EMPTY_NODE, NodeInfo

__all__ = ["ABSENT", "BoolArray", "IdArray", "IntArray", "NodeColumns", "Part", "Rows", "Touched"]

MOST_COLUMNS: Final = 512  # of 4 to 8 bytes a slot; then the quarter that was longest not asked for is dropped
MOST_COMBINATIONS: Final = 64  # of parts whose groups are kept
MOST_SELECTIONS: Final = 128  # of slots whose groups are kept, each 24 bytes a slot
MOST_TOUCHED: Final = 8192  # lines of the log of changes
NEW_IDS: Final = (
    4096  # that changes of nodes may bring before ids are numbered anew; or half as many as there are, if more
)
STEP: Final = 64  # slots are added in multiples of it, an eighth at least
SPARE: Final = 256  # slots that may be empty, or three quarters of all, if more
DENSE: Final = (
    4  # combinations of two parts are told apart by a table if it has no more than so many entries for a slot
)


class Change(Protocol):
    """A line of the journal: what changed, and which parts of the node `node`."""

    @property
    def kind(self) -> str: ...
    @property
    def node(self) -> str: ...
    @property
    def parts(self) -> frozenset[str]: ...


class State(Protocol):
    """What columns need of the cluster's state. `node_list` gives the same list while the order is the same."""

    @property
    def generation(self) -> int: ...
    @property
    def nodes(self) -> Mapping[str, NodeInfo]: ...
    def changes_since(self, generation: int) -> Sequence[Change] | None: ...
    def node_list(self) -> list[NodeInfo]: ...


class Touched(NamedTuple):
    """Parts of the node at a slot changed, in the words of `ksp.compile.node_parts`: EVERYTHING if a node came there or
    went. `generation` is that of the columns after the change."""

    generation: int
    slot: int
    parts: frozenset[str]


class NodeColumns:
    """The columns of a state.

    `slots` is the length of all arrays, `nodes` the nodes by slot, `alive` where there is one, `slot_of` the slots by
    name; `order` are the slots in the order of the node list, another array whenever it is not the same order, and
    `in_order` says that these are 0, 1, 2, ... All arrays are read only; all but `order` change with the next `follow`.
    """

    slots: int
    nodes: list[NodeInfo]
    alive: BoolArray
    slot_of: dict[str, int]
    order: IntArray
    in_order: bool
    interner: Interner
    _alive: BoolArray
    _free: list[int]
    _listed: list[NodeInfo] | None
    _touched: list[Touched]
    _generations: list[int]
    _new_ids: int

    def __init__(self, state: State) -> None:
        self.state = state
        self.generation = self._forgotten = -1
        self.order, self.in_order = shown(np.empty(0, np.int64)), True
        self._all: Rows | None = None
        self._columns: dict[Any, Column] = {}
        self._concerned: dict[frozenset[str], tuple[Column, ...]] = {}
        self._combined: dict[tuple[Part, ...], tuple[list[IdColumn], list[int], Groups]] = {}
        self._selections: dict[tuple[int, tuple[Part, ...]], Selection] = {}
        self._renumber()

    # ---- following the state

    def follow(self) -> None:
        """Bring everything up to date. Rows that were given out before must not be used any more."""
        generation = self.state.generation
        if generation == self.generation:
            return
        changes = self.state.changes_since(self.generation)
        if changes is None:
            self._renumber()
            return
        self.generation = generation
        self._all = None
        ids, nodes_changed = len(self.interner.texts), False
        for change in changes:
            if change.kind == "pod":
                self._sums_changed(change.node, change.parts)
            elif change.kind == "node":
                self._node_changed(change.node, change.parts)
                nodes_changed = True
        if nodes_changed:
            self._list_nodes()
            if self.slots > max(SPARE, 4 * len(self.slot_of)):
                self._renumber()
                return
        new = len(self.interner.texts) - ids
        if new:
            self._new_ids += new
            if self._new_ids > max(NEW_IDS, ids // 2):
                self._intern()

    def changed(self, since: int) -> Sequence[Touched] | None:
        """What changed after the columns had that generation, oldest first; None if everything is to be made again."""
        if since < self._forgotten:
            return None
        log = self._touched
        if not log or log[-1].generation <= since:
            return ()
        return log[bisect_right(self._generations, since) :]

    def _sums_changed(self, name: str, parts: frozenset[str]) -> None:
        node, slot = self.state.nodes.get(name), self.slot_of.get(name)
        if parts and node is not None and slot is not None:
            self._put(slot, node, parts)

    def _node_changed(self, name: str, parts: frozenset[str]) -> None:
        """The node is what it is now, which may be what later changes made of it: then it goes with an earlier one."""
        node, slot = self.state.nodes.get(name), self.slot_of.get(name)
        if node is None:
            if slot is not None:
                del self.slot_of[name]
                self._free.append(slot)
                self._settle(slot, EMPTY_NODE, EVERYTHING)
        elif slot is None:
            slot = self.slot_of[name] = self._free_slot()
            self._settle(slot, node, EVERYTHING)
        else:
            self._settle(slot, node, parts)

    def _settle(self, slot: int, node: NodeInfo, parts: frozenset[str]) -> None:
        """The slot has this node, which differs in these parts from what was there."""
        self.nodes[slot] = node
        self._alive[slot] = node is not EMPTY_NODE
        if parts:
            self._put(slot, node, parts)

    def _put(self, slot: int, node: NodeInfo, parts: frozenset[str]) -> None:
        concerned = self._concerned.get(parts)
        if concerned is None:
            concerned = tuple(column for column in self._columns.values() if column.reads & parts)
            self._concerned[parts] = concerned
        for column in concerned:
            column.put(slot, node)
        self._touched.append(Touched(self.generation, slot, parts))
        self._generations.append(self.generation)
        if len(self._touched) > 2 * MOST_TOUCHED:
            self._forgotten = self._generations[MOST_TOUCHED]
            del self._touched[:MOST_TOUCHED], self._generations[:MOST_TOUCHED]

    def _free_slot(self) -> int:
        if not self._free:
            slots = _rounded(self.slots + self.slots // 8 + 1)
            self._free.extend(reversed(range(self.slots, slots)))
            self.nodes.extend([EMPTY_NODE] * (slots - self.slots))
            self._alive = np.concatenate([self._alive, np.zeros(slots - self.slots, np.bool_)])
            self.alive = shown(self._alive)
            self.slots = slots
            for column in self._columns.values():
                column.grow(slots)
        return self._free.pop()

    def _list_nodes(self) -> None:
        listed = self.state.node_list()
        if listed is not self._listed:
            slot_of = self.slot_of
            self._listed = listed
            order = np.array([slot_of[node.name] for node in listed], np.int64)
            if not np.array_equal(order, self.order):
                self.order = shown(order)
                self.in_order = bool(np.array_equal(order, np.arange(len(order))))

    def _renumber(self) -> None:
        """Start from the whole state: slots are those of the node list."""
        listed = self.state.node_list()
        self.generation = self._forgotten = self.state.generation
        self.slots = _rounded(len(listed))
        self.nodes = listed + [EMPTY_NODE] * (self.slots - len(listed))
        self.slot_of = {node.name: slot for slot, node in enumerate(listed)}
        self._alive = np.arange(self.slots) < len(listed)
        self.alive = shown(self._alive)
        self._free = list(reversed(range(len(listed), self.slots)))
        self._touched, self._generations = [], []
        self._listed = None
        self._list_nodes()
        self._all = None
        for column in self._columns.values():
            if not isinstance(column, IdColumn):
                column.build(self.nodes)
        self._intern()

    def _intern(self) -> None:
        """Give ids to the values that there are, and forget the others."""
        self.interner = Interner()
        self._new_ids = 0
        for column in self._columns.values():
            if isinstance(column, IdColumn):
                column.interner = self.interner
                column.build(self.nodes)

    # ---- rows

    def rows(self, slots: IntArray | None = None) -> Rows:
        """The nodes at these slots, in this order; without them all slots, those without a node too. Good until the
        next `follow` that finds a change."""
        if slots is not None:
            return Rows(self, slots)
        if self._all is None:
            self._all = Rows(self, None)
        return self._all

    def slots_with(self, part: Part, value: object) -> IntArray:
        """The slots of the nodes whose part has this value, in order. A label or annotation that is not there reads as
        "", as in the language."""
        column = self.ids(part)
        found = column.slots_of(self.interner.known(value))
        if value == "" and part[0] in MAPS:
            found = np.union1d(found, column.slots_of(ABSENT))
        return found[self._alive[found]]

    # ---- columns, as Rows asks for them

    def amounts(self, map: str, name: str) -> IntArray:
        column = self._columns.get((map, name))
        if column is None:
            column = self._new((map, name), AmountColumn(map, name))
        column.asked = self.generation
        assert isinstance(column, AmountColumn)
        return column.values

    def present(self, map: str, name: str) -> BoolArray:
        column = self._columns.get((map, name, "present"))
        if column is None:
            column = self._new((map, name, "present"), PresenceColumn(map, name))
        column.asked = self.generation
        assert isinstance(column, PresenceColumn)
        return column.values

    def pod_count(self) -> IntArray:
        column = self._columns.get(PodCountColumn)
        if column is None:
            column = self._new(PodCountColumn, PodCountColumn())
        column.asked = self.generation
        assert isinstance(column, PodCountColumn)
        return column.values

    def ids(self, part: Part) -> IdColumn:
        column = self._columns.get(("id", part))
        if column is None:
            column = self._new(("id", part), IdColumn(part, self.interner))
        column.asked = self.generation
        assert isinstance(column, IdColumn)
        return column

    def groups(self, parts: tuple[Part, ...]) -> Groups:
        """The distinct combinations of values that these parts, at least one, have at all slots; kept while they are as
        they were."""
        if len(parts) == 1:
            return self.ids(parts[0]).groups()
        columns = [self.ids(part) for part in parts]
        known = self._combined.get(parts)
        versions = [column.version for column in columns]
        if known is not None and known[0] == columns and known[1] == versions:
            return known[2]
        groups = columns[0].groups()
        for column in columns[1:]:
            groups = _combined(groups, column.groups())
        if len(self._combined) >= MOST_COMBINATIONS:
            self._combined.clear()
        self._combined[parts] = columns, versions, groups
        return groups

    def selection(self, slots: IntArray, parts: tuple[Part, ...]) -> Selection:
        """Those groups at some slots; kept for this very array, which is to be read only from now on, while the parts
        are as they were."""
        whole = self.groups(parts)
        known = self._selections.get((id(slots), parts))
        if known is not None and known.slots is slots and known.whole is whole:
            return known
        if len(self._selections) >= MOST_SELECTIONS:
            self._selections.clear()
        slots.flags.writeable = False
        at = slice(0, len(slots)) if slots is self.order and self.in_order else slots
        found = self._selections[id(slots), parts] = Selection(slots, whole, whole.codes[at])
        return found

    def _new(self, key: object, column: Column) -> Column:
        if len(self._columns) >= MOST_COLUMNS:
            by_use = sorted(self._columns, key=lambda known: self._columns[known].asked)
            for known in by_use[: MOST_COLUMNS // 4]:
                del self._columns[known]
        column.build(self.nodes)
        self._columns[key] = column
        self._concerned.clear()
        return column


def _rounded(slots: int) -> int:
    """The next multiple of STEP, one at least."""
    return max(1, -(-slots // STEP)) * STEP


def _combined(one: Groups, other: Groups) -> Groups:
    """The groups of pairs."""
    codes = one.codes * other.count + other.codes
    below = one.count * other.count
    if below <= DENSE * len(codes) + 1024:
        return grouped(codes, below)
    _, firsts, inverse = np.unique(codes, return_index=True, return_inverse=True)
    return Groups(inverse.astype(np.int64, copy=False), firsts)
