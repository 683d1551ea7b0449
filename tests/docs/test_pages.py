"""The pages of `docs/` as a whole: links lead somewhere, policies have no mistakes, texts and names are those of the
code."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

from ksp.check.program import Checker
from ksp.source.origin import SHIPPED, Texts

ROOT = Path(__file__).parents[2]
PAGES = sorted((ROOT / "docs").glob("*.md"))
ENGINE = ROOT / "engine" / "ksp"
LINK = re.compile(r"\]\(([^)\s]+)\)")
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
HELD = {"language.md", "policies.md", "unread-fields.md"}  # their policies have tests of their own, or are generated
HOLES = re.compile(r"\b(?:NAMESPACE|NAME|POD|NODE|VOLUME)\b")


@cache
def text_of(page: Path) -> str:
    return page.read_text(encoding="utf-8")


@cache
def anchors(page: Path) -> frozenset[str]:
    """As GitHub makes them of headings."""
    heads = re.findall(r"^#+ (.*)$", FENCE.sub("", text_of(page)), re.MULTILINE)
    return frozenset(re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads)


@cache
def source(*folders: str) -> str:
    files = [file for folder in folders for file in sorted((ENGINE / folder).rglob("*.py"))]
    return "\n".join(file.read_text(encoding="utf-8") for file in files).replace("\\'", "'")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    for link in LINK.findall(FENCE.sub("", text_of(page))):
        if link.startswith("https:"):
            continue
        file, _, anchor = link.partition("#")
        target = page.parent / file if file else page
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link


def test_the_readme_knows_every_page() -> None:
    readme = text_of(ROOT / "README.md")
    assert [page.name for page in PAGES if f"](docs/{page.name})" not in readme] == []


def policies() -> list[tuple[str, str]]:
    found = [
        (page.name, text) for page in PAGES for language, text in FENCE.findall(text_of(page)) if language == "ksp"
    ]
    return [(name, text) for name, text in found if name not in HELD]


@pytest.mark.parametrize(("name", "text"), policies(), ids=[name for name, _ in policies()])
def test_policies_have_no_mistakes(name: str, text: str) -> None:
    checker = Checker(Texts({name: text}))
    assert checker.check(name) is not None
    assert [found for found in checker.report.found if not found.span.source.name.startswith(SHIPPED)] == []


def errors_of_volumes() -> list[str]:
    """The texts in the tables of errors."""
    rows = [line for line in text_of(ROOT / "docs" / "volumes.md").splitlines() if line.startswith("| ")]
    cells = [line.strip("| ").rpartition(" | ")[2] for line in rows if "`" in line and not line.startswith("| `")]
    return [said for cell in cells for said in re.findall(r"`([^`]+)`", cell)]


@pytest.mark.parametrize("said", errors_of_volumes())
def test_errors_of_volumes_are_worded_as_in_the_code(said: str) -> None:
    pattern = HOLES.sub(r"\\{[^}]+\\}", re.escape(said))
    assert re.search(pattern, source("core"))


def test_there_are_errors_of_volumes() -> None:
    assert len(errors_of_volumes()) > 10


@pytest.mark.parametrize("name", re.findall(r"`((?:scheduler|ksp)_\w+)", text_of(ROOT / "docs" / "preemption.md")))
def test_metrics_are_those_of_the_code(name: str) -> None:
    assert f'"{name.removesuffix("_total")}"' in source("runtime")
