"""`normalize` by combinations of parts and scores gives each node what it gets by itself."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from tests.unit.compile.compiling import compiled, priority
from tests.unit.core.scheduling import cluster, node

from ksp.compile.columns.combinations import MOST, ByCombination
from ksp.compile.node_columns import NodeColumns

HEAD = "priority P { score node.podCount normalize {"
BY_ZONE = f"""{HEAD}
  view inZone = sum n.score for n in feasible where "zone" in n.labels by n.labels["zone"] + "!"
  view nodes = count n in feasible by n.labels["zone"] + "!"
  let top = feasible.map(n, n.score).max(0)
  let zone = node.labels["zone"] + "!"
  score div(100 * (top - node.score), top, 100) + inZone[zone] - 3 * nodes[zone] }} }}"""
ALONE = f"{HEAD} let low = feasible.map(n, n.score).min(0) score node.score - low + size(feasible) }} }}"
SUMMED = f"{HEAD} score node.score - feasible.map(n, n.score).sum() }} }}"
BY_NAME = f'{HEAD} score node.name == "n1" ? 0 : node.score }} }}'

STATE = cluster(*(node(f"n{i}", labels={"zone": "abc"[i % 3]} if i % 7 else {}) for i in range(60)))


@pytest.mark.parametrize("text", [BY_ZONE, ALONE])
@pytest.mark.parametrize("most", [0, 3, 100, 10 * MOST, 2**62])
def test_each_node_gets_what_it_gets_by_itself(text: str, most: int) -> None:
    bound = priority(text, STATE)
    assert isinstance(bound.normal, ByCombination)
    assert bound.normalize is not None
    columns, dice = NodeColumns(STATE), Random(most)
    columns.follow()
    for size in (1, 2, 17, 60):
        slots = columns.order[np.array(sorted(dice.sample(range(60), size)))]
        raw = [dice.randint(-most, most) for _ in range(size)]
        rows = columns.rows(slots)
        made = bound.normal(rows, np.array(raw, np.int64))
        found = [made] * size if isinstance(made, int) else made.tolist()
        assert found == bound.normalize(rows.nodes, raw)


@pytest.mark.parametrize("text", [SUMMED, BY_NAME])
def test_what_depends_on_more_is_not_combined(text: str) -> None:
    bound = priority(text, STATE)
    assert bound.normal is not None, compiled(text).scalar_because
    assert not isinstance(bound.normal, ByCombination)
