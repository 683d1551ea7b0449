"""Values by parts: a scalar function asked once for each different combination of the parts of a node that it reads,
and its answers spread over the rows that have the combination."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ksp.compile.columns.verdicts import Answer, Scores, Verdicts
from ksp.compile.node_rows import Rows
from ksp.compile.node_values import Part
from ksp.compile.runtime import Failure
from ksp.model.info import NodeInfo

Array = NDArray[Any]
TYPES: Mapping[type, Any] = {bool: np.bool_, int: np.int64, float: np.float64}


def by_parts(rows: Rows, parts: tuple[Part, ...], value_of: Callable[[NodeInfo], Any], kind: type) -> Array:
    """The values of a function that reads these parts of a node."""
    inverse, representatives = rows.group(parts)
    values = np.array([value_of(node) for node in representatives], TYPES[kind])
    return values[inverse]


def by_name(
    rows: Rows,
    maps: Sequence[Mapping[str, Any]],
    parts: tuple[Part, ...],
    value_of: Callable[[NodeInfo], Any],
    kind: type,
) -> Array:
    """The values of a function that reads beside these parts what maps have under the node's name. Nodes that no map
    names are equal in that; each of the others is asked by itself."""
    named = np.zeros(rows.size, np.bool_)
    for entries in maps:
        if entries:
            named = named | rows.has_key(entries, ("name",))
    values = np.zeros(rows.size, TYPES[kind])
    rest = np.flatnonzero(~named)
    if rest.size:
        _spread_rest(rows, parts, value_of, rest, values)
    nodes = rows.nodes
    for i in np.flatnonzero(named).tolist():
        values[i] = value_of(nodes[i])
    return values


def _spread_rest(
    rows: Rows, parts: tuple[Part, ...], value_of: Callable[[NodeInfo], Any], rest: NDArray[np.intp], values: Array
) -> None:
    if not parts:
        values[rest] = value_of(rows.nodes[int(rest[0])])
        return
    inverse, _ = rows.group(parts)
    groups, first, among = np.unique(inverse[rest], return_index=True, return_inverse=True)
    nodes = rows.nodes
    found = np.array([value_of(nodes[int(rest[i])]) for i in first[: len(groups)]], values.dtype)
    values[rest] = found[among.reshape(-1)]


def verdicts_by_parts(rows: Rows, parts: tuple[Part, ...], check: Callable[[NodeInfo], Answer]) -> Verdicts:
    """The verdicts of a whole rule that reads only these parts."""
    inverse, representatives = rows.group(parts)
    answers: list[Answer] = [None]
    codes = [_code(check(node), answers) for node in representatives]
    if len(answers) == 1:
        return Verdicts(np.zeros(rows.size, np.int32), answers)
    return Verdicts(np.array(codes, np.int32)[inverse], answers)


def _code(answer: Answer, answers: list[Answer]) -> int:
    if answer is None:
        return 0
    answers.append(answer)
    return len(answers) - 1


def scores_by_parts(rows: Rows, parts: tuple[Part, ...], score: Callable[[NodeInfo], int | Failure]) -> Scores:
    """The scores of a whole rule that reads only these parts."""
    inverse, representatives = rows.group(parts)
    answers: list[Answer] = [None]
    found = [score(node) for node in representatives]
    codes = [_code(each, answers) if isinstance(each, Failure) else 0 for each in found]
    values = [0 if isinstance(each, Failure) else each for each in found]
    if len(answers) > 1:
        return Scores(np.array(values, np.int64)[inverse], np.array(codes, np.int32)[inverse], answers)
    if len(set(values)) == 1:
        return Scores(values[0], None, answers)
    return Scores(np.array(values, np.int64)[inverse], None, answers)
