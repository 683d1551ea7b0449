"""Diagnostics to text for people, JSON for programs, and annotations for GitHub."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from unicodedata import category, combining, east_asian_width

from ksp.source.diagnostic import Diagnostic, Severity
from ksp.source.text import Span

MAX_SHOWN = 100
_WIDTH = 120
"""Columns of a quoted line that are shown; of a longer one, the part round the caret."""
_NARROWEST = 40
"""Columns of a terminal; for one that is narrower lines are broken as for this width."""
_TAB = "    "
_CONTROLS = {"\0": "␀", "\x1b": "␛", "\x7f": "␡"}
_COLORS = {Severity.ERROR: "\x1b[1;31m", Severity.WARNING: "\x1b[1;33m", Severity.ADVICE: "\x1b[1;36m"}
_BOLD, _BLUE, _PLAIN = "\x1b[1m", "\x1b[1;34m", "\x1b[0m"
_GITHUB = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.ADVICE: "notice"}


def in_order(diagnostics: Iterable[Diagnostic]) -> list[Diagnostic]:
    """By file and place, each once."""
    seen: dict[tuple[str, int, int, str, str], Diagnostic] = {}
    for each in diagnostics:
        key = (each.span.source.name, each.span.start, each.span.end, each.code, each.message)
        seen.setdefault(key, each)
    return [seen[key] for key in sorted(seen)]


# ---- for people


def render_text(diagnostics: Iterable[Diagnostic], color: bool, width: int | None = None) -> str:
    """As `docs/language.md` shows them, with an empty line between any two; "" if there are none. `width` is that of a
    terminal, in columns: lines are broken or cut to it, but for names of files. Without it texts are not broken."""
    ordered = in_order(diagnostics)
    columns = None if width is None else max(width, _NARROWEST)
    blocks = ["\n".join(_block(each, color, columns)) for each in ordered[:MAX_SHOWN]]
    if len(ordered) > MAX_SHOWN:
        blocks.append(f"and {len(ordered) - MAX_SHOWN} more")
    return "\n\n".join(blocks) + "\n" if blocks else ""


def _block(diagnostic: Diagnostic, color: bool, width: int | None) -> Iterator[str]:
    def paint(text: str, how: str) -> str:
        return f"{how}{text}{_PLAIN}" if color else text

    severity = diagnostic.severity
    head = f"{severity.value}[{diagnostic.code}]: "
    first, *rest = _broken(_visible(diagnostic.message), width, len(head), 2)
    yield f"{paint(head[:-2], _COLORS[severity])}{paint(': ' + first, _BOLD)}"
    yield from (paint(line, _BOLD) for line in rest)
    places = [diagnostic.span, *(note.span for note in diagnostic.notes if note.span is not None)]
    margin = max(len(str(line)) for span in places for line in _lines(span))
    quoting = _Quoting(margin, color, width)
    yield from quoting.quote(diagnostic.span, diagnostic.label, _COLORS[severity])
    for note in diagnostic.notes:
        yield from quoting.said("note", note.text)
        if note.span is not None:
            yield from quoting.quote(note.span, "", _BLUE)
    if diagnostic.help:
        yield from quoting.said("help", diagnostic.help)


def _broken(text: str, width: int | None, first: int, indent: int) -> list[str]:
    """The lines of a text that starts at column `first`; those after the first are indented. Words stay whole."""
    if width is None or first + len(text) <= width:
        return [text]
    lines = textwrap.wrap(
        text,
        max(width, first + 10),
        initial_indent=" " * first,
        subsequent_indent=" " * indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return [lines[0][first:], *lines[1:]]


def _lines(span: Span) -> tuple[int, int]:
    """The first and last line of a span. A span that ends with a line's end does not reach the next."""
    first = span.source.place(span.start)[0]
    return first, max(first, span.source.place(max(span.start, span.end - 1))[0])


@dataclass(frozen=True, slots=True)
class _Quoting:
    """How lines of a source are shown: `margin` is as wide as the largest line number, `width` that of the terminal."""

    margin: int
    color: bool
    width: int | None

    def paint(self, text: str, how: str) -> str:
        return f"{how}{text}{_PLAIN}" if self.color and text else text

    def said(self, what: str, text: str) -> Iterator[str]:
        """A note or the help below a quotation."""
        start = self.margin + len(f" = {what}: ")
        first, *rest = _broken(_visible(text), self.width, start, start)
        yield f"{' ' * self.margin} {self.paint('=', _BLUE)} {what}: {first}"
        yield from rest

    def quote(self, span: Span, label: str, how: str) -> Iterator[str]:
        """The place, and the lines of the text with carets; of many lines the first and the last. An empty source
        stands for a text that must not be shown."""
        empty = f"{' ' * self.margin} {self.paint('|', _BLUE)}"
        arrow = f"{' ' * self.margin}{self.paint('-->', _BLUE)} {_visible(span.source.name)}"
        if not span.source.text:
            yield arrow
            return
        line, column = span.source.place(span.start)
        yield f"{arrow}:{line}:{column}"
        yield empty
        first, last = _lines(span)
        for number in (first,) if first == last else (first, last):
            if number == last and last > first + 1:
                yield f"{' ' * self.margin} {self.paint(':', _BLUE)}"
            text, carets = _underlined(span, number, None if self.width is None else self.width - self.margin - 3)
            yield f"{self.paint(f'{number:>{self.margin}} |', _BLUE)} {text}".rstrip()
            blanks = carets[: len(carets) - len(carets.lstrip(" "))]
            beside, *below = self._label(label if number == last else "", carets, blanks)
            yield f"{empty} {blanks}{self.paint(carets.lstrip(' '), how)}{beside}"
            yield from (f"{empty} {part}" for part in below)

    def _label(self, label: str, carets: str, blanks: str) -> list[str]:
        """What stands beside the carets, and on the lines below them where that is too narrow."""
        said = f" {_visible(label)}" if label else ""
        room = None if self.width is None else self.width - self.margin - 3
        if room is None or len(carets) + len(said) <= room:
            return [said]
        indent = blanks[: max(0, room - _columns(said.strip()))]
        return ["", *(indent + line for line in _broken(said.strip(), room, 0, 0))]


