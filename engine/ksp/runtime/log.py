"""What `ksp run` says on stderr: one entry, one line, in the manner of klog.

    I1121 20:31:00.123456 synced nodes=1523 pods=8152 seconds=1.2

The first letter is the severity: I(nfo), W(arning), E(rror). Local time follows, then a message, then what it is about.
A traceback, which only a fault of ksp has, stands in the lines after its entry, each indented.

`-v N` shows more the greater N is: 0 what an operator should see, 2 every decision, 10 all that there is.

As JSON an entry is one object a line: `ts` (seconds since 1970), `level`, `v`, `msg`, and the pairs.
"""

from __future__ import annotations

import datetime as dt
import json
import logging
import sys
from collections.abc import Callable
from dataclasses import dataclass
from logging.handlers import RotatingFileHandler
from math import inf, isfinite
from pathlib import Path
from typing import Final, TextIO

ROOT: Final = "ksp"
MOST: Final = 10
FIRST: Final = 5.0
LONGEST: Final = 60.0
THINGS: Final = 1000
DECISIONS: Final = logging.INFO - 2
"""The level of an entry for each decision: `-v 2`."""

_PLAIN: Final = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_./:@+,%~*[]()")


class Entry(str):
    """The text of an entry, and what it was made of, for those who write it in another form."""

    __slots__ = ("about", "message")
    message: str
    about: dict[str, object]


def entry(message: str, /, **about: object) -> Entry:
    """The text of an entry: the message and the pairs. A value that has blanks or quotes is put in quotes."""
    made = Entry(" ".join((message, *(f"{key}={_value(value)}" for key, value in about.items()))))
    made.message = message
    made.about = about
    return made


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


class JsonFormatter(logging.Formatter):
    """Entries as objects; a pair whose key is taken already has `_` behind it."""

    def format(self, record: logging.LogRecord) -> str:
        given = record.msg
        told: dict[str, object] = {
            "ts": round(record.created, 6),
            "level": record.levelname.lower() if record.levelno > logging.INFO else "info",
            "v": max(0, logging.INFO - record.levelno) if record.levelno <= logging.INFO else 0,
            "msg": given.message if isinstance(given, Entry) else record.getMessage(),
        }
        for key, value in (given.about if isinstance(given, Entry) else {}).items():
            told[f"{key}_" if key in told else key] = value if _is_number(value) else str(value)
        if record.exc_info:
            told["trace"] = self.formatException(record.exc_info)
        text = json.dumps(told, ensure_ascii=False)
        return text if text.isprintable() else json.dumps(told)


def _is_number(value: object) -> bool:
    """Or a truth value: what JSON can write as such."""
    return isinstance(value, int) or (isinstance(value, float) and isfinite(value))


FORMATS: Final = {"text": KlogFormatter, "json": JsonFormatter}


@dataclass(frozen=True, slots=True)
class LogSettings:
    """Where entries go. With `to_stderr` all to stderr; else to `file`, which begins anew when it has `max_bytes` (0:
    never), with the one before kept as `FILE.1`; and to stderr too those of the level `threshold` or above. Without a
    file all go to stderr."""

    verbosity: int = 0
    format: str = "text"
    to_stderr: bool = True
    file: Path | None = None
    max_bytes: int = 0
    threshold: int = logging.ERROR


def set_up(settings: LogSettings, stream: TextIO | None = None) -> None:
    """Entries of ksp go where the settings say (`stream` in place of stderr), those of other libraries only if they are
    warnings. Raises OSError for a file that cannot be written."""
    stderr: logging.Handler = logging.StreamHandler(sys.stderr if stream is None else stream)
    handlers = [stderr]
    if settings.file is not None and not settings.to_stderr:
        stderr.setLevel(settings.threshold)
        handlers.append(
            RotatingFileHandler(settings.file, maxBytes=settings.max_bytes, backupCount=1, encoding="utf-8")
        )
    for handler in handlers:
        handler.setFormatter(FORMATS[settings.format]())
    root = logging.getLogger()
    root.handlers[:] = handlers
    verbosity = max(0, min(settings.verbosity, MOST))
    root.setLevel(logging.WARNING if verbosity < MOST else logging.DEBUG)
    logging.getLogger(ROOT).setLevel(logging.INFO - verbosity)
