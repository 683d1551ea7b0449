"""Verdicts and scores of many nodes: what a rule's column function gives, and how it gathers it.

The first `deny` or `fail` that holds for a row settles it. A row is *open* until then, or until a `stop` holds for it.
Under `collect` each `deny` that holds is noted, and settles the row at the end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ksp.compile.node_rows import Rows
from ksp.compile.node_values import BoolArray, IntArray, Part
from ksp.compile.runtime import Denial, Failure
from ksp.model.info import NodeInfo

Answer = Denial | Failure | None
Codes = NDArray[np.int32]
Reasons = tuple[str, ...]
Noted = tuple[BoolArray, Reasons, bool]
WIDE = 62  # denies of one `collect` that have a bit each
MANY = 1 << 12  # keys that a table of all of them still tells apart quickly


@dataclass(slots=True)
class Verdicts:
    """Of a predicate: `codes` of the rows are indexes into `answers`, of which the first is None: admitted."""

    codes: IntArray | Codes
    answers: list[Answer]


@dataclass(slots=True)
class Scores:
    """Of a priority: `values`, or one int if all rows have the same. If `codes` is not None, those of failures are
    above 0, and indexes into `answers`; the values of such rows mean nothing."""

    values: IntArray | int
    codes: IntArray | Codes | None
    answers: list[Answer]


class Ruling:
    """Gathers the verdicts on some rows, statement by statement. A mask of None stands for all rows."""

    def __init__(self, rows: Rows) -> None:
        self.rows = rows
        self.answers: list[Answer] = [None]
        self.codes: Codes | None = None
        self.open: BoolArray | None = None  # None: all rows
        self.noted: list[Noted] = []

    # ---- statements

    def settle(self, mask: BoolArray | None, answer: Denial | Failure) -> None:
        """A `deny` or `fail` that says the same of all rows for which it holds."""
        hit = self._among_open(mask)
        if hit.any():
            self._settle(hit, answer)

    def settle_each(
        self, mask: BoolArray | None, parts: tuple[Part, ...], answer_of: Callable[[NodeInfo], Any]
    ) -> None:
        """One whose text depends on the node: on these parts, or on all of it if there are none."""
        hit = self._among_open(mask)
        if hit.any():
            for some, answer in self._answers(hit, parts, answer_of):
                self._settle(some, answer)

    def stop(self, mask: BoolArray | None) -> None:
        """The rule ends for these rows."""
        hit = self._among_open(mask)
        self._close(hit)

    def note(self, mask: BoolArray | None, unresolvable: bool, reasons: Reasons) -> None:
        """A `deny` under `collect`."""
        hit = self._among_open(mask)
        if hit.any():
            self.noted.append((hit, reasons, unresolvable))

    def note_each(
        self, mask: BoolArray | None, unresolvable: bool, parts: tuple[Part, ...], reasons_of: Callable[[NodeInfo], Any]
    ) -> None:
        """One whose reasons depend on the node."""
        hit = self._among_open(mask)
        if hit.any():
            self.noted.extend((some, reasons, unresolvable) for some, reasons in self._answers(hit, parts, reasons_of))

    def collected(self) -> None:
        """The end of `collect`: rows for which anything was noted are denied, if nothing else settled them."""
        noted, self.noted = self.noted, []
        if not noted:
            return
        unsettled = None if self.codes is None else self.codes == 0
        for hit, denial in _combinations(noted):
            some = hit if unsettled is None else hit & unsettled
            if some.any():
                self._settle(some, denial)

    def verdicts(self) -> Verdicts:
        """The end of the rule."""
        if self.noted:
            self.collected()
        codes = np.zeros(self.rows.size, np.int32) if self.codes is None else self.codes
        return Verdicts(codes, self.answers)

    # ---- rows

    def _among_open(self, mask: BoolArray | None) -> BoolArray:
        if mask is None:
            return np.ones(self.rows.size, np.bool_) if self.open is None else self.open
        return mask if self.open is None else mask & self.open

    def _close(self, hit: BoolArray) -> None:
        self.open = ~hit if self.open is None else self.open & ~hit

    def _settle(self, hit: BoolArray, answer: Answer) -> None:
        self.answers.append(answer)
        number = len(self.answers) - 1
        if self.codes is None:
            self.codes = hit.astype(np.int32)
            if number > 1:
                self.codes *= number
        else:
            np.putmask(self.codes, hit, number)
        self._close(hit)

    def _answers(
        self, hit: BoolArray, parts: tuple[Part, ...], answer_of: Callable[[NodeInfo], Any]
    ) -> list[tuple[BoolArray, Any]]:
        """The rows that were hit, by what is said of them."""
        if not parts:
            by_answer: dict[Any, list[int]] = {}
            for i in np.flatnonzero(hit).tolist():
                by_answer.setdefault(answer_of(self.rows.nodes[i]), []).append(i)
            return [(_mask(len(hit), places), answer) for answer, places in by_answer.items()]
        inverse, representatives = self.rows.group(parts)
        met = np.flatnonzero(np.bincount(inverse[hit], minlength=len(representatives))).tolist()
        return [(hit & (inverse == group), answer_of(representatives[group])) for group in met]


def _mask(size: int, places: list[int]) -> BoolArray:
    mask = np.zeros(size, np.bool_)
    mask[places] = True
    return mask


def _combinations(noted: Sequence[Noted]) -> Iterator[tuple[BoolArray, Denial]]:
    """The rows for which the same denies held, and what is said of them."""
    if len(noted) == 1:
        hit, reasons, unresolvable = noted[0]
        yield hit, Denial(unresolvable, reasons)
        return
    keys = noted[0][0].astype(np.int64)
    for i, (hit, _, _) in enumerate(noted[1:], 1):
        keys = keys + (hit.astype(np.int64) << min(i, WIDE))
    if len(noted) > WIDE:
        together = np.stack([hit for hit, _, _ in noted], axis=1)
        _, keys = np.unique(together, axis=0, return_inverse=True)
        keys = np.where(together.any(axis=1), keys.reshape(-1) + 1, 0)
    for key in _different(keys):
        same = keys == key
        first = int(np.argmax(same))
        yield same, _joined([(reasons, unresolvable) for hit, reasons, unresolvable in noted if hit[first]])


def _different(keys: IntArray) -> list[int]:
    """The keys that occur, without 0."""
    if keys.max(initial=0) < MANY:
        return [key for key in np.flatnonzero(np.bincount(keys, minlength=1)).tolist() if key]
    return [key for key in np.unique(keys).tolist() if key]


def _joined(held: Sequence[tuple[Reasons, bool]]) -> Denial:
    """The denial of the rows for which these of the denies held."""
    texts = tuple(text for reasons, _ in held for text in reasons)
    return Denial(any(unresolvable for _, unresolvable in held), texts)


def scored(values: Any) -> Scores:
    """Scores of a rule that cannot fail: an array or, if no row differs, an int."""
    return Scores(values, None, [None])


def scored_unless(ruling: Ruling, values: Any) -> Scores:
    """Scores of the rows that did not fail."""
    return Scores(values, ruling.codes, ruling.answers)
