"""Profiles from names of plugins: which rule a name means."""

from __future__ import annotations

import pytest

from ksp.check.program import Module
from ksp.policy.load import load
from ksp.policy.plugins import PluginSet, UnknownPluginError, profile_of, rules_by_plugin, rules_in_order
from ksp.policy.profile import Candidates, ProfileBuilder
from ksp.source.origin import Texts
from ksp.source.text import Source

LIBRARY = """
predicate LibraryFits implements Fit { deny "library" when node.podCount > 1 }
predicate LibraryOther implements Other { deny "library" when node.podCount > 1 }
predicate LibraryLast implements Last { deny "library" when node.podCount > 1 }
"""
FIRST = 'import "library.ksp"\npredicate FirstFits implements Fit { deny "first" when node.podCount > 2 }'
SECOND = """
predicate SecondFits implements Fit { deny "second" when node.podCount > 3 }
predicate SecondOther implements Other { deny "second" when node.podCount > 3 }
priority Score implements Fit { score 1 }
"""


def module_of(text: str) -> Module:
    files = {"library.ksp": LIBRARY, "first.ksp": FIRST, "second.ksp": SECOND, "own.ksp": text}
    module = load(Texts(files), "own.ksp").module
    assert module is not None
    return module


def meant(text: str) -> dict[str, str]:
    rules = rules_by_plugin(rules_in_order(module_of(text)), "predicate")
    return {plugin: rule.name for plugin, rule in rules.items()}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('import "library.ksp"', {"Fit": "LibraryFits", "Other": "LibraryOther", "Last": "LibraryLast"}),
        # a file before what it imports
        ('import "first.ksp"', {"Fit": "FirstFits", "Other": "LibraryOther", "Last": "LibraryLast"}),
        # imports in the order of the text, the library of the first before the second
        ('import "first.ksp"\nimport "second.ksp"', {"Fit": "FirstFits", "Other": "LibraryOther"}),
        ('import "second.ksp"\nimport "first.ksp"', {"Fit": "SecondFits", "Other": "SecondOther"}),
        # own rules first, by the rule's name if it implements nothing
        (
            'import "first.ksp"\npredicate Other { deny "own" when node.podCount > 5 }',
            {"Fit": "FirstFits", "Other": "Other", "Last": "LibraryLast"},
        ),
    ],
)
def test_the_nearest_rule_that_implements_a_plugin_is_meant(text: str, expected: dict[str, str]) -> None:
    assert meant(text) | expected == meant(text)


def test_rules_of_a_union_of_files_are_found_too() -> None:
    file = module_of('import "library.ksp"\npredicate Own { deny "own" when node.podCount > 5 }')
    union = Module("", Source("", ""))
    union.own.update(file.own)
    union.seen.update(file.seen)
    assert [rule.name for rule in rules_in_order(union)] == ["Own", "LibraryFits", "LibraryOther", "LibraryLast"]


def test_a_profile_has_what_the_set_says() -> None:
    plugins = PluginSet(
        ("Fit",), (("Fit", 3),), percentage=7, preempts=False, checks_all=True, candidates=Candidates(1, 2)
    )
    made = profile_of(plugins, module_of('import "second.ksp"'), ProfileBuilder(), "mine")
    assert [active.name for active in made.predicates] == ["SecondFits"]
    assert [(active.name, active.weight) for active in made.priorities] == [("Score", 3)]
    assert (made.scheduler_name, made.percentage, made.preempts, made.checks_all, made.candidates) == (
        "mine", 7, False, True, Candidates(1, 2),
    )  # fmt: skip


def test_all_names_without_a_rule_are_told() -> None:
    with pytest.raises(UnknownPluginError) as caught:
        profile_of(
            PluginSet(("Fitt", "X"), (("Other", 1),)), module_of('import "second.ksp"'), ProfileBuilder(), "mine"
        )
    assert caught.value.missing == (
        "no rule of the policy implements `Fitt` where it filters: did you mean `Fit`?",
        "no rule of the policy implements `X` where it filters",
        "no rule of the policy implements `Other` where it scores",
    )
