"""The policies that come with ksp: whole, without fault, explained to their readers, and met by their own tests."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

import pytest

from ksp.check.parts import expressions
from ksp.check.program import Checker, Module
from ksp.check.reasons import denials, failures, fixed_parts
from ksp.check.stages import walk
from ksp.check.typed import Expect, Function, Invoke, Provider, Rule
from ksp.policy.configuration import profiles_of, read_configuration
from ksp.policy.profile import ProfileBuilder
from ksp.sim.policy_tests import Runner
from ksp.sim.scenes import scene_of
from ksp.source.diagnostic import Severity
from ksp.source.origin import Folder
from ksp.syntax import tree
from ksp.syntax.parser import parse

POLICIES = Path(__file__).resolve().parents[2] / "policies"
FILES = sorted(Folder(POLICIES).files())
TESTED = [file for file in FILES if file.endswith(".test.ksp")]
SHIPPED = [file for file in FILES if not file.endswith(".test.ksp")]
LIBRARY = [file for file in SHIPPED if file.startswith("lib/")]

# All names of kube-scheduler's Policy that are predicates or priorities, and what they are called in its framework.
PREDICATES = {
    "PodFitsResources": "NodeResourcesFit", "HostName": "NodeName", "PodFitsHostPorts": "NodePorts",
    "MatchNodeSelector": "NodeAffinity", "CheckNodeUnschedulable": "NodeUnschedulable",
    "PodToleratesNodeTaints": "TaintToleration", "NoDiskConflict": "VolumeRestrictions",
    "MaxEBSVolumeCount": "EBSLimits", "MaxGCEPDVolumeCount": "GCEPDLimits",
    "MaxAzureDiskVolumeCount": "AzureDiskLimits", "MaxCinderVolumeCount": "CinderLimits",
    "MaxCSIVolumeCountPred": "NodeVolumeLimits", "NoVolumeZoneConflict": "VolumeZone",
    "CheckVolumeBinding": "VolumeBinding", "EvenPodsSpread": "PodTopologySpread",
    "MatchInterPodAffinity": "InterPodAffinity", "CheckNodeLabelPresence": "NodeLabel",
    "CheckServiceAffinity": "ServiceAffinity",
}  # fmt: skip
PRIORITIES = {
    "LeastRequestedPriority": "NodeResourcesLeastAllocated", "MostRequestedPriority": "NodeResourcesMostAllocated",
    "BalancedResourceAllocation": "NodeResourcesBalancedAllocation", "SelectorSpreadPriority": "SelectorSpread",
    "InterPodAffinityPriority": "InterPodAffinity", "NodeAffinityPriority": "NodeAffinity",
    "TaintTolerationPriority": "TaintToleration", "ImageLocalityPriority": "ImageLocality",
    "NodePreferAvoidPodsPriority": "NodePreferAvoidPods", "EvenPodsSpreadPriority": "PodTopologySpread",
    "EqualPriority": "EqualPriority", "RequestedToCapacityRatio": "RequestedToCapacityRatio",
    "NodeLabelPriority": "NodeLabel", "ServiceAntiAffinityPriority": "ServiceAffinity",
}  # fmt: skip
HISTORICAL = {
    "CheckNodeCondition": "CheckNodeCondition", "CheckNodeMemoryPressure": "CheckNodeMemoryPressure",
    "CheckNodeDiskPressure": "CheckNodeDiskPressure", "CheckNodePIDPressure": "CheckNodePIDPressure",
    "ResourceLimitsPriority": "NodeResourceLimits",
}  # fmt: skip
# In place of older ones of the same plugin, or of a score that the plugin did not have in 1.19.
NEWER = {
    "NodeResourcesFitPriority": "NodeResourcesFit", "NodeResourcesBalancePriority": "NodeResourcesBalancedAllocation",
}  # fmt: skip
ALIASES = {
    "PodFitsPorts": ["PodFitsHostPorts"],
    "GeneralPredicates": ["PodFitsResources", "HostName", "PodFitsHostPorts", "MatchNodeSelector"],
    "ServiceSpreadingPriority": ["SelectorSpreadPriority"],
    "NodeLabel": ["NodeLabelPriority"],
    "ServiceAffinity": ["ServiceAntiAffinityPriority"],
}
LONGEST = 40  # lines of a rule


@cache
def checked() -> tuple[Checker, Mapping[str, Module]]:
    checker = Checker(Folder(POLICIES))
    modules = {file: checker.check(file) for file in FILES}
    return checker, {file: module for file, module in modules.items() if module is not None}


def shipped_rules() -> dict[str, tuple[str, Rule]]:
    """Each rule by name, with the file that declares it."""
    modules = checked()[1]
    return {rule.name: (file, rule) for file in SHIPPED for rule in modules[file].own_rules()}


def beside(file: str) -> Module:
    """The tests of a file lie beside it."""
    return checked()[1][file.removesuffix(".ksp") + ".test.ksp"]


def expected_of(rule: Rule, tests: Module) -> list[Expect]:
    """What the tests expect of the rule, or of a provider that has it and no other of its kind: so rules are tested
    with arguments."""
    expects = [expect for test in tests.tests for expect in test.expects]
    return [expect for expect in expects if expect.rule is rule or _only(rule, expect.provider)]


def _only(rule: Rule, provider: Provider | None) -> bool:
    uses = () if provider is None else provider.predicates if rule.kind == "predicate" else provider.priorities
    return [use.rule for use in uses] == [rule]


def offered() -> Module:
    return checked()[1]["legacy.ksp"]


# ---- all rules are there


def test_every_file_checks_without_errors_or_warnings() -> None:
    checker, modules = checked()
    found = [(d.code, d.message, str(d.span)) for d in checker.report.found if d.severity is not Severity.ADVICE]
    assert found == []
    assert modules.keys() == set(FILES)


def test_every_rule_of_kube_scheduler_is_there_and_no_other() -> None:
    rules = {name: rule for name, (_, rule) in shipped_rules().items()}
    assert {name: rule.plugin for name, rule in rules.items()} == PREDICATES | PRIORITIES | HISTORICAL | NEWER
    kinds = {name: rule.kind for name, rule in rules.items() if name not in HISTORICAL.keys() | NEWER.keys()}
    assert kinds == dict.fromkeys(PREDICATES, "predicate") | dict.fromkeys(PRIORITIES, "priority")


def test_what_left_kube_scheduler_before_1_19_lies_apart() -> None:
    assert {name for name, (file, _) in shipped_rules().items() if file == "historical.ksp"} == HISTORICAL.keys()
    assert not HISTORICAL.keys() & offered().rules().keys()
    assert offered().rules().keys() == {*PREDICATES, *PRIORITIES}


def test_what_came_after_1_19_lies_apart_and_only_configurations_of_that_time_mean_it() -> None:
    modules = checked()[1]
    assert {name for name, (file, _) in shipped_rules().items() if file == "strategies.ksp"} == NEWER.keys()
    assert modules["all.ksp"].rules().keys() == {*PREDICATES, *PRIORITIES, *HISTORICAL}
    assert modules["modern.ksp"].rules().keys() == shipped_rules().keys()


def test_a_plugin_has_one_rule_of_a_kind_in_1_19_and_the_newer_one_where_it_is_imported_first() -> None:
    for file, newer in (("all.ksp", set()), ("modern.ksp", {("priority", "NodeResourcesBalancedAllocation")})):
        of_plugin: dict[tuple[str, str], list[str]] = defaultdict(list)
        for rule in checked()[1][file].rules().values():
            of_plugin[rule.kind, rule.plugin].append(rule.name)
        assert {plugin for plugin, names in of_plugin.items() if len(names) > 1} == newer
        assert all(of_plugin[plugin][0] in NEWER for plugin in newer)


@pytest.mark.parametrize("alias", ALIASES)
def test_an_alias_stands_for_its_rules_in_their_order(alias: str) -> None:
    provider = offered().providers()[alias]
    assert [use.rule.name for use in (*provider.predicates, *provider.priorities)] == ALIASES[alias]


@pytest.mark.shared
def test_every_name_that_kube_scheduler_knows_leads_to_its_plugins(shared: Path) -> None:
    legacy = json.loads((shared / "golden" / "legacy-1.19.json").read_text())
    rules, providers = offered().rules(), offered().providers()
    for name, mapped in legacy["predicates"].items():
        uses = [use.rule for use in providers[name].predicates] if name in providers else [rules[name]]
        assert {rule.kind for rule in uses} == {"predicate"}
        assert [rule.plugin for rule in uses] == [plugin["name"] for plugin in mapped["plugins"]["filter"]], name
    for name, mapped in legacy["priorities"].items():
        uses = [use.rule for use in providers[name].priorities] if name in providers else [rules[name]]
        assert {rule.kind for rule in uses} == {"priority"}
        assert [rule.plugin for rule in uses] == [plugin["name"] for plugin in mapped["plugins"]["score"]], name
    for alias, name in (legacy["predicateAliases"] | legacy["priorityAliases"]).items():
        assert ALIASES[alias] == [name]
    assert set(legacy["ignoredPriorities"]) <= rules.keys()
    order = offered().own["policyOrder"]
    assert re.findall(r'"(\w+)"', order.value.span.text) == legacy["predicateOrdering"]  # type: ignore[union-attr]


@pytest.mark.parametrize("provider", ["DefaultProvider", "ClusterAutoscalerProvider"])
def test_the_providers_have_24_rules(provider: str) -> None:
    found = offered().providers()[provider]
    assert (len(found.predicates), len(found.priorities)) == (15, 9)


def test_the_modern_provider_is_what_a_configuration_that_says_nothing_comes_to() -> None:
    said = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
    module, builder = checked()[1]["modern.ksp"], ProfileBuilder()
    (configured,) = profiles_of(read_configuration(said, "v1.yaml"), module, builder).profiles
    provided = builder.build(module.providers()["ModernProvider"])
    assert [(p.name, p.arguments) for p in provided.predicates] == [
        (p.name, p.arguments) for p in configured.predicates
    ]
    assert [(p.name, p.weight) for p in provided.priorities] == [(p.name, p.weight) for p in configured.priorities]


# ---- tests


@pytest.mark.parametrize("name", sorted(shipped_rules()))
def test_every_rule_has_tests_of_its_own_in_which_it_says_both(name: str) -> None:
    file, rule = shipped_rules()[name]
    found = expected_of(rule, beside(file))
    verdicts = {expect.verdict for expect in found}
    if rule.kind == "predicate":
        assert verdicts >= {"admits", "denies"}
        said = {expect.reason for expect in found if expect.verdict == "denies"}
        reasons = [fixed_parts(reason) for denial in denials(rule) for reason in denial.reasons]
        assert all(any(_says(reason, text) for text in said) for reason in reasons), "a reason that no test sees"
    elif name == "EqualPriority":
        assert [expect.score for expect in found] == [1, 1]
    else:
        assert len({expect.score for expect in found if expect.verdict == "scores"}) > 1 or "places" in verdicts


@pytest.mark.parametrize("file", LIBRARY)
def test_every_function_of_the_library_has_tests_beside_it(file: str) -> None:
    module, tests = checked()[1][file], beside(file)
    functions = {name for name, declared in module.own.items() if isinstance(declared, Function)}
    tried: dict[str, set[tuple[str, str]]] = defaultdict(set)
    for rule in tests.own_rules():
        outcomes = {(expect.verdict, expect.reason) for expect in expected_of(rule, tests)}
        for called in _called(rule):
            tried[called] |= outcomes
    assert functions
    assert {name for name in functions if len(tried[name]) < 2} == set()


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


def _called(rule: Rule) -> Iterator[str]:
    for expr in expressions(rule):
        yield from (part.function.name for part in walk(expr) if isinstance(part, Invoke))


def _says(reason: list[str], text: str) -> bool:
    return re.fullmatch(".*".join(map(re.escape, reason)), text, re.DOTALL) is not None


# ---- what readers find


def paragraphs(doc: str) -> list[str]:
    return [" ".join(part.split()) for part in doc.split("\n\n")]


@pytest.mark.parametrize("name", sorted(shipped_rules()))
def test_every_rule_says_what_it_asks_when_it_denies_and_what_users_see(name: str) -> None:
    rule = shipped_rules()[name][1]
    asks, when, users = paragraphs(rule.doc)
    assert re.match(r"[A-Z].*\.$", asks)
    assert re.match(r"A node is denied when\b.*\.$" if rule.kind == "predicate" else r"A node gets\b.*\.$", when)
    assert re.match(r"Users see\b.*\.$", users)
    quoted = re.findall("`([^`]+)`", users)
    for denial in denials(rule):
        for reason in denial.reasons:
            assert any(_says(fixed_parts(reason), text) for text in quoted), reason.span.text


@pytest.mark.parametrize("name", sorted(shipped_rules()))
def test_what_can_end_an_attempt_with_an_error_is_told(name: str) -> None:
    rule = shipped_rules()[name][1]
    if list(failures(rule)):
        assert "error" in paragraphs(rule.doc)[2]


@pytest.mark.parametrize("name", sorted(shipped_rules()))
def test_every_parameter_is_explained(name: str) -> None:
    rule = shipped_rules()[name][1]
    assert [each.binding.name for each in rule.parameters if not each.doc] == []


@pytest.mark.parametrize("file", SHIPPED)
def test_every_file_says_what_it_is_about(file: str) -> None:
    first = checked()[1][file].source.text.splitlines()[0]
    assert re.match(r"// \S", first)


@pytest.mark.parametrize("file", SHIPPED)
def test_what_files_share_is_explained(file: str) -> None:
    declared = [each for each in checked()[1][file].own.values() if not isinstance(each, Rule)]
    assert [each.name for each in declared if not each.doc] == []


def declarations(file: str) -> tuple[tree.Declaration, ...]:
    return parse(checked()[1][file].source).file.declarations


@pytest.mark.parametrize("file", SHIPPED)
def test_rules_are_short_and_shared_functions_lie_in_the_library(file: str) -> None:
    for declared in declarations(file):
        if isinstance(declared, tree.Rule):
            assert declared.span.text.count("\n") < LONGEST, declared.name
            assert file not in LIBRARY, "the library has functions, and no rules"
        if isinstance(declared, tree.Function):
            assert file in LIBRARY, f"{declared.name} belongs into lib/"


@pytest.mark.parametrize("file", FILES)
def test_lines_fit_on_a_screen(file: str) -> None:
    assert [line for line in checked()[1][file].source.text.splitlines() if len(line) > 120] == []
