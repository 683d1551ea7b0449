"""What a priority asks of all feasible nodes together: sums and counts over the rows, and views of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ksp.check import builtins
from ksp.compile.columns.numbers import Array, divided
from ksp.compile.node_rows import Rows
from ksp.compile.node_values import ABSENT, BoolArray, IntArray, Part
from ksp.model.info import NodeInfo
from ksp.model.int64 import wrap


def _of(values: Array, mask: BoolArray | None) -> Array:
    return values if mask is None else values[mask]


def count_of(rows: Rows, mask: BoolArray | None) -> int:
    """How many rows there are."""
    if rows.times is not None:
        return int(_of(rows.times, mask).sum())
    return rows.size if mask is None else int(np.count_nonzero(mask))


def sum_of(values: Array, mask: BoolArray | None) -> Any:
    """Of ints modulo 2**64; of doubles from the left."""
    some = _of(values, mask)
    if some.dtype == np.float64:
        return float(np.cumsum(np.append(0.0, some))[-1])
    return int(np.add.reduce(some, dtype=np.int64))


def smallest_of(values: Array, mask: BoolArray | None, otherwise: Any) -> Any:
    some = _of(values, mask)
    if some.dtype == np.int64:
        return int(some.min()) if some.size else otherwise
    return builtins.smallest_of(some.tolist(), otherwise)


def largest_of(values: Array, mask: BoolArray | None, otherwise: Any) -> Any:
    some = _of(values, mask)
    if some.dtype == np.int64:
        return int(some.max()) if some.size else otherwise
    return builtins.largest_of(some.tolist(), otherwise)


def scaled(_rows: Rows, raw: IntArray) -> IntArray | int:
    """`normalize`: 100 for the highest score, the others in proportion; 0 for all if none is above 0."""
    most = int(raw.max(initial=0))
    return divided(raw * 100, most, 0) if most > 0 else 0


def scaled_reversed(rows: Rows, raw: IntArray) -> IntArray | int:
    """`normalize reversed`: the other way round; 100 for all if none is above 0."""
    return 100 - scaled(rows, raw)


class Counted(Mapping[str, Any]):
    """What was counted, or added up, under each text: by the texts' ids. Entries are there as long as something counts
    towards them. The texts themselves are looked up when somebody asks for one."""

    def __init__(self, rows: Rows, counts: IntArray, amounts: Array) -> None:
        self._rows = rows
        self._ids = np.flatnonzero(counts)
        self._amounts = amounts
        self._made: dict[str, Any] | None = None

    @property
    def _by_text(self) -> dict[str, Any]:
        if self._made is None:
            texts = map(self._rows.text_of, self._ids.tolist())
            self._made = dict(zip(texts, self._amounts[self._ids].tolist(), strict=True))
        return self._made

    def __len__(self) -> int:
        return len(self._ids)

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_text)

    def __getitem__(self, text: str) -> Any:
        return self._by_text[text]


class Tally:
    """A view over the rows, on its way. `doubles` if it adds up doubles; else its numbers are ints, and wrap."""

    def __init__(self, rows: Rows, depth: int, doubles: bool) -> None:
        self.rows = rows
        self.depth = depth
        self.type: Any = np.float64 if doubles else np.int64
        self.by_id: dict[tuple[Any, ...], tuple[IntArray, Array]] = {}
        self.by_key: dict[tuple[Any, ...], dict[Any, tuple[int, Any]]] = {}

    def add_text(self, mask: BoolArray | None, path: tuple[Any, ...], part: Part, amount: Array | None) -> None:
        """Rows by their text, below keys that are the same for all of them."""
        ids = self.rows.ids(part)
        ids = _of(np.where(ids == ABSENT, self.rows.id_of(""), ids), mask)
        size = int(ids.max(initial=0)) + 1
        counts = np.bincount(ids, minlength=size)
        amounts = counts if amount is None else self._added_up(ids, _of(amount, mask), size)
        known = self.by_id.get(path)
        self.by_id[path] = (counts, amounts) if known is None else (_plus(known[0], counts), _plus(known[1], amounts))

    def add_parts(
        self,
        mask: BoolArray | None,
        path: tuple[Any, ...],
        parts: tuple[Part, ...],
        keys_of: Callable[[NodeInfo], Sequence[Any]],
        amount: Array | None,
    ) -> None:
        """Rows by keys that are made of these parts: one, or none."""
        inverse, representatives = self.rows.group(parts)
        counts, amounts = self._by_group(_of(inverse, mask), mask, amount, len(representatives))
        entries = self.by_key.setdefault(path, {})
        for group, count in enumerate(counts):
            if count:
                for key in keys_of(representatives[group]):
                    known, before = entries.get(key, (0, 0))
                    entries[key] = known + count, before + amounts[group]

    def _by_group(
        self, codes: IntArray, mask: BoolArray | None, amount: Array | None, groups: int
    ) -> tuple[Sequence[int], Sequence[Any]]:
        """How many rows there are of each group, and what they add up to."""
        times = self.rows.times
        if times is None:
            counts = np.bincount(codes, minlength=groups)
            amounts = counts if amount is None else self._added_up(codes, _of(amount, mask), groups)
            return counts.tolist(), amounts.tolist()
        found, sums = [0] * groups, [0] * groups
        each = [1] * len(codes) if amount is None else _of(amount, mask).tolist()
        for code, number, value in zip(codes.tolist(), _of(times, mask).tolist(), each, strict=True):
            found[code] += number
            sums[code] += number * value
        return found, sums

    def _added_up(self, codes: NDArray[Any], amounts: Array, size: int) -> Array:
        """In the order of the rows: of doubles it matters."""
        sums = np.zeros(size, self.type)
        np.add.at(sums, codes, amounts)
        return sums

    def result(self) -> Any:
        """The view as a rule reads it: nested maps by key, or one number."""
        found: dict[Any, Any] = {}
        for path, (counts, amounts) in self.by_id.items():
            counted = Counted(self.rows, counts, amounts)
            if len(counted):
                _put(found, path, counted)
        for path, entries in self.by_key.items():
            for key, (_, amount) in entries.items():
                _put(found, (*path, key), wrap(amount) if isinstance(amount, int) else amount)
        return found.get((), found)


def _put(found: dict[Any, Any], path: tuple[Any, ...], value: Any) -> None:
    if not path:
        found[()] = value
        return
    for key in path[:-1]:
        found = found.setdefault(key, {})
    found[path[-1]] = value


def _plus(a: Array, b: Array) -> Array:
    """The sum of two arrays, of which one may be longer."""
    longer, shorter = (a, b) if len(a) >= len(b) else (b, a)
    total = longer.copy()
    total[: len(shorter)] += shorter
    return total
