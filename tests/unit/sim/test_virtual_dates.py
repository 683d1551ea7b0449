"""Dates of virtual time."""

from __future__ import annotations

import pytest

from ksp.sim.virtual_dates import VirtualDates


@pytest.mark.parametrize(
    ("known", "beginning"),
    [
        ([], "1970-01-01T00:00:00Z"),
        (["2026-03-01T10:00:00Z", "2026-03-01T12:30:00Z", "2025-12-31T23:59:59Z"], "2026-03-01T12:30:00Z"),
        (["yesterday", "", "2026-03-01T10:00:00Z"], "2026-03-01T10:00:00Z"),
        (["2026-03-01T10:00:00+02:00"], "2026-03-01T08:00:00Z"),
        (["2026-03-01T10:00:00"], "2026-03-01T10:00:00Z"),
    ],
)
def test_time_begins_at_the_latest_date(known: list[str], beginning: str) -> None:
    assert VirtualDates(known).text(0.0) == beginning


def test_dates_are_in_order_as_texts() -> None:
    dates = VirtualDates(["2026-12-31T23:59:50Z"])
    assert dates.text(9.9) == "2026-12-31T23:59:59Z"
    assert dates.text(10.0) == "2027-01-01T00:00:00Z"
    assert dates.text(9.0) < dates.text(10.0) < dates.text(1e9) <= dates.text(1e12) == "9999-12-31T00:00:00Z"
