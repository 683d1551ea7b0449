from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.unit.sim.bench.measured import runs

from ksp.sim.bench.comparison import COMPARED, PREEMPTIONS, Change, Comparison, compared
from ksp.sim.bench.figures import Run
from ksp.sim.bench.records import Record, RecordError


def compare(before: list[Run], after: list[Run]) -> Comparison:
    return compared(Record(before), Record(after))


def rate(of: Comparison) -> Change:
    (pair,) = of.pairs
    (change,) = (each for each in pair.changes if each.figure == "decisions_per_second")
    return change


def test_the_ratio_is_of_the_medians() -> None:
    found = rate(compare(runs(10.0, 20.0, 30.0), runs(60.0, 50.0, 40.0)))
    assert (found.before, found.after, found.ratio, found.clear) == (20.0, 50.0, 2.5, True)


def test_spreads_that_meet_make_a_difference_meaningless() -> None:
    assert rate(compare(runs(10.0, 20.0, 30.0), runs(30.0, 40.0, 50.0))).clear is False


@pytest.mark.parametrize(("before", "after"), [([10.0], [20.0, 30.0]), ([10.0, 20.0], [30.0])])
def test_of_one_run_the_spread_is_not_known(before: list[float], after: list[float]) -> None:
    assert rate(compare(runs(*before), runs(*after))).clear is None


def test_no_ratio_to_nothing() -> None:
    assert rate(compare(runs(0.0), runs(1.0))).ratio is None


def test_other_conditions_may_differ_and_are_named() -> None:
    found = compare(runs(1.0), runs(1.0, columns=False, equivalence_classes=False, policy="own.ksp"))
    assert [pair.differing for pair in found.pairs] == [["policy", "equivalence_classes", "columns"]]


def test_what_only_one_has_is_named() -> None:
    before = [*runs(1.0), *runs(1.0, nodes=20)]
    after = [*runs(1.0), *runs(1.0, workload="StatefulSets")]
    found = compare(before, after)
    assert len(found.pairs) == 1
    assert [each.nodes for each in found.only_before] == [20]
    assert [each.workload for each in found.only_after] == ["StatefulSets"]


@pytest.mark.parametrize("other", [{"nodes": 11}, {"pods": 21}, {"existing": 3}, {"pending": 1}])
def test_sizes_have_to_be_the_same(other: dict[str, Any]) -> None:
    with pytest.raises(RecordError) as error:
        compare(runs(1.0), runs(1.0, **other))
    assert "no workload in common at the same size" in str(error.value)
    assert "SchedulingBasic (10 nodes)" in str(error.value)


def test_one_file_that_measured_a_workload_in_two_ways() -> None:
    with pytest.raises(RecordError) as error:
        compare([*runs(1.0), *runs(1.0, seed=2)], runs(1.0))
    assert str(error.value) == "SchedulingBasic was measured in several ways (seed) in one file"


def test_preemptions_are_compared_where_there_are_any() -> None:
    """In runs of tests there is one, and one a second."""
    before, after = runs(100, workload="PreemptionBasic"), runs(100, workload="PreemptionBasic")
    (pair,) = compare(before, after).pairs
    assert [change.figure for change in pair.changes] == [*COMPARED, PREEMPTIONS]
    without = [replace(run, figures=replace(run.figures, preemptions=0)) for run in before]
    (pair,) = compare(without, without).pairs
    assert [change.figure for change in pair.changes] == [*COMPARED]
