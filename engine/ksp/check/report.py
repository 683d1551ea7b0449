"""Where a pass puts the mistakes it finds."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from difflib import get_close_matches

from ksp.source.diagnostic import Diagnostic, Note, Severity
from ksp.source.text import Span

MOST = 1000  # errors of one check, and as many warnings and advice; what a reader is shown is capped lower
SUGGESTIONS = 200  # of one check: a search among a thousand names takes some milliseconds
LONGEST_NAME = 60  # characters of a name that others are compared with
LONGEST_LINE = 300  # characters of a message, label or help: any of them may repeat a user's text


@dataclass(slots=True)
class Report:
    """Collects diagnostics; one mistake at one place is kept once."""

    found: list[Diagnostic] = field(default_factory=list)
    _seen: set[tuple[str, int, int, int]] = field(default_factory=set)
    _counts: list[int] = field(
        default_factory=lambda: [0, 0]
    )  # of what is no error, and of errors: none hides the other
    _suggestions: int = 0

    def add(self, diagnostic: Diagnostic) -> None:
        span = diagnostic.span
        key = (diagnostic.code, id(span.source), span.start, span.end)
        is_error = diagnostic.severity is Severity.ERROR
        if key not in self._seen and self._counts[is_error] < MOST:
            self._seen.add(key)
            self._counts[is_error] += 1
            self.found.append(diagnostic)

    def error(
        self, code: str, span: Span, message: str, label: str = "", help: str = "", notes: tuple[Note, ...] = ()
    ) -> None:
        self.add(Diagnostic(code, Severity.ERROR, _line(message), span, _line(label), notes, _line(help)))

    def warning(self, code: str, span: Span, message: str, label: str = "", help: str = "") -> None:
        self.add(Diagnostic(code, Severity.WARNING, _line(message), span, _line(label), (), _line(help)))

    def advice(self, code: str, span: Span, message: str, label: str = "", help: str = "") -> None:
        self.add(Diagnostic(code, Severity.ADVICE, _line(message), span, _line(label), (), _line(help)))

    @property
    def failed(self) -> bool:
        return self.errors_since(0)

    def errors_since(self, mark: int) -> bool:
        """An error was found after the first `mark` diagnostics."""
        return any(d.severity is Severity.ERROR for d in self.found[mark:])

    def did_you_mean(self, name: str, known: Iterable[str]) -> str:
        """`did you mean …?`, or nothing."""
        self._suggestions += 1
        return did_you_mean(name, known) if self._suggestions <= SUGGESTIONS else ""


def _line(text: str) -> str:
    """The text on one line, and not endless."""
    text = " ".join(text.split()) if "\n" in text or "\r" in text or "\t" in text else text
    return text if len(text) <= LONGEST_LINE else text[: LONGEST_LINE - 1] + "…"


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name that the user most likely meant, if one is near."""
    if len(name) > LONGEST_NAME:
        return None
    candidates = [name for name in known if len(name) <= LONGEST_NAME]
    same = [c for c in candidates if c.lower() == name.lower()]
    return same[0] if same else next(iter(get_close_matches(name, candidates, n=1, cutoff=0.6)), None)


# What other languages call the functions of this one.
ELSEWHERE = {
    "beginsWith": "startsWith", "hasPrefix": "startsWith", "hasSuffix": "endsWith", "includes": "contains",
    "length": "size", "len": "size", "count": "size", "any": "exists", "some": "exists", "every": "all",
    "find": "filter", "where": "filter", "select": "map", "toLower": "lowerAscii", "toUpper": "upperAscii",
    "unique": "distinct", "log": "ln", "floor": "int", "str": "string", "float": "double",
}  # fmt: skip


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """`did you mean …?`, or nothing."""
    names = list(known)
    near = ELSEWHERE[name] if ELSEWHERE.get(name) in names else nearest(name, names)
    return f"did you mean `{near}`?" if near else ""
