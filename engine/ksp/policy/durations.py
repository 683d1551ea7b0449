"""Go's durations: `15s`, `1m30s`, `500ms`."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Final

_UNITS: Final = {
    "ns": 1, "us": 1_000, "\u00b5s": 1_000, "\u03bcs": 1_000, "ms": 1_000_000, "s": 10**9, "m": 60 * 10**9,
    "h": 3600 * 10**9,
}  # fmt: skip
_PART: Final = re.compile(r"([0-9]{0,30}(?:\.[0-9]{0,30})?)(ns|us|\u00b5s|\u03bcs|ms|s|m|h)")
_MAX: Final = 2**63 - 1


class DurationError(ValueError):
    """Not a duration. The text is that of Go's time.ParseDuration."""


def seconds_of(text: str) -> float:
    """A duration in seconds. Raises DurationError."""
    quoted = f'"{text[:40]}"'
    sign, rest = (-1, text[1:]) if text[:1] == "-" else (1, text.removeprefix("+"))
    if rest == "0":
        return 0.0
    if not rest:
        raise DurationError(f"time: invalid duration {quoted}")
    total, position = Decimal(0), 0
    while position < len(rest):
        part = _PART.match(rest, position)
        if part is None or part[1] in {"", "."}:
            lacks = re.fullmatch(r"[0-9.]+", rest[position:])
            raise DurationError(f"time: {'missing unit in' if lacks else 'invalid'} duration {quoted}")
        total += int(Decimal(part[1]) * _UNITS[part[2]])
        position = part.end()
    if total > _MAX:
        raise DurationError(f"time: invalid duration {quoted}")
    return float(sign * total / 10**9)


def shown_seconds(seconds: float) -> str:
    """A duration as Go writes it: `15s`, `1m30s`, `1h0m0s`, `500ms`; `seconds_of` reads it."""
    nanoseconds = round(abs(seconds) * 10**9)
    sign = "-" if seconds < 0 and nanoseconds else ""
    if nanoseconds < 10**9:
        for unit in ("ms", "\u00b5s", "ns"):
            if nanoseconds >= _UNITS[unit]:
                return f"{sign}{_decimal(nanoseconds, _UNITS[unit])}{unit}"
        return "0s"
    minutes, left = divmod(nanoseconds, 60 * 10**9)
    hours, minutes_left = divmod(minutes, 60)
    text = f"{_decimal(left, 10**9)}s"
    if minutes:
        text = f"{minutes_left}m{text}"
    return f"{sign}{hours}h{text}" if hours else sign + text


def _decimal(amount: int, unit: int) -> str:
    text = format(Decimal(amount) / unit, "f")
    return text.rstrip("0").rstrip(".") if "." in text else text
