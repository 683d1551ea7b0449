"""What columns over nodes are made of: one value for each node, kept where the node's slot is.

Four kinds: an amount out of one of a node's maps, whether the map has that entry, the number of pods, and the id of any
other part. Each is built for all nodes and then changed at one slot. A slot without a node reads as EMPTY_NODE.

An *id* stands for a value: two are equal if and only if the values are. Texts of all parts share one interner, so that
ids of different labels can be compared; 0 is the id of an entry that is not there. Values that have no hash (structs
with maps in them) are known by their encoding.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from operator import attrgetter
from typing import Any, Final, Protocol

import msgspec
import numpy as np
import numpy.typing as npt

from ksp.compile.node_parts import parts_at
from ksp.model.info import EMPTY_NODE, NodeInfo

IntArray = npt.NDArray[np.int64]
IdArray = npt.NDArray[np.int32]
BoolArray = npt.NDArray[np.bool_]
Part = tuple[str, ...]

ABSENT: Final = 0  # the id of an entry that is not there
MAPS: Final = ("labels", "annotations")  # of texts: parts go on with a key
FEWER: Final = 4  # a map with so many times fewer entries than there are texts is gone through in place of them
_SHORT_ENCODING: Final = 64  # bytes; of a longer one the digest is kept
_encode: Final = msgspec.msgpack.Encoder(order="deterministic").encode


class Column(Protocol):
    """A value for each slot. `reads` are the parts of a node that it depends on; `asked` is when it was last used."""

    reads: frozenset[str]
    asked: int

    def build(self, nodes: Sequence[NodeInfo]) -> None:
        """Take the values of all nodes, by slot."""

    def grow(self, slots: int) -> None:
        """Have so many slots; the new ones have no node."""

    def put(self, slot: int, node: NodeInfo) -> None:
        """Take the value of the node at one slot."""


def shown(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The same array, to be read only."""
    view = array.view()
    view.flags.writeable = False
    return view


def _grown(array: npt.NDArray[Any], slots: int, value: Any) -> npt.NDArray[Any]:
    return np.concatenate([array, np.full(slots - len(array), value, array.dtype)])


class AmountColumn:
    """The amount under a name in one of the maps `allocatable`, `requested`, `nonzero_requested`, `images`; else 0."""

    def __init__(self, map: str, name: str) -> None:
        self.map, self.name = map, name
        self.reads = parts_at((map,))
        self.asked = 0

    def build(self, nodes: Sequence[NodeInfo]) -> None:
        self._values = np.array([entries.get(self.name, 0) for entries in map(attrgetter(self.map), nodes)], np.int64)
        self.values: IntArray = shown(self._values)

    def grow(self, slots: int) -> None:
        self._values = _grown(self._values, slots, getattr(EMPTY_NODE, self.map).get(self.name, 0))
        self.values = shown(self._values)

    def put(self, slot: int, node: NodeInfo) -> None:
        self._values[slot] = getattr(node, self.map).get(self.name, 0)


class PresenceColumn:
    """Whether one of these maps has an entry of that name."""

    def __init__(self, map: str, name: str) -> None:
        self.map, self.name = map, name
        self.reads = parts_at((map,))
        self.asked = 0

    def build(self, nodes: Sequence[NodeInfo]) -> None:
        self._values = np.array([self.name in entries for entries in map(attrgetter(self.map), nodes)], np.bool_)
        self.values: BoolArray = shown(self._values)

    def grow(self, slots: int) -> None:
        self._values = _grown(self._values, slots, self.name in getattr(EMPTY_NODE, self.map))
        self.values = shown(self._values)

    def put(self, slot: int, node: NodeInfo) -> None:
        self._values[slot] = self.name in getattr(node, self.map)


class PodCountColumn:
    """How many pods are on the node."""

    def __init__(self) -> None:
        self.reads = parts_at(("pod_count",))
        self.asked = 0

    def build(self, nodes: Sequence[NodeInfo]) -> None:
        self._values = np.fromiter(map(attrgetter("pod_count"), nodes), np.int64, len(nodes))
        self.values: IntArray = shown(self._values)

    def grow(self, slots: int) -> None:
        self._values = _grown(self._values, slots, 0)
        self.values = shown(self._values)

    def put(self, slot: int, node: NodeInfo) -> None:
        self._values[slot] = node.pod_count


class Interner:
    """Ids of values, from 1 on in the order in which the values came; 1 is that of "", 0 that of None."""

    def __init__(self) -> None:
        self._ids: dict[Any, int] = {None: ABSENT, "": 1}
        self.texts: list[str] = ["", ""]
        """By id; "" for what is no text."""

    def ids(self, values: list[Any]) -> IdArray:
        """The ids of many values."""
        try:
            for value in dict.fromkeys(values):
                if value not in self._ids:
                    self.id(value)
        except TypeError:  # some have no hash
            return np.array([self.id(value) for value in values], np.int32)
        return np.array([self._ids[value] for value in values], np.int32)

    def id(self, value: Any) -> int:
        """The value's id; a new one if it has none yet."""
        try:
            found = self._ids.get(value)
        except TypeError:  # it has no hash
            value = _encoding(value)
            found = self._ids.get(value)
        if found is None:
            found = self._ids[value] = len(self.texts)
            self.texts.append(value if isinstance(value, str) else "")
        return found

    def known(self, value: Any) -> int:
        """The value's id; -1 if it has none."""
        try:
            return self._ids.get(value, -1)
        except TypeError:
            return self._ids.get(_encoding(value), -1)


