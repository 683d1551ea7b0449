"""Some nodes, or all slots, as a rule in columns sees them: an array for each part, with a value for each of the nodes.

A `Rows` remembers what it gathered, since several rules ask it in one decision. It shows the columns as they are: after
`NodeColumns.follow` has found a change it must not be used any more. All arrays that it gives are to be read only.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, TypeVar

import numpy as np
import numpy.typing as npt

from ksp.compile.node_values import ABSENT, MAPS, BoolArray, Groups, IdArray, IntArray, Part
from ksp.model.info import NodeInfo

if TYPE_CHECKING:
    from ksp.compile.node_columns import NodeColumns

FEW: Final = 48  # rows that are cheaper to go through one by one
Numbers = npt.NDArray[np.int64] | npt.NDArray[np.float64]
Item = TypeVar("Item", bound=np.generic)
Group = tuple[IntArray, list[NodeInfo]]


class Rows:
    """`size` rows, which are the nodes at `slots`; made by `NodeColumns.rows`. A slot without a node reads as
    EMPTY_NODE. `times` is None, as each row stands for one node; see ksp.compile.columns.combinations."""

    times: IntArray | None = None

    def __init__(self, columns: NodeColumns, slots: IntArray | None) -> None:
        self._columns = columns
        self._slots = slots
        self.size = columns.slots if slots is None else len(slots)
        # Of the nodes in order a slice will do, if that is the order of the slots; and that copies nothing.
        self._pick: Any = slice(0, self.size) if slots is columns.order and columns.in_order else slots
        self._kept: dict[Any, Any] = {}

    @cached_property
    def slots(self) -> IntArray:
        """The slots of the rows."""
        return np.arange(self.size, dtype=np.int64) if self._slots is None else self._slots

    @cached_property
    def nodes(self) -> list[NodeInfo]:
        """The nodes of the rows."""
        nodes = self._columns.nodes
        return nodes if self._slots is None else [nodes[slot] for slot in self._slots.tolist()]

    # ---- numbers

    def amounts(self, map: str, name: str) -> IntArray:
        """Amounts out of `allocatable`, `requested`, `nonzero_requested` or `images`; 0 where there is none."""
        kept: IntArray | None = self._kept.get((map, name))
        if kept is None:
            kept = self._kept[map, name] = self._picked(self._columns.amounts(map, name))
        return kept

    def present(self, map: str, name: str) -> BoolArray:
        """Whether that map has an entry of this name."""
        kept: BoolArray | None = self._kept.get((map, name, "present"))
        if kept is None:
            kept = self._kept[map, name, "present"] = self._picked(self._columns.present(map, name))
        return kept

    def pod_count(self) -> IntArray:
        """How many pods are on the node."""
        kept: IntArray | None = self._kept.get("pod_count")
        if kept is None:
            kept = self._kept["pod_count"] = self._picked(self._columns.pod_count())
        return kept

    # ---- other values

    def ids(self, part: Part) -> IdArray:
        """Ids of the values, good for these rows only: equal if and only if the values are. Texts of all parts have ids
        in common. 0 if the entry of a map is not there, which is another id than that of "": see `same_text`."""
        kept: IdArray | None = self._kept.get(part)
        if kept is None:
            kept = self._kept[part] = self._picked(self._columns.ids(part).ids)
        return kept

    def id_of(self, text: str) -> int:
        """The id of a text; one that no row has, perhaps -1, if no node has that text."""
        return self._columns.interner.known(text)

    def text_of(self, id_: int) -> str:
        """The text with that id; "" for 0, and for what is no text."""
        return self._columns.interner.texts[id_]

    def same_text(self, part: Part, text: str) -> BoolArray:
        """Whether the part reads as this text in the language, where what is not there reads as ""."""
        ids = self.ids(part)
        same: BoolArray = ids == self.id_of(text)
        return same | (ids == ABSENT) if text == "" and part[0] in MAPS else same

    def group(self, parts: tuple[Part, ...]) -> Group:
        """The distinct combinations of values of these parts: for each row the number of its combination, and for each
        number a node that has it, which need not be one of the rows. Without parts there is one combination."""
        kept: Group | None = self._kept.get(parts)
        if kept is None:
            kept = self._kept[parts] = self._group(parts)
        return kept

    def _group(self, parts: tuple[Part, ...]) -> Group:
        if not parts:
            return np.zeros(self.size, np.int64), [self._node(0)] if self.size else []
        if self._slots is None:
            groups = self._columns.groups(parts)
        elif self.size <= FEW:
            groups = _one_by_one([self.ids(part).tolist() for part in parts], self.size)
        else:
            groups = self._columns.selection(self._slots, parts).groups
        return groups.codes, [self._node(row) for row in groups.firsts.tolist()]

    def _node(self, row: int) -> NodeInfo:
        return self._columns.nodes[row if self._slots is None else self._slots[row]]

    # ---- from views

    def gather(self, counts: Mapping[str, Any], part: Part) -> Numbers:
        """The number that each row's text has in the map; 0 where it has none, and "" is the text of what is not there.
        All numbers of the map are of one type, and so are those of the result: int64, or float64."""
        first = next(iter(counts.values()), 0)
        found: Numbers = self._looked_up(counts, part, np.float64 if isinstance(first, float) else np.int64)
        return found

    def has_key(self, entries: Mapping[str, Any], part: Part) -> BoolArray:
        """Whether the map has an entry for the row's text."""
        found: BoolArray = self._looked_up(dict.fromkeys(entries, True), part, np.bool_)
        return found

    def _looked_up(self, entries: Mapping[str, Any], part: Part, dtype: type[np.generic]) -> Any:
        if not entries:
            return np.zeros(self.size, dtype)
        column = self._columns.ids(part)
        if self._slots is None:
            return column.looked_up(entries, dtype)[column.groups().codes]
        if self.size <= FEW:
            texts = self._columns.interner.texts
            return np.array([entries.get(texts[id_], 0) for id_ in self.ids(part).tolist()], dtype)
        return column.looked_up(entries, dtype)[self._columns.selection(self._slots, (part,)).codes]

    def _picked(self, values: npt.NDArray[Item]) -> npt.NDArray[Item]:
        return values if self._slots is None else values[self._pick]


def _one_by_one(columns: list[list[int]], size: int) -> Groups:
    """The groups of a few rows."""
    numbers: dict[tuple[int, ...], int] = {}
    firsts: list[int] = []
    codes = np.empty(size, np.int64)
    for row, ids in enumerate(zip(*columns, strict=True)):
        number = numbers.setdefault(ids, len(numbers))
        if number == len(firsts):
            firsts.append(row)
        codes[row] = number
    return Groups(codes, np.array(firsts, np.int64))
