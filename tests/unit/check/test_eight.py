"""`examples/mistakes/eight.ksp`: eight mistakes in one file, and all that a user is shown about them."""

from __future__ import annotations

from pathlib import Path

import pytest

from ksp.check.program import Checker
from ksp.source.diagnostic import Diagnostic
from ksp.source.origin import Folder
from ksp.source.render import render_text

HERE = Path(__file__).resolve().parent
FOLDER = "examples/mistakes"

# Code, the text that is pointed at, and what stands beside it.
EXPECTED = [
    ("KSP0201", "efect", "did you mean `effect`?"),
    ("KSP0205", "node.allocatable.pods - node.podCount", "this is `int`"),
    ("KSP0206", "node.allocatable.cpu - node.requested.cpu < 2Gi", "cpu < bytes"),
    ("KSP0120", "node", "`when` is missing"),
    ("KSP0211", "node.allocatable.pods", "may be 0"),
    ("KSP0304", "node", "depends on `node`"),
    ("KSP0504", "Rommy", "did you mean `Roomy`?"),
    ("KSP0508", "faktor", "did you mean `factor`?"),
]


@pytest.fixture(scope="module")
def found() -> list[Diagnostic]:
    checker = Checker(Folder(HERE.parents[2] / FOLDER, FOLDER))
    checker.check("eight.ksp")
    return sorted(checker.report.found, key=lambda each: each.span.start)


def test_each_of_the_eight_mistakes_is_reported_once_in_its_place(found: list[Diagnostic]) -> None:
    assert [(each.code, each.span.text, each.label) for each in found] == EXPECTED


def test_what_is_shown_is_what_was_agreed_on(found: list[Diagnostic]) -> None:
    assert render_text(found, color=False) == (HERE / "eight.txt").read_text(encoding="utf-8")