def _underlined(span: Span, number: int, room: int | None) -> tuple[str, str]:
    """A line of the source as it is shown, and the carets below it; in `room` columns, if that is given."""
    if room is None:
        return _cut(span, number, _WIDTH, strict=False)
    most = min(_WIDTH, room)
    cut = _cut(span, number, most, strict=True)
    while most > 1 and _columns(cut[0]) > room:  # tabs, wide and hidden characters
        most -= 1
        cut = _cut(span, number, most, strict=True)
    return cut


def _cut(span: Span, number: int, most: int, *, strict: bool) -> tuple[str, str]:
    """About `most` characters of a line, those round the span's start; no more if `strict`."""
    source = span.source
    line = source.line(number)
    first, column = source.place(span.start)
    start = column - 1 if number == first else len(line) - len(line.lstrip())
    last_line, last_column = source.place(max(span.start, span.end))
    end = last_column - 1 if number == last_line else len(line)
    end = max(end, start + 1)
    start_cut, end_cut = _window(line, start, end, most, strict=strict)
    before, inside = _shown(line[start_cut:start]), _shown(line[start : min(end, end_cut)])
    dots = "…" if start_cut else ""
    text = dots + before + inside + _shown(line[end:end_cut]) + ("…" if end_cut < len(line) else "")
    return text, " " * (len(dots) + _columns(before)) + "^" * max(1, _columns(inside))


def _window(line: str, start: int, end: int, most: int, *, strict: bool) -> tuple[int, int]:
    """The part of a line to show: all, or some text round the caret."""
    if len(line) <= most:
        return 0, len(line)
    if strict:
        most = max(1, most - 2)  # two for the dots
        first = max(0, min(start - most // 3, len(line) - most))
        return first, min(len(line), first + most)
    first = max(0, min(start - most // 3, len(line) - most))
    return first, min(len(line), max(first + most, min(end, start + most)))


def _shown(text: str) -> str:
    """A part of a source, with blanks for tabs and nothing invisible."""
    return _visible(text.replace("\t", _TAB))


def _visible(text: str) -> str:
    """The text with each control character or mark of direction written out, so that no terminal obeys it."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(_CONTROLS.get(char) or (f"<U+{ord(char):04X}>" if _is_hidden(char) else char) for char in text)


def _is_hidden(char: str) -> bool:
    return category(char) in ("Cc", "Cf", "Cs", "Co", "Zl", "Zp")


def _columns(text: str) -> int:
    """The columns of a terminal that a text takes."""
    if text.isascii():
        return len(text)
    return sum(0 if combining(char) else 2 if east_asian_width(char) in "WF" else 1 for char in text)


# ---- for programs


def render_json(diagnostics: Iterable[Diagnostic]) -> str:
    """A list of objects, one for each diagnostic, all of them. Lines and columns count from 1, columns in characters;
    the end column is the first after the span."""
    return json.dumps([_object(each) for each in in_order(diagnostics)], ensure_ascii=True, indent=2)


def _object(diagnostic: Diagnostic) -> dict[str, object]:
    return {
        "code": diagnostic.code,
        "severity": diagnostic.severity.value,
        "message": diagnostic.message,
        **_position(diagnostic.span),
        "label": diagnostic.label,
        "help": diagnostic.help,
        "notes": [
            {"message": note.text, **(_position(note.span) if note.span is not None else {})}
            for note in diagnostic.notes
        ],
    }


def _position(span: Span) -> dict[str, object]:
    line, column = span.source.place(span.start)
    end_line, end_column = span.source.place(span.end)
    return {"file": span.source.name, "line": line, "column": column, "endLine": end_line, "endColumn": end_column}


# ---- for GitHub


def render_github(diagnostics: Iterable[Diagnostic]) -> str:
    """Workflow commands, one a line, which GitHub shows beside the changed lines."""
    ordered = in_order(diagnostics)
    lines = [_annotation(each) for each in ordered[:MAX_SHOWN]]
    if len(ordered) > MAX_SHOWN:
        lines.append(f"::notice::and {len(ordered) - MAX_SHOWN} more")
    return "".join(line + "\n" for line in lines)


def _annotation(diagnostic: Diagnostic) -> str:
    span = diagnostic.span
    line, column = span.source.place(span.start)
    end_line, end_column = span.source.place(span.end)
    place = {"file": span.source.name, "line": line, "col": column, "endLine": end_line, "endColumn": end_column}
    properties = ",".join(
        f"{key}={_property(str(value))}" for key, value in (place | {"title": diagnostic.code}).items()
    )
    said = "; ".join(filter(None, (diagnostic.message, diagnostic.label, diagnostic.help)))
    return f"::{_GITHUB[diagnostic.severity]} {properties}::{_escaped(said)}"


def _escaped(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _escaped(text).replace(":", "%3A").replace(",", "%2C")
