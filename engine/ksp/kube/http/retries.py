"""Which failed requests are sent again, and after how long.

A change (POST, PUT, PATCH, DELETE) is sent again only where the server did not process it: it was not reached, it said
429, or it said 503 and when to come back. A GET also after a lost connection and after 5xx. Nothing is sent again after
the time allowed for it has run out: its caller decides.
"""

from __future__ import annotations

from ksp.kube.errors import ApiError, KubeError, OutcomeUnknownError, UnreachableError

MOST_REPEATS = 10
FIRST_WAIT = 0.1
"""Seconds; doubled with every repeat up to LONGEST_WAIT, and half of it is left to the dice."""
LONGEST_WAIT = 2.0
LONGEST_RETRY_AFTER = 60.0
"""Seconds; a server that says to come back later than this gets no repeat: the caller is told."""

_SERVER_FAILURES = frozenset({500, 502, 503, 504})


def wait_before_repeat(method: str, failure: KubeError, repeats: int, jitter: float) -> float | None:
    """Seconds to wait before the request is sent again, or None where it is not.

    `repeats` is how often it has been sent again already, `jitter` from 0 to 1.
    """
    if repeats >= MOST_REPEATS or not _repeatable(method, failure):
        return None
    backoff: float = min(LONGEST_WAIT, FIRST_WAIT * 2**repeats) * (1 + jitter) / 2
    if not isinstance(failure, ApiError) or failure.retry_after is None:
        return backoff
    if failure.retry_after > LONGEST_RETRY_AFTER:
        return None
    return max(backoff, failure.retry_after * (1 + jitter / 10))


def _repeatable(method: str, failure: KubeError) -> bool:
    reads = method == "GET"
    match failure:
        case UnreachableError():
            return failure.temporary
        case OutcomeUnknownError():
            return reads and not failure.timed_out
        case ApiError(status=429):
            return True
        case ApiError(status=503) if failure.retry_after is not None:
            return True
        case ApiError():
            return reads and failure.status in _SERVER_FAILURES
        case _:
            return False
