"""`docs/policies.md` is what the shipped policies say, and its links lead somewhere."""

from __future__ import annotations

import os
import re
from collections import Counter
from pathlib import Path

import pytest
from tests.policies.test_shipped import ALIASES, shipped_rules
from tests.unit.cli.commands import ksp

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "policies.md"
TEXT = PAGE.read_text(encoding="utf-8")


def headings() -> list[str]:
    return re.findall(r"^#+ (.*)$", TEXT, re.MULTILINE)


def section(heading: str) -> str:
    """The text below a heading, to the next one."""
    return TEXT.partition(f"\n### {heading}\n")[2].partition("\n#")[0]


def test_the_page_is_what_the_policies_say(monkeypatch: pytest.MonkeyPatch) -> None:
    """If not: ksp doc policies --output docs/policies.md"""
    monkeypatch.chdir(ROOT)
    result = ksp("doc", "policies", "--check", "docs/policies.md")
    assert (result.exit_code, result.output) == (0, "")


def test_every_link_to_a_heading_finds_one() -> None:
    linked = set(re.findall(r"\]\(#([^)]*)\)", TEXT))
    given = {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings()}
    assert linked <= given
    assert [heading for heading, count in Counter(headings()).items() if count > 1] == []


def test_every_link_to_a_file_finds_it() -> None:
    files = set(re.findall(r"\]\(([^)#]+)\)", TEXT))
    assert len(files) > 20
    assert [file for file in files if not (PAGE.parent / file).is_file()] == []


@pytest.mark.parametrize("name", sorted(shipped_rules()))
def test_every_rule_is_on_the_page_with_all_that_it_says_of_itself(name: str) -> None:
    file, rule = shipped_rules()[name]
    text = section(name)
    assert f"[`{file}`](../policies/{file})" in text
    assert rule.doc in text
    assert [p.binding.name for p in rule.parameters if f"| `{p.binding.name}` |" not in text] == []
    assert (f"implements the plugin `{rule.plugin}`" in text) == (rule.plugin != name)
    assert ("**reasons:**" in text) == (rule.kind == "predicate")


def test_the_providers_are_there_with_their_weights_in_order() -> None:
    text = section("DefaultProvider")
    assert "| [NodePreferAvoidPodsPriority](#nodepreferavoidpodspriority) | 10000 |" in text
    assert re.findall(r"^\d+\. \[(\w+)\]", text, re.MULTILINE)[:3] == [
        "CheckNodeUnschedulable",
        "PodFitsResources",
        "HostName",
    ]
    for alias, rules in ALIASES.items():
        assert all(f"[{rule}](#{rule.lower()})" in section(alias) for rule in rules)


def test_it_names_no_place_of_the_machine_that_made_it() -> None:
    assert str(ROOT) not in TEXT
    assert os.path.relpath(ROOT, "/") not in TEXT
