from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ksp.model.int64 import MAX, MIN, saturate, wrap
from ksp.model.quantity import Quantity, QuantityError, milli_value, value

SUFFIXES = {
    "n": Fraction(1, 10**9), "u": Fraction(1, 10**6), "m": Fraction(1, 1000), "": Fraction(1), "k": Fraction(1000),
    "M": Fraction(10**6), "G": Fraction(10**9), "T": Fraction(10**12), "P": Fraction(10**15), "E": Fraction(10**18),
    "Ki": Fraction(2**10), "Mi": Fraction(2**20), "Gi": Fraction(2**30), "Ti": Fraction(2**40), "Pi": Fraction(2**50),
    "Ei": Fraction(2**60), "e3": Fraction(1000), "E-3": Fraction(1, 1000), "e+0": Fraction(1), "E12": Fraction(10**12),
}  # fmt: skip


@pytest.mark.parametrize(
    ("quantity", "units", "milli"),
    [
        ("0", 0, 0),
        ("1", 1, 1000),
        ("100m", 1, 100),
        ("2500m", 3, 2500),
        ("1500u", 1, 2),
        ("1n", 1, 1),
        ("0.1n", 1, 1),
        ("1e9", 10**9, 10**12),
        ("1E3", 1000, 10**6),
        ("1E", 10**18, MAX),
        ("100k", 100_000, 10**8),
        ("500M", 500 * 10**6, 500 * 10**9),
        ("1.5Gi", 1536 * 2**20, 1536 * 2**20 * 1000),
        ("0.5", 1, 500),
        (".5", 1, 500),
        ("5.", 5, 5000),
        ("+3", 3, 3000),
        ("-3", -3, -3000),
        ("-1.5", -2, -1500),
        ("007", 7, 7000),
        ("1e-3", 1, 1),
        ("1e-400", 1, 1),
        ("0e400", 0, 0),
        ("9223372036854775807", MAX, MAX),
        ("9223372036854775808", MAX, MAX),
        ("-9223372036854775809", MIN, MIN),
        ("8Ei", MAX, MAX),
        ("1e400", MAX, MAX),
        ("-1e999999999", MIN, MIN),
        ("1e-999999999", 1, 1),
        (" 1Gi ", 2**30, 2**30 * 1000),
        (".", 0, 0),
        ("m", 0, 0),
        ("-", 0, 0),
        (3, 3, 3000),
        (10**30, MAX, MAX),
        (0.1, 1, 100),
        (1.5, 2, 1500),
        (1e22, MAX, MAX),
        (1e-7, 1, 1),
    ],
)
def test_values(quantity: Quantity, units: int, milli: int) -> None:
    assert value(quantity) == units
    assert milli_value(quantity) == milli


@pytest.mark.parametrize(
    "text",
    [
        "", " ", "abc", "1.1.M", "1+1.0M", "0.1mi", "0.1am", "aoeu", ".5i", "1i", "-3.01i", "-3.01e-", "1 Gi", "1gi",
        "1K", "1KB", "1GiB", "--1", "1e", "1e1.5", "1e99999999999999999999", "0x10", "1_000", "\u0661",
        "1mm", "Kii", "1eE5",
        "9" * 5000,
    ],
)  # fmt: skip
def test_what_is_no_quantity(text: str) -> None:
    with pytest.raises(QuantityError) as raised:
        value(text)
    assert raised.value.text == text.strip()[:80]


def test_the_error_quotes_the_text() -> None:
    with pytest.raises(QuantityError, match=r'^"1GiB" is not a quantity$'):
        value("1GiB")


@pytest.mark.parametrize("number", [float("inf"), float("-inf"), float("nan")])
def test_floats_that_are_no_numbers(number: float) -> None:
    with pytest.raises(QuantityError):
        value(number)


def away_from_zero(number: Fraction) -> int:
    whole = -(-abs(number).numerator // abs(number).denominator)
    return saturate(whole if number > 0 else -whole)


digits = st.text("0123456789", max_size=25)


@given(st.sampled_from(["", "+", "-"]), digits, st.none() | digits, st.sampled_from(sorted(SUFFIXES)))
def test_exact_as_fractions(sign: str, whole: str, fraction: str | None, suffix: str) -> None:
    text = sign + whole + ("" if fraction is None else "." + fraction) + suffix
    number = Fraction(int(whole + (fraction or "") or "0"), 10 ** len(fraction or "")) * SUFFIXES[suffix]
    if sign == "-":
        number = -number
    if text:
        assert value(text) == away_from_zero(number)
        assert milli_value(text) == away_from_zero(number * 1000)


@given(st.text("0123456789.+-eEinumkKMGTP ", max_size=12) | st.text(max_size=6))
def test_any_text_gives_a_number_or_an_error(text: str) -> None:
    try:
        units = value(text)
    except QuantityError:
        return
    assert MIN <= units <= MAX


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_floats_mean_what_they_print(number: float) -> None:
    assert value(number) == away_from_zero(Fraction(repr(number)))


@given(st.integers(-(2**70), 2**70))
def test_wrapping_keeps_the_low_bits(n: int) -> None:
    assert MIN <= wrap(n) <= MAX
    assert (wrap(n) - n) % 2**64 == 0
