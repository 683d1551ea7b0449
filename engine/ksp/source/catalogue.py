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
    ("KSP0201", "a field that does not exist"),
    ("KSP0202", "an unknown name"),
    ("KSP0203", "an unknown function or method"),
    ("KSP0204", "wrong arguments"),
    ("KSP0205", "another type is needed"),
    ("KSP0206", "different dimensions"),
    ("KSP0207", "an operator that does not work on these types"),
    ("KSP0208", "types that must agree"),
    ("KSP0209", "an unknown type"),
    ("KSP0210", "a name that is taken"),
    ("KSP0211", "a division by what may be 0"),
    ("KSP0212", "a constant outside of 64 bits"),
    ("KSP0213", "a quantity that is not whole"),
    ("KSP0214", "what needs itself"),
    ("KSP0215", "a pattern that cannot be used"),
    ("KSP0216", "a macro without its variable"),
    ("KSP0217", "something given twice"),
    ("KSP0218", "a type that is not known"),
    ("KSP0219", "a list or map is needed"),
    ("KSP0220", "a relation outside of a view"),
    ("KSP0221", "a name that is no value, or no function"),
    ("KSP0222", "a resource that cannot exist"),
    ("KSP0301", "a statement in the wrong place"),
    ("KSP0302", "no score, or a second one"),
    ("KSP0303", "statements of a score in the wrong order"),
    ("KSP0304", "a view that reads the node"),
    ("KSP0305", "a view that reads a view"),
    ("KSP0306", "the node, before any node is looked at"),
    ("KSP0307", "a view over something else"),
    ("KSP0308", "a view of an impossible form"),
    ("KSP0309", "a score that is not known yet"),
    ("KSP0310", "a constant is needed"),
    ("KSP0311", "a score outside of 0 to 100"),
    ("KSP0312", "a text that quotes what others own"),
    ("KSP0401", "a rule that costs too much"),
    ("KSP0402", "a rule or function that is too large"),
    ("KSP0403", "a value that can grow too large"),
    ("KSP0404", "too many files, parameters or expressions"),
    ("KSP0501", "an import that is not there"),
    ("KSP0502", "imports in a circle"),
    ("KSP0503", "an import of what may not be reached"),
    ("KSP0504", "an unknown rule or provider"),
    ("KSP0505", "a rule that stands twice"),
    ("KSP0506", "providers in a circle"),
    ("KSP0507", "nothing to take out"),
    ("KSP0508", "an unknown parameter"),
    ("KSP0509", "a wrong weight"),
    ("KSP0510", "a wrong setting of a profile"),
    ("KSP0511", "a time that cannot be waited"),
    ("KSP0601", "an unknown object in a test"),
    ("KSP0602", "an object that is not valid"),
    ("KSP0603", "an expectation that cannot hold"),
    ("KSP0701", "a comparison that an absent key passes"),
    ("KSP0702", "a `deny` that does not depend on the node"),
    ("KSP0703", "a rule that reads all labels of the pod"),
    ("KSP0704", "something that nothing reads"),
    ("KSP0705", "a rule or provider that decides for no pod"),
    ("KSP0706", "a score that can leave 0 to 100"),
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
