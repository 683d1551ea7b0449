"""The catalogue of mistakes: a code, a title and a page for each. A number is never used again for something else.

KSP01xx reading and syntax, 02xx names and types, 03xx rules, stages and views, 04xx limits and cost, 05xx providers,
profiles and imports, 06xx tests, 07xx advice. `ksp rule KSP0123` prints a page.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from importlib.resources import files


@dataclass(frozen=True, slots=True)
class Entry:
    """One mistake. Its page is a Markdown file beside this module, read when it is asked for."""

    code: str
    title: str

    @property
    def page(self) -> str:
        """What the mistake means, a text that has it, and the same text mended."""
        return _page(self.code)


@cache
def _page(code: str) -> str:
    return (files("ksp.source") / "pages" / f"{code}.md").read_text(encoding="utf-8")


_ROWS = (
    ("KSP0101", "a file cannot be read"),
    ("KSP0102", "a text is too large"),
    ("KSP0103", "a file is not UTF-8"),
    ("KSP0104", "a text is not a policy"),
    ("KSP0105", "an invisible character"),
    ("KSP0106", "a byte order mark"),
    ("KSP0107", "a character that means nothing"),
    ("KSP0108", "a string that does not end on its line"),
    ("KSP0109", "an unknown escape in a string"),
    ("KSP0110", "a `${…}` that cannot be read"),
    ("KSP0111", "a `${…}` where the text must be plain"),
    ("KSP0112", "a malformed number"),
    ("KSP0113", "a percentage or a duration"),
    ("KSP0114", "a number that is too large"),
    ("KSP0115", "something else is expected here"),
    ("KSP0116", "a bracket that is not closed"),
    ("KSP0117", "a bracket that closes nothing"),
    ("KSP0118", "`=` where a comparison is meant"),
    ("KSP0119", "a word or operator of another language"),
    ("KSP0120", "a statement without its `when`"),
    ("KSP0121", "a `deny` or `fail` without its text"),
    ("KSP0122", "a keyword as a name"),
    ("KSP0123", "nesting that is too deep"),
    ("KSP0124", "no declaration where one should start"),
    ("KSP0125", "no statement where one should start"),
    ("KSP0126", "too much in one text"),
)


def table(rows: Iterable[tuple[str, str]]) -> dict[str, Entry]:
    """The rows by their code. A code that stands twice is a mistake of ours, found at import."""
    entries: dict[str, Entry] = {}
    for code, title in rows:
        if code in entries:
            raise ValueError(f"{code} stands twice in the catalogue")
        entries[code] = Entry(code, title)
    return entries


CATALOGUE = table(_ROWS)
