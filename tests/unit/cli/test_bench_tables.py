from __future__ import annotations

from ksp.cli.bench_tables import Table

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
