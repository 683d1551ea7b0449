"""What `ksp run` says on stderr: one entry, one line, in the manner of klog.

    I1121 20:31:00.123456 synced nodes=1523 pods=8152 seconds=1.2

The first letter is the severity: I(nfo), W(arning), E(rror). Local time follows, then a message, then what it is about.
A traceback, which only a fault of ksp has, stands in the lines after its entry, each indented.

`-v N` shows more the greater N is: 0 what an operator should see, 2 every decision, 10 all that there is.
"""

from __future__ import annotations

import datetime as dt
import logging
import sys
from collections.abc import Callable
from math import inf
from typing import Final, TextIO

ROOT: Final = "ksp"
MOST: Final = 10
FIRST: Final = 5.0
LONGEST: Final = 60.0
THINGS: Final = 1000
DECISIONS: Final = logging.INFO - 2
"""The level of an entry for each decision: `-v 2`."""

_PLAIN: Final = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_./:@+,%~*[]()")


def entry(message: str, /, **about: object) -> str:
    """The text of an entry: the message and the pairs. A value that has blanks or quotes is put in quotes."""
    return " ".join((message, *(f"{key}={_value(value)}" for key, value in about.items())))


def _value(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.3g}"
    text = str(value)
    if text and _PLAIN.issuperset(text):
        return text
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


class Seldom:
    """Entries about things that last: a warning at once, then after 5 s, 10 s, 20 s, 40 s, and every minute.

    A thing that was not heard of for twice as long as it was silent for is a new one.
    """

    def __init__(self, log: logging.Logger, now: Callable[[], float]) -> None:
        self._log = log
        self._now = now
        self._said: dict[str, tuple[float, float]] = {}

    def say(self, thing: str, message: str, /, **about: object) -> None:
        """`thing` is what it is about; at most `THINGS` are remembered."""
        now = self._now()
        last, pause = self._said.get(thing, (-inf, FIRST))
        if now - last < pause:
            return
        following = FIRST if now - last > 2 * pause else min(2 * pause, LONGEST)
        if len(self._said) >= THINGS:
            self._said.clear()
        self._said[thing] = now, following
        self._log.warning(entry(message, **about))


class KlogFormatter(logging.Formatter):
    """Entries as klog writes them, without the file and its line."""

    def format(self, record: logging.LogRecord) -> str:
        letter = record.levelname[0] if record.levelno > logging.INFO else "I"
        time = dt.datetime.fromtimestamp(record.created).strftime("%m%d %H:%M:%S.%f")  # noqa: DTZ006 - klog: local time
        line = f"{letter}{time} {_in_one_line(record.getMessage())}"
        if record.exc_info:
            trace = self.formatException(record.exc_info)
            line += "".join(f"\n    {_in_one_line(each)}" for each in trace.splitlines())
        return line


def _in_one_line(text: str) -> str:
    """What does not print, and what would turn the direction of writing, as escapes: others wrote parts of it."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode("ascii") for char in text)


def set_up(verbosity: int, stream: TextIO | None = None) -> None:
    """Entries of ksp go to the stream (stderr if not given), those of other libraries only if they are warnings."""
    handler = logging.StreamHandler(sys.stderr if stream is None else stream)
    handler.setFormatter(KlogFormatter())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING if verbosity < MOST else logging.DEBUG)
    logging.getLogger(ROOT).setLevel(logging.INFO - max(0, min(verbosity, MOST)))
