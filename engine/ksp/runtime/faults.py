"""Faults of ksp itself that were caught so that the rest can go on: loud, but not endlessly.

The first fault of a kind, which is its type and the line that raised it, is logged with its traceback; each further one
with a line.
"""

from __future__ import annotations

import logging
from typing import Final

from ksp.model.info import PodInfo
from ksp.runtime.log import entry
from ksp.runtime.observer import Observer

_log = logging.getLogger(__name__)

KINDS: Final = 100
"""How many kinds are remembered; those beyond are always logged with a traceback."""


def told(error: Exception) -> str:
    """What users of a pod read of a fault. Its text may quote anything, and is in the log alone."""
    return f"internal error: {type(error).__name__}, see the scheduler's log"


class Faults:
    """Logs and counts them."""

    def __init__(self, observer: Observer) -> None:
        self._observer = observer
        self._seen: set[tuple[str, str, int]] = set()

    def caught(self, where: str, error: Exception, pod: PodInfo | None = None) -> None:
        """`where` says what was being done."""
        about = {} if pod is None else {"pod": f"{pod.namespace}/{pod.name}"}
        said = f"{type(error).__name__}: {error}"
        kind = _kind(error)
        _log.error(entry("internal error", doing=where, **about, error=said), exc_info=self._first(kind) and error)
        self._observer.fault(where, pod)

    def _first(self, kind: tuple[str, str, int]) -> bool:
        if kind in self._seen:
            return False
        if len(self._seen) < KINDS:
            self._seen.add(kind)
        return True


def _kind(error: Exception) -> tuple[str, str, int]:
    """The type, and the file and line that raised it."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None:
        return type(error).__name__, "", 0
    return type(error).__name__, trace.tb_frame.f_code.co_filename, trace.tb_lineno
