from __future__ import annotations

from dataclasses import replace

from tests.unit.sim.bench.measured import runs

from ksp.cli.bench_tables import Table, measurements
from ksp.sim.bench.figures import Run
from ksp.sim.bench.records import Record

TABLE = Table(("name", "first", "second", "third"), [("a", "1", "22", "333"), ("bbbbbb", "4", "5", "6")])


def test_a_table_that_is_wide_enough_is_one_block() -> None:
    whole = "name    first  second  third\na           1      22    333\nbbbbbb      4       5      6"
    assert TABLE.text() == TABLE.text(28) == whole


def test_columns_that_are_too_many_for_a_terminal_follow_below() -> None:
    first = "name    first  second\na           1      22\nbbbbbb      4       5"
    rest = "name    third\na         333\nbbbbbb      6"
    assert TABLE.text(27) == TABLE.text(21) == f"{first}\n\n{rest}"


def test_each_block_has_one_column_beside_the_name_at_least() -> None:
    blocks = TABLE.text(1).split("\n\n")
    assert [block.split("\n")[0].split() for block in blocks] == [
        ["name", each] for each in ("first", "second", "third")
    ]


def test_preemptions_stand_last_where_there_are_any() -> None:
    some, others = runs(100, workload="PreemptionBasic")[0], runs(100)[0]
    none = _preempting(others, 0, 0.0)
    table = measurements(Record([_preempting(some, 12, 345.6), none]))
    assert table.heads[-2:] == ("preemptions", "preemptions/s")
    assert [row[-2:] for row in table.rows] == [["12", "346"], ["-", "-"]]
    assert "preemptions" not in measurements(Record([none])).heads


def _preempting(run: Run, preemptions: int, rate: float) -> Run:
    return replace(run, figures=replace(run.figures, preemptions=preemptions, preemptions_per_second=rate))