def _encoding(value: Any) -> bytes:
    encoded = _encode(value)
    return encoded if len(encoded) <= _SHORT_ENCODING else blake2b(encoded, digest_size=16).digest()


@dataclass(frozen=True)
class Groups:
    """The distinct values of a column, or combinations of several: `codes` has a number below `count` for each slot,
    `firsts` for each number a slot that has it."""

    codes: IntArray
    firsts: IntArray

    @property
    def count(self) -> int:
        return len(self.firsts)

    @cached_property
    def by_code(self) -> tuple[IntArray, IntArray]:
        """All slots, those with the same code beside each other and in order; and where each code starts, and ends."""
        order = np.argsort(self.codes, kind="stable")
        return order, np.searchsorted(self.codes[order], np.arange(self.count + 1))


@dataclass(frozen=True)
class Selection:
    """The groups of all slots, at some of them: `codes` are the numbers of `whole`."""

    slots: IntArray
    whole: Groups
    codes: IntArray

    @cached_property
    def groups(self) -> Groups:
        """The groups that are there, numbered anew; `firsts` are places among these slots."""
        return grouped(self.codes, self.whole.count)


def grouped(codes: npt.NDArray[Any], below: int) -> Groups:
    """Groups of codes that are less than `below`, which may be left out: numbered anew in their order. O(n + below)."""
    first = np.full(below, -1, np.int64)
    first[codes[::-1]] = np.arange(len(codes) - 1, -1, -1)
    there = np.flatnonzero(first >= 0)
    number = np.zeros(below, np.int64)
    number[there] = np.arange(len(there))
    return Groups(number[codes], first[there])


class IdColumn:
    """The id of a part of the node: an entry of its labels or annotations, or what a path of attributes leads to, which
    may end with a key of a map. `version` is another after each change of a value."""

    def __init__(self, part: Part, interner: Interner) -> None:
        self.part = part
        self.reads = parts_at(part)
        self.asked = 0
        self.version = 0
        self.interner = interner
        self._groups: tuple[int, Groups] | None = None
        self._texts: tuple[int, list[str]] | None = None

    def build(self, nodes: Sequence[NodeInfo]) -> None:
        self._ids = self.interner.ids(self._read(nodes))
        self.ids: IdArray = shown(self._ids)
        self.version += 1

    def grow(self, slots: int) -> None:
        self._ids = _grown(self._ids, slots, self.interner.id(*self._read([EMPTY_NODE])))
        self.ids = shown(self._ids)
        self.version += 1

    def put(self, slot: int, node: NodeInfo) -> None:
        id_ = self.interner.id(*self._read([node]))
        if self._ids[slot] != id_:
            self._ids[slot] = id_
            self.version += 1

    def groups(self) -> Groups:
        """The distinct values; made once for each version."""
        if self._groups is None or self._groups[0] != self.version:
            self._groups = self.version, grouped(self._ids, int(self._ids.max(initial=0)) + 1)
        return self._groups[1]

    def texts(self) -> list[str]:
        """The text of each of the groups."""
        if self._texts is None or self._texts[0] != self.version:
            texts = self.interner.texts
            self._texts = self.version, [texts[i] for i in self._ids[self.groups().firsts].tolist()]
        return self._texts[1]

    def slots_of(self, id_: int) -> IntArray:
        """The slots with this id, in order; those without a node may be among them."""
        code = int(self._codes_of([id_])[0])
        if code < 0:
            return np.empty(0, np.int64)
        order, bounds = self.groups().by_code
        return order[bounds[code] : bounds[code + 1]]

    def looked_up(self, entries: Mapping[str, Any], dtype: type[np.generic]) -> npt.NDArray[Any]:
        """What the map has for the text of each of the groups; 0 where it has nothing."""
        count = self.groups().count
        if len(entries) * FEWER > count:
            return np.array([entries.get(text, 0) for text in self.texts()], dtype)
        table = np.zeros(count, dtype)
        codes = self._codes_of([self.interner.known(text) for text in entries])
        table[codes[codes >= 0]] = np.array(list(entries.values()), dtype)[codes >= 0]
        absent = int(self._codes_of([ABSENT])[0])
        if absent >= 0:
            table[absent] = entries.get("", 0)
        return table

    def _codes_of(self, ids: list[int]) -> IntArray:
        """The groups of these ids; -1 for an id that no slot has."""
        sorted_ids = self._ids[self.groups().firsts]
        places = np.minimum(np.searchsorted(sorted_ids, ids), len(sorted_ids) - 1)
        return np.where(sorted_ids[places] == ids, places, -1)

    def _read(self, nodes: Iterable[NodeInfo]) -> list[Any]:
        """The values; None where there is none."""
        if self.part[0] in MAPS:
            key = self.part[1]
            return [entries.get(key) for entries in map(attrgetter(self.part[0]), nodes)]
        return [_at(node, self.part) for node in nodes]


def _at(node: NodeInfo, part: Part) -> Any:
    """What the path leads to; None if that is nothing."""
    value: Any = node
    for step in part:
        value = value.get(step) if isinstance(value, dict) else getattr(value, step)
        if value is None:
            break
    return value
