"""Checks several files of one origin: what a folder, a ConfigMap or a list of paths comes to."""

from __future__ import annotations

from ksp.check import limits
from ksp.check.program import Checker, Module
from ksp.source.diagnostic import Diagnostic, Severity
from ksp.source.origin import SHIPPED, Origin
from ksp.source.text import Source, Span

_TOO_MANY = "KSP0404"


class Checking:
    """The files share what they import, as long as no file's limits can be touched by that."""

    def __init__(self, origin: Origin) -> None:
        self._origin = origin
        self._checker = Checker(origin)

    def check(self, key: str) -> tuple[Module | None, list[Diagnostic]]:
        """The file, None if it cannot be read, and what was found in it and in those of its imports that none of the
        files before it imports."""
        if len(self._checker.modules) > limits.FILES // 2:
            self._checker = Checker(self._origin)
        found = self._found(key)
        if any(each.code == _TOO_MANY for each in found):
            self._checker = Checker(self._origin)
            found = self._found(key)
        return self._checker.modules[key], found

    def _found(self, key: str) -> list[Diagnostic]:
        before = len(self._checker.report.found)
        self._checker.check(key)
        return self._checker.report.found[before:]


def concerns_user(found: Diagnostic) -> bool:
    """Warnings about the shipped library are not for those who import it."""
    return found.severity is Severity.ERROR or not found.span.source.name.startswith(SHIPPED)


def unreadable(name: str, why: str) -> Diagnostic:
    """The file of that name is missing, or no policy can be read from it."""
    return Diagnostic("KSP0101", Severity.ERROR, why, Span(Source(name, ""), 0, 0))
