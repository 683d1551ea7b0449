"""Where a pass puts the mistakes it finds."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from difflib import get_close_matches

from ksp.source.diagnostic import Diagnostic, Note, Severity
from ksp.source.text import Span

MOST = 1000  # of one check; what a reader is shown is capped lower


@dataclass(slots=True)
class Report:
    """Collects diagnostics; one mistake at one place is kept once."""

    found: list[Diagnostic] = field(default_factory=list)
    _seen: set[tuple[str, int, int, int]] = field(default_factory=set)

    def add(self, diagnostic: Diagnostic) -> None:
        span = diagnostic.span
        key = (diagnostic.code, id(span.source), span.start, span.end)
        if key not in self._seen and len(self.found) < MOST:
            self._seen.add(key)
            self.found.append(diagnostic)

    def error(
        self, code: str, span: Span, message: str, label: str = "", help: str = "", notes: tuple[Note, ...] = ()
    ) -> None:
        self.add(Diagnostic(code, Severity.ERROR, message, span, label, notes, help))

    def warning(self, code: str, span: Span, message: str, label: str = "", help: str = "") -> None:
        self.add(Diagnostic(code, Severity.WARNING, message, span, label, (), help))

    def advice(self, code: str, span: Span, message: str, label: str = "", help: str = "") -> None:
        self.add(Diagnostic(code, Severity.ADVICE, message, span, label, (), help))

    @property
    def failed(self) -> bool:
        return any(d.severity is Severity.ERROR for d in self.found)


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name that the user most likely meant, if one is near."""
    candidates = list(known)
    same = [c for c in candidates if c.lower() == name.lower()]
    return same[0] if same else next(iter(get_close_matches(name, candidates, n=1, cutoff=0.6)), None)


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """`did you mean …?`, or nothing."""
    near = nearest(name, known)
    return f"did you mean `{near}`?" if near else ""
