"""How times are written."""

from __future__ import annotations

import datetime as dt

import pytest

from ksp.kube.wall_clock import SystemWallClock, microseconds, whole_seconds

EAST = dt.timezone(dt.timedelta(hours=2))


@pytest.mark.parametrize(
    ("moment", "seconds", "micros"),
    [
        (dt.datetime(2020, 1, 2, 3, 4, 5, tzinfo=dt.UTC), "2020-01-02T03:04:05Z", "2020-01-02T03:04:05.000000Z"),
        (dt.datetime(2020, 1, 2, 3, 4, 5, 999999, dt.UTC), "2020-01-02T03:04:05Z", "2020-01-02T03:04:05.999999Z"),
        (dt.datetime(2020, 1, 2, 1, 4, 5, 60, EAST), "2020-01-01T23:04:05Z", "2020-01-01T23:04:05.000060Z"),
    ],
)
def test_times_are_written_as_the_api_takes_them(moment: dt.datetime, seconds: str, micros: str) -> None:
    assert whole_seconds(moment) == seconds
    assert microseconds(moment) == micros


def test_the_computers_clock_tells_utc() -> None:
    before = dt.datetime.now(dt.UTC)
    assert before <= SystemWallClock().wall() <= dt.datetime.now(dt.UTC)
