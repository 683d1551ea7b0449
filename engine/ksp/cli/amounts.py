"""Amounts of resources as people write them, from base units: cpu in milli, all else in whole units."""

from __future__ import annotations

_BINARY = ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")


def is_bytes(resource: str) -> bool:
    return resource in ("memory", "ephemeral-storage") or resource.startswith("hugepages-")


def human(resource: str, amount: int) -> str:
    """`12.5` processors, `1.9 TiB`, `8`."""
    if resource == "cpu":
        return _short(amount / 1000)
    return _binary(amount) if is_bytes(resource) else f"{amount:,}"


def percent(part: int, whole: int) -> str:
    """`12.3 %`; `-` if there is nothing to have a part of."""
    return f"{100 * part / whole:.1f} %" if whole else "-"


def _binary(amount: int) -> str:
    number, unit = float(amount), 0
    while abs(number) >= 1024 and unit < len(_BINARY) - 1:
        number, unit = number / 1024, unit + 1
    return f"{_short(number)} {_BINARY[unit]}"


def _short(number: float) -> str:
    """With one decimal where it says something."""
    return f"{number:,.1f}".removesuffix(".0")
