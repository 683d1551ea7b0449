"""A text with a name, and spans of it: what every later pass points at."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, eq=False)
class Source:
    """A named text. `name` is what a user would type to open it: a path, or a key of a ConfigMap.

    Two sources are the same only if they are one object: names can repeat, for instance under test.
    """

    name: str
    text: str = field(repr=False)
    _starts: list[int] = field(default_factory=list, repr=False)

    def _line_starts(self) -> list[int]:
        if not self._starts:
            self._starts.append(0)
            self._starts.extend(i + 1 for i, char in enumerate(self.text) if char == "\n")
        return self._starts

    def place(self, offset: int) -> tuple[int, int]:
        """Line and column of a character, both from 1. An offset past the end is the end."""
        offset = max(0, min(offset, len(self.text)))
        starts = self._line_starts()
        line = bisect_right(starts, offset)
        return line, offset - starts[line - 1] + 1

    def line(self, number: int) -> str:
        """The text of a line, counted from 1, without its end; empty if there is no such line."""
        starts = self._line_starts()
        if not 1 <= number <= len(starts):
            return ""
        end = starts[number] - 1 if number < len(starts) else len(self.text)
        return self.text[starts[number - 1] : end].rstrip("\r")


@dataclass(frozen=True, slots=True)
class Span:
    """The characters `start` to `end` (exclusive) of a source."""

    source: Source
    start: int
    end: int

    @property
    def text(self) -> str:
        return self.source.text[self.start : self.end]

    @property
    def where(self) -> str:
        """`FILE:LINE` of its start, as editors take it."""
        return f"{self.source.name}:{self.source.place(self.start)[0]}"

    def to(self, other: Span) -> Span:
        """From the start of this one to the end of the other."""
        return Span(self.source, self.start, other.end)
