"""Amounts of resources as the API writes them: `500m`, `1.5Gi`, `1e3`, or plain numbers.

Results are exact integers. What is not whole is rounded away from zero, so that who asks for a little gets a little;
what 64 bits cannot hold becomes the nearest number that they can. Only texts that Kubernetes refuses are errors.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final, NamedTuple

from ksp.model.int64 import MAX, MIN, saturate

Quantity = str | int | float

# Beyond these, every number other than 0 rounds to 1 or lies outside 64 bits; computing it would only take time.
_MAX_SCALE: Final = 5_000
_MAX_LENGTH: Final = 4_000

_DECIMAL: Final = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY: Final = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}

# Digits may be missing on either side of the point, and on both: Kubernetes reads `.` and `m` as 0.
_FORM: Final = re.compile(r"([+-]?)([0-9]*)(?:\.([0-9]*))?([eEinumkKMGTP]*[-+]?[0-9]*)")
_EXPONENT: Final = re.compile(r"[eE]([+-]?[0-9]+)")
_PLAIN: Final = re.compile(r"(?:0|[1-9][0-9]{0,8})(m|Ki|Mi|Gi|)")


class QuantityError(ValueError):
    """A text that is not a quantity: the text, and the path of the field that has it where that is known."""

    def __init__(self, text: str, path: str = "") -> None:
        super().__init__(f'{path}: "{text}" is not a quantity' if path else f'"{text}" is not a quantity')
        self.text = text


class _Parsed(NamedTuple):
    """The number `digits * 10**scale * 2**shift`."""

    digits: int
    scale: int
    shift: int


def value(quantity: Quantity) -> int:
    """The amount in whole units."""
    return _scaled(quantity, 0)


def milli_value(quantity: Quantity) -> int:
    """The amount in thousandths."""
    return _scaled(quantity, 3)


@lru_cache(maxsize=65_536)
def _scaled(quantity: Quantity, places: int) -> int:
    """The amount times `10**places`, as a 64-bit integer."""
    if isinstance(quantity, int):
        return saturate(quantity * 10**places)
    text = quantity.strip() if isinstance(quantity, str) else repr(quantity)
    parsed = _plain(text) or _parse(text)
    scale = parsed.scale + places
    if parsed.digits == 0:
        return 0
    if scale > _MAX_SCALE:
        return MAX if parsed.digits > 0 else MIN
    digits = parsed.digits << parsed.shift
    if scale >= 0:
        return saturate(digits * 10**scale)
    return saturate(_divide_up(digits, 10 ** min(-scale, 2 * _MAX_SCALE)))


def _divide_up(n: int, divisor: int) -> int:
    """Division that rounds away from zero."""
    return -(-n // divisor) if n > 0 else n // divisor


def _plain(text: str) -> _Parsed | None:
    """The forms that nearly all quantities have, without the general grammar."""
    match = _PLAIN.fullmatch(text)
    if match is None:
        return None
    suffix = match[1]
    digits = int(text[: match.start(1)])
    return _Parsed(digits, -3, 0) if suffix == "m" else _Parsed(digits, 0, _BINARY.get(suffix, 0))


def _parse(text: str) -> _Parsed:
    match = _FORM.fullmatch(text) if 0 < len(text) <= _MAX_LENGTH else None
    if match is None:
        raise QuantityError(text[:80])
    sign, whole, fraction, suffix = match[1], match[2], match[3] or "", match[4]
    digits = int(whole + fraction or "0")
    scale, shift = _suffix(suffix, text)
    return _Parsed(-digits if sign == "-" else digits, scale - len(fraction), shift)


def _suffix(suffix: str, text: str) -> tuple[int, int]:
    """The powers of ten and of two that a suffix stands for."""
    if suffix in _DECIMAL:
        return _DECIMAL[suffix], 0
    if suffix in _BINARY:
        return 0, _BINARY[suffix]
    exponent = _EXPONENT.fullmatch(suffix)
    if exponent is None or not MIN <= (power := int(exponent[1])) <= MAX:
        raise QuantityError(text[:80])
    return power, 0
