"""`normalize` by combinations: what a node gets of it often depends on a few parts of the node and its own score alone.

    let top = feasible.map(n, n.score).max(0)                  a maximum: how many nodes have it does not matter
    view inZone = sum n.score for n in feasible by zoneKey(n)  a sum: it does
    score int(100.0 * … top - node.score … inZone[zoneKey(node)] …)

So nodes with equal parts and equal scores can stand as one, with the number of them, and what that one gets is spread.
Whether a rule's `normal` can be asked so is read from its code: what it may ask of rows is here, or in
ksp.compile.columns.feasible with `times` taken into account.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from ksp.compile import code
from ksp.compile.node_rows import Rows
from ksp.compile.node_values import IntArray, Part
from ksp.model.info import NodeInfo

MOST: Final = 4_096  # combinations, there or not, that are counted
OF_ROWS: Final = frozenset({"_by_parts", "_Tally", "_filled", "_count_of", "_as_array"})
OF_SCORES: Final = frozenset({"_largest_row", "_smallest_row"})
NOT_SO: Final = frozenset({"_sum_of", "feasible", "scores"})

Normal = Callable[[Any, IntArray], IntArray | int]


@dataclass(frozen=True, slots=True)
class Bins:
    """Numbers for combinations: `width` for each group of nodes, for as many scores from `least` on."""

    least: int
    width: int
    size: int

    @staticmethod
    def of(raw: IntArray, groups: int, room: int = 0) -> Bins | None:
        """For these scores, at least one, and as many above them as there is to be `room`; None if that is too many."""
        least = int(raw.min())
        width = int(raw.max()) - least + 1 + room
        return Bins(least, width, width * groups) if width * groups <= MOST else None

    def codes(self, groups: IntArray, raw: IntArray) -> IntArray:
        """The number of each row's combination."""
        return groups * self.width + (raw - self.least)


class Distinct:
    """Rows that differ from each other in their group or their score; `times` is how many there are of each."""

    def __init__(self, groups: Sequence[int], node_of: Callable[[int], NodeInfo], times: IntArray) -> None:
        number: dict[int, int] = {}
        self.size = len(groups)
        self.times = times
        inverse = np.array([number.setdefault(group, len(number)) for group in groups], np.int64)
        self._group = inverse, [node_of(group) for group in number]

    def group(self, _: tuple[Part, ...]) -> tuple[IntArray, list[NodeInfo]]:
        """By all the parts: rows with equal values of some of them may be in different groups."""
        return self._group


class ByCombination:
    """The column form of a `normalize` that reads these parts of a node."""

    def __init__(self, parts: tuple[Part, ...], normal: Normal) -> None:
        self.parts = parts
        self.normal = normal

    def __call__(self, rows: Rows, raw: IntArray) -> IntArray | int:
        """The scores of the feasible nodes, as `normal` would give them row by row."""
        groups, representatives = rows.group(self.parts)
        bins = Bins.of(raw, len(representatives)) if rows.size else None
        if bins is None:
            return self.normal(rows, raw)
        codes = bins.codes(groups, raw)
        made = self.of_bins(bins, np.bincount(codes, minlength=bins.size), representatives.__getitem__)
        return made if isinstance(made, int) else made[codes]

    def of_bins(self, bins: Bins, times: IntArray, node_of: Callable[[int], NodeInfo]) -> IntArray | int:
        """The score of each combination, of which there are so many rows; `node_of` gives a node of a group. One number
        if all get the same. What is not there has 0, and there is one more such number at the end."""
        there = times.nonzero()[0]
        groups, raw = np.divmod(there, bins.width)
        made = self.normal(Distinct(groups.tolist(), node_of, times[there]), raw + bins.least)
        if not isinstance(made, np.ndarray):
            return int(made)
        table = np.zeros(len(times) + 1, np.int64)
        table[there] = made
        return table


def parts_in(normal: ast.stmt) -> ast.expr | None:
    """The parts of nodes that the code of a `normal` reads, as a tuple; None if it asks rows for more than that."""
    found: dict[str, ast.expr] = {}
    known = 0
    for part in ast.walk(normal):
        match part:
            case ast.Name(id=name) if name in NOT_SO:
                return None
            case ast.Call(func=ast.Name(id="_Tally"), args=[_, _, ast.Constant(value=True)]):
                return None
            case ast.Call(func=ast.Name(id=name), args=[first, *_]) if name in OF_SCORES:
                if not _is_name(first, "raw"):
                    return None
            case ast.Call(func=ast.Name(id=name), args=[first, *others]) if name in OF_ROWS and _is_name(first, "rows"):
                known += 1
                if name == "_by_parts" and not _gathered(others[0], found):
                    return None
            case ast.Call(func=ast.Attribute(attr="add_parts"), args=[_, _, parts, *_]):
                if not _gathered(parts, found):
                    return None
            case ast.Call(func=ast.Attribute(attr="add_text")):
                return None
    asked = sum(_is_name(part, "rows") for part in ast.walk(normal))
    return code.tuple_of(list(found.values())) if asked == known else None


def _is_name(expr: ast.AST, name: str) -> bool:
    return isinstance(expr, ast.Name) and expr.id == name


def _gathered(parts: ast.expr, found: dict[str, ast.expr]) -> bool:
    """Whether all parts are known when the rule is compiled; then they are among the found."""
    if not isinstance(parts, ast.Tuple):
        return False
    for part in parts.elts:
        if not isinstance(part, ast.Tuple) or not all(isinstance(step, ast.Constant) for step in part.elts):
            return False
        found.setdefault(ast.dump(part), part)
    return True
