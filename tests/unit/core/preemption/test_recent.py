"""Maps by kind, of which the least recently used give way."""

from __future__ import annotations

from ksp.core.preemption.recent import Recent


def fill(subject: Recent, kind: str, entries: int) -> None:
    subject.of(kind).update(dict.fromkeys(range(entries)))


def known(subject: Recent, *kinds: str) -> list[int]:
    return [len(subject.of(kind)) for kind in kinds]


def test_a_kind_has_its_map_until_all_is_forgotten() -> None:
    subject = Recent(10)
    fill(subject, "a", 2)
    fill(subject, "b", 3)
    assert known(subject, "a", "b", "c") == [2, 3, 0]
    subject.clear()
    assert known(subject, "a", "b", "c") == [0, 0, 0]


def test_the_least_recently_used_gives_way_to_too_many_entries() -> None:
    subject = Recent(10)
    for kind in "abc":
        fill(subject, kind, 3)
    assert known(subject, "a") == [3]
    fill(subject, "d", 3)  # twelve now
    assert known(subject, "d", "a", "c") == [3, 3, 3]
    assert known(subject, "b") == [0]


def test_the_least_recently_used_gives_way_to_too_many_kinds() -> None:
    subject = Recent(10, kinds=2)
    fill(subject, "a", 1)
    fill(subject, "b", 1)
    fill(subject, "a", 1)
    fill(subject, "c", 1)
    assert known(subject, "a", "c") == [1, 1]
    assert known(subject, "b") == [0]


def test_one_that_is_too_large_by_itself_begins_anew() -> None:
    subject = Recent(10)
    fill(subject, "a", 11)
    assert known(subject, "a") == [0]
    fill(subject, "a", 10)
    assert known(subject, "a") == [10]
