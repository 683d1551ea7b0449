"""The cluster as it is now, as those who keep something made of it ask for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from ksp.compile.node_columns import IntArray, NodeColumns, Rows
from ksp.compile.node_parts import ANYTHING
from ksp.compile.tables import Tables
from ksp.core.state import ClusterState

# Slots of nodes by the parts of them that changed.
Delta = Mapping[frozenset[str], Sequence[int]]

_NOTHING: Final[Delta] = {}


class Present:
    """State, views and columns of one scheduler. `generation` is the number of the last change that columns show."""

    def __init__(self, state: ClusterState, tables: Tables, columns: NodeColumns) -> None:
        self.state = state
        self.tables = tables
        self.columns = columns
        self.generation = -1
        self._deltas: dict[int, Delta | None] = {}
        self._rows: dict[tuple[int, ...], tuple[IntArray, Rows]] = {}

    @staticmethod
    def of(state: ClusterState) -> Present:
        """With views and columns of its own."""
        return Present(state, Tables(state), NodeColumns(state))

    def anew(self) -> Present:
        """With views of its own. Columns and terms, which belong to no policy, are shared."""
        return Present(self.state, Tables(self.state, terms=self.tables.terms), self.columns)

    def follow(self) -> int:
        """Bring the columns up to date; the number of the last change."""
        generation = self.state.generation
        if generation != self.generation:
            self.columns.follow()
            self._deltas.clear()
            self._rows.clear()
            self.generation = generation
        return generation

    def delta(self, since: int) -> Delta | None:
        """What of the nodes changed after that number; None if that is not known any more."""
        if since == self.generation:
            return _NOTHING
        if since not in self._deltas:
            self._deltas[since] = self._gathered(since)
        return self._deltas[since]

    def rows(self, slots: Sequence[int]) -> tuple[IntArray, Rows]:
        """Those of the slots that have a node, and these nodes. Good until the columns follow a change."""
        key = tuple(slots)
        found = self._rows.get(key)
        if found is None:
            array = np.array(key, dtype=np.int64)
            alive = self.columns.alive[array]
            if not alive.all():
                array = array[alive]
            found = self._rows[key] = array, self.columns.rows(array)
        return found

    def _gathered(self, since: int) -> Delta | None:
        touched = self.columns.changed(since)
        if touched is None:
            return None
        groups: dict[frozenset[str], dict[int, None]] = {}
        for touch in touched:
            groups.setdefault(touch.parts, {})[touch.slot] = None
        return {parts: tuple(slots) for parts, slots in groups.items()}


def replaced(delta: Delta) -> list[int]:
    """The slots whose node came or went."""
    return [slot for parts, slots in delta.items() if ANYTHING in parts for slot in slots]
