"""Text that others wrote, made fit for a message that people read in a terminal."""

from __future__ import annotations

from typing import Final

_CUT: Final = " ..."


def printable(text: str, limit: int) -> str:
    """The text without control characters, at most `limit` bytes long in UTF-8; what is cut ends in ` ...`.

    Whatever does not print (line breaks, escapes, marks that turn the direction of writing, halves of surrogate pairs)
    becomes a space. `limit` is at least 4.
    """
    clean = text if text.isprintable() else "".join(char if char.isprintable() else " " for char in text)
    if len(clean) * 4 <= limit or len(clean.encode()) <= limit:
        return clean
    return clean.encode()[: limit - len(_CUT)].decode(errors="ignore") + _CUT
