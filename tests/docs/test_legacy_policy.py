"""`docs/legacy-policy.md`: its tables are those of the code, and what it shows of `ksp convert` is what that writes."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from tests.docs.page import section
from tests.unit.cli.commands import ksp

from ksp.policy.legacy import RULES, LegacyPolicyError, read_policy
from ksp.policy.legacy.names import (
    DEFAULT_PREDICATES,
    DEFAULT_PRIORITIES,
    MANDATORY,
    PREDICATE_ALIASES,
    PREDICATES,
    PRIORITIES,
    PRIORITY_ALIASES,
)
from ksp.policy.legacy.naming import INTERNAL
from ksp.policy.load import load
from ksp.policy.plugins import rules_by_plugin
from ksp.source.origin import Texts

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "legacy-policy.md").read_text(encoding="utf-8")
FENCES = re.findall(r"^```(\w+)\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
MARKS = {"default": DEFAULT_PREDICATES, "mandatory": MANDATORY}
EXAMPLE = "examples/legacy/policy.json"


def rows(name: str) -> Iterator[tuple[list[str], list[str], list[str], str]]:
    """The names in the first three cells of each row, and the text of the fourth."""
    for line in section(PAGE, name).splitlines()[2:]:
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        first, second, third = (re.findall(r"`(\w+)`", cell) for cell in cells[:3])
        yield first, second, third, cells[3]


@cache
def rules(kind: str) -> dict[str, str]:
    """The rules of Policies by plugin."""
    module = load(Texts({}), RULES).module
    assert module is not None
    every = [*module.own_rules(), *module.rules().values()]
    return {plugin: rule.name for plugin, rule in rules_by_plugin(every, kind).items()}


def test_the_table_of_predicates() -> None:
    aliases = {name: alias for alias, name in PREDICATE_ALIASES.items()}
    expected = [
        (
            [name, *([aliases[name]] if name in aliases else [])],
            [rules("predicate")[plugin] for plugin in points["filter"]],
            list(points["filter"]),
            ", ".join(what for what, names in MARKS.items() if name in names),
        )
        for name, points in PREDICATES.items()
    ]  # fmt: skip
    assert list(rows("predicates")) == expected


def test_the_table_of_priorities() -> None:
    aliases = {name: alias for alias, name in PRIORITY_ALIASES.items()}
    expected = [
        (
            [name, *([aliases[name]] if name in aliases else [])],
            [rules("priority")[plugin]],
            [plugin],
            str(DEFAULT_PRIORITIES.get(name, "")),
        )
        for name, plugin in PRIORITIES.items()
        if name not in INTERNAL
    ]
    assert list(rows("priorities")) == expected


def without_proof(text: str) -> list[str]:
    return [line for line in text.splitlines() if not line.startswith("Proved:")]


def test_what_is_shown_of_a_conversion_is_what_it_writes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    result = ksp("convert", EXAMPLE, "--decisions", "8")
    (policy,) = (text for language, text in FENCES if language == "ksp")
    report = next(text for language, text in FENCES if language == "text")
    assert result.stdout == policy
    assert without_proof(result.stderr) == without_proof(report)
    assert "Proved: 300 decisions about generated clusters are the same by both, scores included; " in report


def test_the_errors_that_are_shown() -> None:
    policy = {
        "kind": "Policy",
        "apiVersion": "v1",
        "predicates": [{"name": "HostName"}, {"name": "PodFitsResource"}],
        "priorities": [{"name": "ImageLocalityPriority", "weight": 0}],
    }
    with pytest.raises(LegacyPolicyError) as caught:
        read_policy(json.dumps(policy), "policy.json")
    assert [text.splitlines() for language, text in FENCES if language == "text"][1] == list(caught.value.messages)
