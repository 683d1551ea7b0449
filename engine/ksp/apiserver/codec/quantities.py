"""Quantities in the form in which the API gives them back: `0.5` → `500m`, `1024Mi` → `1Gi`, `8388608Ki` → `8Gi`.

What was sent decides between decimal and binary suffixes and exponents, as in apimachinery's `resource.Quantity`.
`ksp.model.quantity` reads the same texts for the scheduler, which wants integers, and neither the form nor the words of
refusals.
"""

import re
from fractions import Fraction
from functools import lru_cache
from typing import Final

_FORM: Final = re.compile(r"([+-]?)([0-9]*)(?:\.([0-9]*))?([eEinumkKMGTP]*[-+]?[0-9]*)")
_DECIMAL: Final = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY: Final = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_SUFFIX_OF: Final = {power: suffix for suffix, power in _DECIMAL.items()}
_EXPONENT: Final = re.compile(r"[eE]([+-]?[0-9]{1,4})")
_LARGEST: Final = (1 << 63) - 1

LONGEST: Final = 1_000
"""Characters. The real server has no limit, but makes of anything longer the largest number or a nano."""

WRONG_FORM: Final = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
WRONG_SUFFIX: Final = "unable to parse quantity's suffix"


class QuantityTextError(ValueError):
    """A text that is not a quantity; the message is the API server's."""


@lru_cache(maxsize=65_536)
def canonical(text: str) -> str:
    """`text` in canonical form. Raises QuantityTextError."""
    number, style = parse(text)
    if style == "binary" and abs(number) >= 1024 and number.denominator == 1:
        return _binary(number.numerator)
    return _decimal(number, exponent=style == "exponent")


@lru_cache(maxsize=65_536)
def parse(text: str) -> tuple[Fraction, str]:
    """The number, rounded away from zero to nanos and capped to 64 bits, and its style: decimal, binary, exponent."""
    match = _FORM.fullmatch(text) if len(text) <= LONGEST else None
    if match is None or not (match[2] or match[3] or "." in text):
        raise QuantityTextError(WRONG_FORM)
    digits = Fraction(int((match[2] + (match[3] or "")) or "0"), 10 ** len(match[3] or ""))
    scale, style = _scale(match[4])
    number = _nanos(digits * scale)
    return (-number if match[1] == "-" else number), style


def _scale(suffix: str) -> tuple[Fraction, str]:
    if suffix in _DECIMAL:
        return Fraction(10) ** _DECIMAL[suffix], "decimal"
    if suffix in _BINARY:
        return Fraction(1024 ** _BINARY.index(suffix)), "binary"
    exponent = _EXPONENT.fullmatch(suffix)
    if exponent is None:
        raise QuantityTextError(WRONG_SUFFIX)
    return Fraction(10) ** int(exponent[1]), "exponent"


def _nanos(number: Fraction) -> Fraction:
    """The least multiple of a nano that is not smaller, at most what 64 bits hold."""
    nanos = -(-number.numerator * 10**9 // number.denominator)
    return min(Fraction(nanos, 10**9), Fraction(_LARGEST))


def _binary(number: int) -> str:
    power = 0
    while number and number % 1024 == 0 and power < len(_BINARY) - 1:
        number //= 1024
        power += 1
    return f"{number}{_BINARY[power]}"


def _decimal(number: Fraction, *, exponent: bool) -> str:
    """The largest power of a thousand that leaves an integer."""
    if number == 0:
        return "0"
    mantissa, power = int(number * 10**9), -9
    while mantissa % 1000 == 0 and power < 18:
        mantissa //= 1000
        power += 3
    if exponent:
        return f"{mantissa}e{power}" if power else str(mantissa)
    return f"{mantissa}{_SUFFIX_OF[power]}"
