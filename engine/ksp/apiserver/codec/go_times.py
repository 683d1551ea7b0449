"""Times as the API reads and writes them: `metav1.Time` in seconds, `metav1.MicroTime` with six digits, both in UTC.

Refusals are worded as Go's `time.Parse` words them, which clients see.
"""

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone
from typing import Final

SECONDS: Final = "2006-01-02T15:04:05Z07:00"
MICROSECONDS: Final = "2006-01-02T15:04:05.000000Z07:00"

_ELEMENT: Final = re.compile(r"2006|01|02|15|04|05|\.000000|Z07:00|[-:T]")
_PATTERNS: Final = {
    "2006": re.compile(r"[0-9]{4}"),
    **dict.fromkeys(("01", "02", "15", "04", "05"), re.compile(r"[0-9]{2}")),
    ".000000": re.compile(r"\.[0-9]{6}"),
    "Z07:00": re.compile(r"Z|[+-][0-9]{2}:[0-9]{2}"),
}
_FRACTION: Final = re.compile(r"\.[0-9]+")
_RANGES: Final = (("01", 1, 12, "month"), ("15", 0, 23, "hour"), ("04", 0, 59, "minute"), ("05", 0, 59, "second"))


class TimeTextError(ValueError):
    """A text that is not a time; the message is Go's."""


def time_of(text: str) -> str:
    """A `metav1.Time`: fractions are cut, offsets become UTC. Raises TimeTextError."""
    return write_time(parse(text, SECONDS))


def micro_time_of(text: str) -> str:
    """A `metav1.MicroTime`. Raises TimeTextError."""
    return write_micro_time(parse(text, MICROSECONDS))


def write_time(moment: datetime) -> str:
    """`2020-01-02T03:04:05Z`."""
    return f"{moment.astimezone(UTC).replace(tzinfo=None).isoformat(timespec='seconds')}Z"


def write_micro_time(moment: datetime) -> str:
    """`2020-01-02T03:04:05.000006Z`."""
    return f"{moment.astimezone(UTC).replace(tzinfo=None).isoformat(timespec='microseconds')}Z"


def parse(text: str, layout: str) -> datetime:
    """Reads `text` by one of the two layouts. Raises TimeTextError."""
    parts = dict(_parts(text, layout))
    for element, low, high, name in _RANGES:
        if not low <= int(parts[element]) <= high:
            raise TimeTextError(f'parsing time "{text}": {name} out of range')
    micros = int(parts.get(".000000", ".0")[1:7].ljust(6, "0"))
    numbers = (int(parts[element]) for element in ("2006", "01", "02", "15", "04", "05"))
    try:
        return datetime(*numbers, micros, tzinfo=_zone(parts["Z07:00"])).astimezone(UTC)  # type: ignore[misc,arg-type]
    except (ValueError, OverflowError) as error:
        raise TimeTextError(f'parsing time "{text}": day out of range') from error


def _parts(text: str, layout: str) -> Iterator[tuple[str, str]]:
    """The elements of the layout with what stands in their places."""
    rest = text
    for element in _ELEMENT.findall(layout):
        pattern = _PATTERNS.get(element)
        match = pattern.match(rest) if pattern else None
        if match is None and not (pattern is None and rest.startswith(element)):
            raise TimeTextError(f'parsing time "{text}" as "{layout}": cannot parse "{rest}" as "{element}"')
        size = match.end() if match else len(element)
        yield element, rest[:size]
        rest = rest[size:]
        if element == "05" and layout == SECONDS and (fraction := _FRACTION.match(rest)):
            yield ".000000", fraction[0]
            rest = rest[fraction.end() :]
    if rest:
        raise TimeTextError(f'parsing time "{text}": extra text: "{rest}"')


def _zone(text: str) -> timezone:
    if text == "Z":
        return UTC
    sign = -1 if text[0] == "-" else 1
    return timezone(sign * timedelta(hours=int(text[1:3]), minutes=int(text[4:6])))
