"""The policies that come with ksp: without fault, tested, and met by their own tests."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import pytest

from ksp.check.program import Checker, Module
from ksp.check.typed import Expect, Rule
from ksp.sim.policy_tests import Runner
from ksp.sim.scenes import scene_of
from ksp.source.diagnostic import Severity
from ksp.source.origin import Folder

POLICIES = Path(__file__).resolve().parents[2] / "policies"
FILES = sorted(Folder(POLICIES).files())
TESTED = [file for file in FILES if file.endswith(".test.ksp")]
PROVIDERS = ("DefaultProvider", "ClusterAutoscalerProvider")


@cache
def checked() -> tuple[Checker, Mapping[str, Module]]:
    checker = Checker(Folder(POLICIES))
    modules = {file: checker.check(file) for file in FILES}
    return checker, {file: module for file, module in modules.items() if module is not None}


def expects() -> Mapping[str, list[Expect]]:
    """What is expected of each rule by name."""
    found: dict[str, list[Expect]] = defaultdict(list)
    for module in checked()[1].values():
        for test in module.tests:
            for expect in test.expects:
                if expect.rule is not None:
                    found[expect.rule.name].append(expect)
    return found


def shipped_rules() -> dict[str, Rule]:
    modules = checked()[1]
    return {rule.name: rule for file in FILES for rule in modules[file].own_rules()}


def test_every_file_checks_without_errors_or_warnings() -> None:
    checker, modules = checked()
    found = [(d.code, d.message, str(d.span)) for d in checker.report.found if d.severity is not Severity.ADVICE]
    assert found == []
    assert modules.keys() == set(FILES)


@pytest.mark.parametrize("provider", PROVIDERS)
def test_every_rule_of_the_providers_has_an_expectation(provider: str) -> None:
    found = checked()[1]["cluster-autoscaler.ksp"].providers()[provider]
    rules = {use.rule.name for use in (*found.predicates, *found.priorities)}
    assert len(rules) == 24
    assert rules - expects().keys() == set()


def test_every_predicate_is_seen_to_admit_and_to_deny() -> None:
    """A rule that takes arguments may be tested through a provider that gives them."""
    verdicts = {name: {expect.verdict for expect in found} for name, found in expects().items()}
    predicates = {name for name, rule in shipped_rules().items() if rule.kind == "predicate"}
    by_provider = {"CheckNodeLabelPresence", "CheckServiceAffinity"}
    assert {name for name in predicates if verdicts.get(name) != {"admits", "denies"}} == by_provider


def test_every_priority_is_seen_to_give_different_scores() -> None:
    scores = {name: {expect.score for expect in found} for name, found in expects().items()}
    priorities = {name for name, rule in shipped_rules().items() if rule.kind == "priority"}
    by_provider = {"NodeLabelPriority", "ServiceAntiAffinityPriority", "RequestedToCapacityRatio"}
    assert {name for name in priorities if len(scores.get(name, ())) < 2} == by_provider


def test_every_rule_has_a_comment_for_its_reader() -> None:
    assert [name for name, rule in shipped_rules().items() if not rule.doc] == []


@pytest.mark.parametrize("file", TESTED)
def test_every_expectation_is_met(file: str) -> None:
    runner = Runner()
    results = []
    for test in checked()[1][file].tests:
        scene, mistakes = scene_of(test, POLICIES)
        assert scene is not None, mistakes
        results += list(runner.run(scene))
    assert results
    missed = [f"{r.test.name}: {r.expect.span.text}: {r.happened}" for r in results if r.happened]
    assert not missed, "\n".join(missed)
