"""What a reflector does after a failure: where it goes on, and how long it waits.

    the server is not there          quick: 0.8 to 1.6 s, 1.5 to 3 s, 1.5 to 3 s, ...
    (refused, reset, 502, 503, 504)
    a watch that lived for a second, the quick waits begin anew, so a reset is mended within 2 s
    or brought something
    the server wants time            as long as it says (Retry-After, at most a minute), up to twice that by chance
    anything else                    slow: 0.8 to 1.6 s, 1.6 to 3.2 s, ..., 30 to 60 s; anew after two healthy minutes
    the history is lost (410)        at once; if that happened a few seconds ago, slow

Why the quick waits stop at 3 s: after a restart of the server the first event is to come within 5 s, and a relist may
still have to follow. Ten reflectors then make some five attempts a second, which costs a server that is not there
nothing, and one that is just coming up very little. A server that answers and refuses is not there to be asked that
often: 30 to 60 s. No way leads back without a wait, but for the end of a watch that had lived for a second or had
brought something.
"""

from __future__ import annotations

from typing import Final

from ksp.kube.errors import ApiError, KubeError, OutcomeUnknownError, UnreachableError
from ksp.kube.http.backoff import Backoff
from ksp.kube.timers import Timers

# A watch that ended sooner (seconds) was not healthy. If it brought nothing either, it failed, even if it ended well.
HEALTHY: Final = 1.0

# Lost history is followed by a list at once, unless it was lost within so many seconds after such a list.
RELIST_PAUSE: Final = 5.0

# The longest time, in seconds, that a server is believed when it wants to be left alone.
LONGEST_RETRY_AFTER: Final = 60.0

# Failures in a row, without any progress, after which a position is given up. Lost connections say little about it.
PATIENCE: Final = 3
PATIENCE_WITH_LOSSES: Final = 10

_AWAY: Final = frozenset({502, 503, 504})
_ASKS_FOR_PATIENCE: Final = frozenset({401, 403, 429})


class RelistError(KubeError):
    """The watch cannot bring the cache up to date. The text is the reason, in a few words."""


class WentBackError(RelistError):
    """The server's history is another one than that which is known: what other reflectors know of it may be wrong."""


class ShortWatchError(KubeError):
    """The server ended a watch at once, in good order, and without an event. To ask again at once would never stop."""


class Session:
    """One attempt to list or watch."""

    def __init__(self, timers: Timers) -> None:
        self._timers = timers
        self._opened: float | None = None
        self.progressed = False

    def open(self) -> None:
        """The server has agreed to a watch."""
        self._opened = self._timers.now()

    @property
    def opened(self) -> bool:
        return self._opened is not None

    @property
    def lived(self) -> float:
        """Seconds since the watch was opened; 0 if it was not."""
        return 0.0 if self._opened is None else self._timers.now() - self._opened

    @property
    def short(self) -> bool:
        return self.lived < HEALTHY


class Recovery:
    """Remembers the failures of one reflector."""

    def __init__(self, timers: Timers) -> None:
        self._timers = timers
        self._quick = Backoff(timers, maximum=1.5)
        self._slow = Backoff(timers)
        self._stuck = 0
        self._relisted = float("-inf")

    def went_well(self, session: Session) -> None:
        """The attempt is over, and what it was good for counts."""
        if session.progressed or not session.short:
            self._quick.reset()
        if session.progressed:
            self._stuck = 0

    def must_relist(self, error: KubeError) -> str:
        """Why the position cannot be kept after this failure of a watch; empty: it can."""
        match error:
            case RelistError():
                return str(error)
            case ApiError() if history_is_lost(error):
                return "too old"
            case ApiError() if _is_ahead(error):
                return "too large resource version"
            case UnreachableError():
                return ""
            case ApiError(status=status) if status in _ASKS_FOR_PATIENCE | _AWAY:
                return ""
            case ApiError(status=status) if status < 500:
                return f"refused with {status}"
        lost = isinstance(error, OutcomeUnknownError)
        return "no progress" if self.is_stuck(PATIENCE_WITH_LOSSES if lost else PATIENCE) else ""

    def is_stuck(self, patience: int = PATIENCE) -> bool:
        """Counts a failure, and says whether it is one too many in a row."""
        self._stuck += 1
        if self._stuck < patience:
            return False
        self._stuck = 0
        return True

    def delay(self, error: KubeError) -> float:
        """Seconds to wait after the failure."""
        match error:
            case ApiError(retry_after=float() as seconds):
                return min(max(seconds, 0.8), LONGEST_RETRY_AFTER) * (1 + self._timers.jitter())
            case RelistError():
                return self._before_relist()
            case ApiError() if history_is_lost(error) or _is_ahead(error):
                return self._before_relist()
            case UnreachableError(temporary=True) | OutcomeUnknownError():
                return self._quick.next()
            case ApiError(status=status) if status in _AWAY:
                return self._quick.next()
            case _:
                return self._slow.next()

    def _before_relist(self) -> float:
        now = self._timers.now()
        wait = self._slow.next() if now - self._relisted < RELIST_PAUSE else 0.0
        self._relisted = now + wait
        return wait


def history_is_lost(error: ApiError) -> bool:
    """The version that was asked for is too old: on a list as a status, on a watch as an ERROR event."""
    return error.status == 410 or error.reason in {"Expired", "Gone"}


def _is_ahead(error: ApiError) -> bool:
    """The server has not got so far: it lags behind, or its history went back. A list at a quorum helps in both
    cases."""
    causes = error.details.get("causes")
    named = isinstance(causes, list) and any(
        isinstance(cause, dict) and cause.get("reason") == "ResourceVersionTooLarge" for cause in causes
    )
    return named or "Too large resource version" in error.message
