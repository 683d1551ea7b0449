from __future__ import annotations

import pytest
from tests.unit.kube.timers import VirtualTimers

from ksp.kube.http.backoff import Backoff


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
