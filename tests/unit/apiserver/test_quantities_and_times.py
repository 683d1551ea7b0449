from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ksp.apiserver.codec.go_times import TimeTextError, micro_time_of, time_of
from ksp.apiserver.codec.quantities import QuantityTextError, canonical
from ksp.apiserver.tables.human_durations import human_duration
from ksp.model.quantity import milli_value


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("0.5", "500m"),
        ("4000m", "4"),
        ("1500", "1500"),
        ("1000", "1k"),
        ("0", "0"),
        ("1e3", "1e3"),
        ("12e5", "1200e3"),
        ("1024Mi", "1Gi"),
        ("1.5Gi", "1536Mi"),
        ("1023Ki", "1023Ki"),
        ("0.5Ki", "512"),
        ("0.0005Ki", "512m"),
        ("0.1n", "1n"),
        ("-5", "-5"),
        ("+5", "5"),
        ("99999999999999999999", "9223372036854775807"),
    ],
)
def test_canonical_quantities(text: str, form: str) -> None:
    assert canonical(text) == form


@pytest.mark.parametrize("text", ["", "four", "4 cores", "1..0", "--1", "1K", "e3", "1ki"])
def test_texts_that_are_no_quantities(text: str) -> None:
    with pytest.raises(QuantityTextError):
        canonical(text)


@given(st.integers(-(10**9), 10**9), st.sampled_from(["", "m", "k", "M", "Ki", "Mi", "e3"]))
def test_the_canonical_form_means_the_same_and_is_its_own(number: int, suffix: str) -> None:
    text = f"{number}{suffix}"
    assert milli_value(canonical(text)) == milli_value(text)
    assert canonical(canonical(text)) == canonical(text)


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("2020-01-02T03:04:05Z", "2020-01-02T03:04:05Z"),
        ("2020-01-02T03:04:05.999999Z", "2020-01-02T03:04:05Z"),
        ("2020-01-02T03:04:05.9999999999Z", "2020-01-02T03:04:05Z"),
        ("2020-01-02T03:04:05-02:00", "2020-01-02T05:04:05Z"),
    ],
)
def test_times(text: str, form: str) -> None:
    assert time_of(text) == form


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("2020-01-02", 'cannot parse "" as "T"'),
        ("2020-01-02 03:04:05", 'cannot parse " 03:04:05" as "T"'),
        ("2020-13-02T03:04:05Z", "month out of range"),
        ("2020-02-30T03:04:05Z", "day out of range"),
        ("2020-01-02T03:04:60Z", "second out of range"),
        ("2020-01-02T03:04:05Zx", 'extra text: "x"'),
        ("", 'cannot parse "" as "2006"'),
    ],
)
def test_texts_that_are_no_times(text: str, why: str) -> None:
    with pytest.raises(TimeTextError) as caught:
        time_of(text)
    assert str(caught.value).endswith(why)


def test_micro_times_have_exactly_six_digits() -> None:
    assert micro_time_of("2020-01-02T03:04:05.000006Z") == "2020-01-02T03:04:05.000006Z"
    for fraction in ("", ".123", ".123456789"):
        with pytest.raises(TimeTextError):
            micro_time_of(f"2020-01-02T03:04:05{fraction}Z")


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-5, "<invalid>"),
        (-1, "0s"),
        (0, "0s"),
        (119, "119s"),
        (120, "2m"),
        (130, "2m10s"),
        (599, "9m59s"),
        (600, "10m"),
        (3 * 3600 - 1, "179m"),
        (3 * 3600, "3h"),
        (8 * 3600 - 60, "7h59m"),
        (8 * 3600, "8h"),
        (48 * 3600, "2d"),
        (49 * 3600, "2d1h"),
        (8 * 86400, "8d"),
        (730 * 86400, "2y"),
        (731 * 86400, "2y1d"),
        (9 * 365 * 86400 + 86400, "9y"),
    ],
)
def test_ages_have_two_parts_at_most(seconds: int, text: str) -> None:
    assert human_duration(timedelta(seconds=seconds)) == text
