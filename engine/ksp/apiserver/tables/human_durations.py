"""Spans of time as kubectl shows ages: two significant parts at most (apimachinery's `duration.HumanDuration`)."""

from datetime import datetime, timedelta

_YEAR = 365 * 24


def human_duration(span: timedelta) -> str:
    """`95s`, `4m10s`, `7h30m`, `3d4h`, `6y324d`."""
    seconds = int(span.total_seconds())
    if seconds < -1:
        return "<invalid>"
    if seconds < 120:
        return f"{max(seconds, 0)}s"
    minutes, hours = seconds // 60, seconds // 3600
    if minutes < 10:
        return _two(minutes, "m", seconds % 60, "s")
    if minutes < 180:
        return f"{minutes}m"
    if hours < 8:
        return _two(hours, "h", minutes % 60, "m")
    if hours < 48:
        return f"{hours}h"
    days = hours // 24
    if hours < 8 * 24:
        return _two(days, "d", hours % 24, "h")
    if hours < 2 * _YEAR:
        return f"{days}d"
    years = days // 365
    return _two(years, "y", days % 365, "d") if hours < 8 * _YEAR else f"{years}y"


def _two(large: int, large_unit: str, small: int, small_unit: str) -> str:
    return f"{large}{large_unit}{small}{small_unit}" if small else f"{large}{large_unit}"


def since(moment: str | None, now: datetime) -> str:
    """How long ago a time of the API was; `<unknown>` if there is none."""
    return human_duration(now - datetime.fromisoformat(moment)) if moment else "<unknown>"
