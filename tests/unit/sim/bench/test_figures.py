from __future__ import annotations

import pytest
from tests.unit.sim.bench.measured import conditions, figures, runs

from ksp.sim.bench.figures import Run, Spread, percentile, summaries


@pytest.mark.parametrize(
    ("values", "share", "expected"),
    [
        ([], 0.5, 0.0),
        ([3.0], 0.01, 3.0),
        ([3.0], 0.99, 3.0),
        ([1.0, 2.0], 0.5, 1.0),
        ([1.0, 2.0], 0.51, 2.0),
        ([float(i) for i in range(1, 11)], 0.9, 9.0),
        ([float(i) for i in range(1, 102)], 0.99, 100.0),
        ([1.0, 2.0, 3.0], 1.0, 3.0),
        ([1.0, 2.0, 3.0], 0.0, 1.0),
    ],
)
def test_percentile(values: list[float], share: float, expected: float) -> None:
    assert percentile(values, share) == expected


def test_medians_and_spread() -> None:
    (found,) = summaries(runs(30.0, 10.0, 20.0))
    assert (found.runs, found.median.decisions_per_second) == (3, 20.0)
    assert found.spread["decisions_per_second"] == Spread(10.0, 30.0)


def test_runs_under_the_same_conditions_belong_together() -> None:
    first, other = runs(10.0, 30.0), runs(99.0, nodes=11)
    found = summaries([first[0], *other, first[1]])
    assert [(each.conditions.nodes, each.runs) for each in found] == [(10, 2), (11, 1)]
    assert found[0].median.decisions_per_second == 20.0


def test_counts_stay_whole() -> None:
    (found,) = summaries([Run(conditions(), figures(attempts=count)) for count in (10, 13)])
    assert found.median.attempts in {11, 12}
    assert isinstance(found.median.attempts, int)


@pytest.mark.parametrize(("least", "most", "meets"), [(5, 6, False), (5, 10, True), (20, 30, True), (21, 30, False)])
def test_spreads_meet(least: float, most: float, meets: bool) -> None:
    assert Spread(10, 20).meets(Spread(least, most)) is meets
    assert Spread(least, most).meets(Spread(10, 20)) is meets
