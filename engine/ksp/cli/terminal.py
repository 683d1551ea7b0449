"""What a terminal can show."""

from __future__ import annotations

import os
import shutil
from typing import TextIO

RED, GREEN, YELLOW, BOLD, DIM, PLAIN = "\x1b[1;31m", "\x1b[1;32m", "\x1b[1;33m", "\x1b[1m", "\x1b[2m", "\x1b[0m"


def is_colored(stream: TextIO) -> bool:
    """A terminal, whose user does not ask for plain text (https://no-color.org)."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def paint(text: str, how: str, *, color: bool) -> str:
    return f"{how}{text}{PLAIN}" if color else text


def width(stream: TextIO) -> int | None:
    """Columns of a terminal; None for a pipe, where lines are not broken."""
    return shutil.get_terminal_size().columns if stream.isatty() else None


def counted(number: int, noun: str) -> str:
    """`1 error`, `2 errors`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
