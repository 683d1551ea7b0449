from __future__ import annotations

import re
from importlib.resources import files

import pytest

from ksp.source.catalogue import CATALOGUE, table
from ksp.source.text import Source
from ksp.syntax.parser import parse

SYNTAX = sorted(code for code in CATALOGUE if code.startswith("KSP01"))
FENCE = re.compile(r"^(\w+):\n\n```ksp\n(.*?)\n```$", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("code", sorted(CATALOGUE))
def test_every_code_has_a_page_with_its_title(code: str) -> None:
    entry = CATALOGUE[code]
    assert re.fullmatch(r"KSP0[1-7]\d\d", code)
    assert entry.code == code
    assert entry.page.splitlines()[0] == f"# {code}: {entry.title}"
    assert "Wrong:" in entry.page
    assert "Mended:" in entry.page


def test_there_are_no_pages_without_a_code() -> None:
    names = {page.name for page in (files("ksp.source") / "pages").iterdir()}
    assert names == {f"{code}.md" for code in CATALOGUE}


@pytest.mark.parametrize("code", SYNTAX)
def test_the_examples_of_a_page_show_what_it_says(code: str) -> None:
    examples = dict(FENCE.findall(CATALOGUE[code].page))
    if examples:
        wrong, mended = parse(Source("page", examples["Wrong"])), parse(Source("page", examples["Mended"]))
        assert {each.code for each in wrong.diagnostics} == {code}
        assert mended.diagnostics == ()


def test_a_code_cannot_stand_twice() -> None:
    with pytest.raises(ValueError, match="KSP0101 stands twice"):
        table([("KSP0101", "a"), ("KSP0102", "b"), ("KSP0101", "c")])
