from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.kube.timers import VirtualTimers

from ksp.kube.backoff import Backoff
from ksp.kube.versions import is_newer, is_older


def test_waits_double_up_to_the_longest() -> None:
    backoff = Backoff(VirtualTimers())
    assert [backoff.next() for _ in range(8)] == [0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 30.0, 30.0]


def test_jitter_adds_up_to_as_much_again() -> None:
    backoff = Backoff(VirtualTimers(jitter=0.5))
    assert [backoff.next() for _ in range(3)] == pytest.approx([1.2, 2.4, 4.8])


async def test_two_healthy_minutes_after_the_wait_begin_anew() -> None:
    timers = VirtualTimers()
    backoff = Backoff(timers)
    for _ in range(7):
        backoff.next()
    await timers.advance(150.0)
    assert backoff.next() == 30.0
    await timers.advance(150.1)
    assert backoff.next() == 0.8


def test_reset() -> None:
    backoff = Backoff(VirtualTimers())
    backoff.next()
    backoff.reset()
    assert backoff.next() == 0.8


@given(st.integers(1, 10**30), st.integers(1, 10**30))
def test_versions_that_are_numbers_compare_as_numbers(one: int, other: int) -> None:
    assert is_newer(str(one), str(other)) == (one > other)
    assert is_older(str(one), str(other)) == (one < other)


@pytest.mark.parametrize("version", ["", "0", "007", "v5", "1.5", "-3", "٣", "5 "])
def test_what_is_no_positive_number_is_only_compared_for_equality(version: str) -> None:
    for other in ("7", "0", "", "zz"):
        assert not is_older(version, other)
        assert not is_older(other, version)
        assert is_newer(version, other) == (version != other)
    assert not is_newer(version, version)
