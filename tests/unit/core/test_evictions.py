"""Victims of preemptions whose end no watch has shown yet."""

from __future__ import annotations

from ksp.core.evictions import Evictions


def test_a_victim_counts_until_the_watch_shows_its_end() -> None:
    evictions = Evictions()
    evictions.begin("high", "n", ["a", "b"])
    assert set(evictions.victims) == {"a", "b"}
    evictions.shown("a")
    assert set(evictions.victims) == {"b"}
    evictions.shown("b")
    assert not evictions.victims


def test_a_victim_of_two_counts_until_both_give_it_up() -> None:
    evictions = Evictions()
    evictions.begin("high", "n", ["a"])
    evictions.begin("higher", "n", ["a", "b"])
    evictions.give_up("higher")
    assert set(evictions.victims) == {"a"}
    evictions.give_up("high")
    assert not evictions.victims


def test_who_preempts_again_gives_up_those_of_before() -> None:
    """On another node, since its own is out of the question: nobody goes on with the first."""
    evictions = Evictions()
    evictions.begin("high", "n", ["a", "b"])
    evictions.begin("high", "n", ["c"])
    assert set(evictions.victims) == {"c"}
    evictions.begin("high", "n", [])
    assert not evictions.victims


def test_what_is_not_known_changes_nothing() -> None:
    evictions = Evictions()
    evictions.begin("high", "n", ["a"])
    evictions.shown("another")
    evictions.give_up("another")
    assert set(evictions.victims) == {"a"}


def test_nothing_is_left_of_a_victim_that_two_shared() -> None:
    evictions = Evictions()
    evictions.begin("high", "n", ["a"])
    evictions.begin("higher", "n", ["a"])
    evictions.shown("a")
    evictions.give_up("high")
    evictions.begin("high", "n", ["a"])
    assert set(evictions.victims) == {"a"}
