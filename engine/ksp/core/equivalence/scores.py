"""How good the feasible nodes are, by what the memos of a profile's priorities say of them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from ksp.compile.node_columns import IntArray, NodeColumns, Rows
from ksp.compile.runtime import Failure, largest, reversed_
from ksp.core.equivalence.priorities import PriorityMemo, Scores, first_outside
from ksp.core.score import Scored, failing, out_of_range, prescore_failing
from ksp.model.info import NodeInfo
from ksp.policy.profile import ActivePriority


class Feasible:
    """The feasible nodes of a decision, in order."""

    def __init__(self, columns: NodeColumns, slots: IntArray) -> None:
        self.columns = columns
        self.slots = slots

    @cached_property
    def rows(self) -> Rows:
        return self.columns.rows(self.slots)

    @cached_property
    def nodes(self) -> Sequence[NodeInfo]:
        return self.rows.nodes


def scored(memos: Sequence[PriorityMemo], pod: str, feasible: Feasible) -> Scored:
    """The scores of the feasible nodes by all priorities, as `sums` has them."""
    by_plugin: dict[str, list[int]] = {}
    total = sums(memos, pod, feasible, by_plugin)
    return Scored(error=total) if isinstance(total, str) else Scored(by_plugin, total.tolist())


def sums(
    memos: Sequence[PriorityMemo], pod: str, feasible: Feasible, by_plugin: dict[str, list[int]] | None = None
) -> Scores | str:
    """The weighted sums of the scores of the feasible nodes by all priorities, whose memos are up to date; or why there
    are none. `pod` is its name. Without a priority each node has 1. The scores themselves go into `by_plugin`."""
    for memo in memos:
        if memo.bound.outcome is not None:
            return prescore_failing(_active(memo), pod, memo.bound.outcome)
    total = np.full(len(feasible.slots), 0 if memos else 1, dtype=np.int64)
    for memo in memos:
        active = _active(memo)
        scores = normalized(memo, feasible)
        if isinstance(scores, Failure):
            return failing(pod, scores)
        outside = first_outside(scores)
        if outside is not None:
            return out_of_range(active, outside)
        total += active.weight * scores
        if by_plugin is not None:
            by_plugin[active.plugin] = [scores] * len(total) if isinstance(scores, int) else scores.tolist()
    return total


def normalized(memo: PriorityMemo, feasible: Feasible) -> Scores | int | Failure:
    """The scores of the feasible nodes, in order; one number if all are the same."""
    raw = _raw(memo, feasible)
    bound = memo.bound
    if isinstance(raw, Failure) or bound.normalize is None:
        return raw
    if isinstance(raw, int) and (bound.normalize is largest or bound.normalize is reversed_):
        return int(bound.normalize((), (raw,))[0])
    each = np.full(len(feasible.slots), raw, dtype=np.int64) if isinstance(raw, int) else raw
    if bound.normal is not None and memo.in_columns:
        made = bound.normal(feasible.rows, each)
        return made if isinstance(made, np.ndarray) else int(made)
    return np.array(bound.normalize(feasible.nodes, each.tolist()), dtype=np.int64)


def _raw(memo: PriorityMemo, feasible: Feasible) -> Scores | int | Failure:
    if memo.of_feasible:
        return _of_feasible(memo, feasible)
    if memo.failures:
        failed = next((memo.failures[slot] for slot in feasible.slots.tolist() if slot in memo.failures), None)
        if failed is not None:
            return failed
    if memo.raw is None:
        assert memo.uniform is not None
        return memo.uniform
    return memo.raw[feasible.slots]


def _of_feasible(memo: PriorityMemo, feasible: Feasible) -> Scores | int | Failure:
    """Scores that depend on which nodes are feasible: made for one decision."""
    bound = memo.bound
    if bound.column is not None and memo.in_columns:
        return _first_failure_or_values(bound.column(feasible.rows))
    scores = bound.scores(feasible.nodes)
    return scores if isinstance(scores, Failure) else np.array(scores, dtype=np.int64)


def _first_failure_or_values(scores: Any) -> Scores | int | Failure:
    if scores.codes is not None:
        failed = np.flatnonzero(scores.codes)
        if len(failed):
            failure = scores.answers[scores.codes[failed[0]]]
            assert isinstance(failure, Failure)
            return failure
    values: Scores | int = scores.values
    return values


def _active(memo: PriorityMemo) -> ActivePriority:
    active = memo.subject.active
    assert isinstance(active, ActivePriority)
    return active
