"""Profiles of a configuration in the rules of a policy: names, and how they decide."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import pytest
from tests.golden.recorded import FIELDS, SAMPLE, Case, cases, differences
from tests.unit.policy.configuration.configurations import (
    BUILDER,
    MODERN,
    OWN,
    VERSIONS,
    errors,
    module,
    profile,
    read,
    resolve,
    text_of,
    warnings,
)

from ksp.policy.configuration import Profiles, profiles_of, read_configuration
from ksp.policy.profile import Profile as Made
from ksp.sim.cases import decided

EXAMPLE = Path(__file__).parents[4] / "examples" / "configuration" / "two-profiles.yaml"
AT = "4: profiles[0].plugins."
MISSING = "no rule of the policy implements it"


# ---- names


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (
            "{filter: {enabled: [{name: FewPod}]}}",
            (
                f'filter.enabled[0]: Invalid value: "FewPod": FilterPlugin "FewPod" does not exist: {MISSING} where it '
                "filters; did you mean `FewPods`?"
            ),
        ),
        (
            "{score: {enabled: [{name: FewPods}]}}",
            (
                f'score.enabled[0]: Invalid value: "FewPods": ScorePlugin '
                f'"FewPods" does not exist: {MISSING} where it scores'
            ),
        ),
        (
            "{filter: {enabled: [{name: ImageLocality}]}}",
            (
                'filter.enabled[0]: Invalid value: "ImageLocality": plugin '
                '"ImageLocality" does not extend FilterPlugin plugin'
            ),
        ),
        (
            "{preFilter: {enabled: [{name: FewPot}]}}",
            'preFilter.enabled[0]: Invalid value: "FewPot": plugin "FewPot" does not exist; did you mean `FewPods`?',
        ),
        (
            "{preScore: {enabled: [{name: NodeName}]}}",
            'preScore.enabled[0]: Invalid value: "NodeName": plugin "NodeName" does not extend PreScorePlugin plugin',
        ),
    ],
)  # fmt: skip
def test_a_name_without_a_rule_is_an_error_with_the_nearest_name(said: str, expected: str, version: str) -> None:
    assert errors(lambda: resolve(profile(said), version, OWN)) == [AT + expected]


@pytest.mark.parametrize("version", ["v1beta3", "v1"])
def test_a_name_of_multi_point_that_means_nothing(version: str) -> None:
    said = "{multiPoint: {enabled: [{name: FewPod}]}}"
    assert errors(lambda: resolve(profile(said), version, OWN)) == [
        (
            f'{AT}multiPoint.enabled[0]: Invalid value: "FewPod": plugin '
            f'"FewPod" does not exist: {MISSING}; did you mean `FewPods`?'
        )
    ]


def test_default_plugins_have_to_be_in_the_policy_too() -> None:
    found = errors(lambda: resolve(profile("{}"), "v1", 'import "ksp:nodes.ksp"\npriority P { score 1 }'))
    assert (
        '4: profiles[0].plugins.filter: Invalid value: "NodePorts": FilterPlugin "NodePorts" does not exist: '
        f'{MISSING} where it filters; the shipped rule is in "ksp:modern.ksp"'
    ) in found
    assert len(found) == 12 + 6  # what nodes.ksp lacks of 15 that filter and 7 that score


@pytest.mark.parametrize("version", VERSIONS)
def test_a_custom_rule_is_enabled_by_its_plugins_name(version: str) -> None:
    said = "{preFilter: {enabled: [{name: FewPods}]}, filter: {enabled: [{name: FewPods}]}}"
    made = resolve(profile(said, "[{name: FewPods, args: {most: 3}}]"), version, OWN)
    last = made.profiles[0].predicates[-1]
    assert (last.name, last.arguments) == ("FewPods", {"most": 3})
    assert warnings(made) == []


def test_an_own_rule_comes_before_one_that_is_imported() -> None:
    rules = 'import "ksp:strategies.ksp"\npriority Own implements NodeResourcesFit { score 7 }'
    names = [f"{{name: {name}}}" for name in ("PrioritySort", "DefaultBinder", "NodeResourcesBalancedAllocation")]
    everywhere = f"multiPoint: {{disabled: [{{name: '*'}}], enabled: [{', '.join(names)}]}}"
    (made,) = resolve(
        profile(f"{{{everywhere}, score: {{enabled: [{{name: NodeResourcesFit}}]}}}}"), rules=rules
    ).profiles
    assert [active.name for active in made.priorities] == ["NodeResourcesBalancePriority", "Own"]


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ("[{name: FewPods, args: {mosst: 3}}]",
         (
             '[0].args.mosst: strict decoding error: unknown field '
             '"profiles[0].pluginConfig[0].args.mosst"; did you mean `most`?'
         )),
        ("[{name: FewPods, args: {most: a}}]", "[0].args.most: must be int, not a text"),
        ("[{name: FewPts}]", f'[0].name: Invalid value: "FewPts": {MISSING}; did you mean `FewPods`?'),
        ("[{name: FewPods, args: 5}]",
         "[0].args: strict decoding error: json: cannot unmarshal number 5 into an object"),
    ],
)  # fmt: skip
def test_arguments_of_a_custom_rule_are_its_parameters(config: str, expected: str) -> None:
    assert errors(lambda: resolve(profile("{}", config), rules=OWN)) == [f"5: profiles[0].pluginConfig{expected}"]


def test_arguments_of_a_plugin_that_the_policy_lacks_have_no_effect() -> None:
    plugins = (
        "{multiPoint: {disabled: [{name: '*'}], enabled: [{name: PrioritySort}, {name: DefaultBinder}, {name: P}]}}"
    )
    rules = 'predicate P { deny "no" when node.podCount > 5 }'
    made = resolve(profile(plugins, "[{name: VolumeBinding, args: {bindTimeoutSeconds: 1}}]"), rules=rules)
    assert [active.name for active in made.profiles[0].predicates] == ["P"]
    assert warnings(made) == [
        (
            "5: profiles[0].pluginConfig[0].args: no rule of the policy "
            'implements "VolumeBinding": its arguments have no effect'
        )
    ]


def test_all_profiles_are_held_against_the_policy_at_once() -> None:
    body = """profiles:
- {schedulerName: a, plugins: {filter: {enabled: [{name: A}]}}}
- {schedulerName: b, plugins: {score: {enabled: [{name: B}]}}, pluginConfig: [{name: C}]}
"""
    assert [each.partition(": ")[2].partition(":")[0] for each in errors(lambda: resolve(body))] == [
        "profiles[0].plugins.filter.enabled[0]",
        "profiles[1].plugins.score.enabled[0]",
        "profiles[1].pluginConfig[0].name",
    ]


# ---- percentage of nodes


@pytest.mark.parametrize(
    ("body", "flag", "expected"),
    [
        ("", None, 100),
        ("", 30, 30),
        ("percentageOfNodesToScore: 0", 30, 0),
        ("percentageOfNodesToScore: 40\nprofiles: [{percentageOfNodesToScore: 50}]", None, 50),
        ("percentageOfNodesToScore: 40\nprofiles: [{percentageOfNodesToScore: 0}]", None, 0),
        ("percentageOfNodesToScore: 40\nprofiles: [{schedulerName: a}]", None, 40),
    ],
)
def test_the_percentage_is_the_profiles_or_the_files(body: str, flag: int | None, expected: int) -> None:
    configuration = read(body)
    made = profiles_of(configuration, module(configuration.rules), BUILDER, flag)
    assert [each.percentage for each in made.profiles] == [expected]


# ---- resources that extenders manage


@pytest.mark.parametrize("version", VERSIONS)
def test_resources_that_the_scheduler_ignores_are_so_in_every_profile(version: str) -> None:
    body = """profiles:
- {schedulerName: a}
- {schedulerName: b, pluginConfig: [{name: NodeResourcesFit, args: {ignoredResources: [example.com/own]}}]}
extenders:
- urlPrefix: http://e
  managedResources: [{name: example.com/b, ignoredByScheduler: true}, {name: example.com/c}]
- urlPrefix: http://f
  managedResources: [{name: example.com/a, ignoredByScheduler: true}]
"""
    found = [
        next(rule.arguments["ignoredResources"] for rule in each.predicates if rule.plugin == "NodeResourcesFit")
        for each in resolve(body, version).profiles
    ]
    assert found == [
        ("example.com/a", "example.com/b"),
        ("example.com/own", "example.com/a", "example.com/b"),
    ]


# ---- the example


def test_the_example_has_two_profiles_that_decide_differently() -> None:
    configuration = read_configuration(EXAMPLE.read_text(), "two-profiles.yaml")
    made = profiles_of(configuration, module(configuration.rules), BUILDER)
    assert configuration.warnings == made.warnings == ()
    assert (configuration.leader_election.resource_name, configuration.client_connection.burst) == ("ksp", 200)
    first, packed = made.profiles
    assert (first.scheduler_name, first.preempts, packed.scheduler_name, packed.preempts) == (
        "default-scheduler", True, "packed", False,
    )  # fmt: skip
    totals = [_totals(each) for each in (first, packed)]
    assert totals[0]["empty"] > totals[0]["busy"]
    assert totals[1]["empty"] < totals[1]["busy"]


def _totals(profile: Made) -> dict[str, int]:
    def pod(name: str, node: str) -> dict[str, object]:
        containers = [{"name": "c", "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}]
        return {"metadata": {"name": name}, "spec": {"nodeName": node, "containers": containers}}

    capacity = {"cpu": "4", "memory": "4Gi", "pods": "10"}
    nodes = [{"metadata": {"name": name}, "status": {"allocatable": capacity}} for name in ("empty", "busy")]
    case = {"cluster": {"nodes": nodes, "pods": [pod("a", "busy"), pod("b", "busy")]}, "pod": pod("c", "")}
    totals: dict[str, int] = decided(profile, case)["total"]
    return totals


# ---- what kube-scheduler 1.19 decided, with the configuration that says the same


@cache
def recorded() -> list[Case]:
    """Cases with arguments of plugins, and some of each other family: those that a configuration can say."""
    found, count = [], dict[str, int]()
    for case in cases(SAMPLE):
        if isinstance(case.get("provider"), str):
            count[case["family"]] = count.get(case["family"], 0) + 1
            if case["family"] == "plugin_config" or count[case["family"]] <= 2:
                found.append(case)
    return found


@cache
def _profile_of(provider: str, config: str) -> Profiles:
    entries = [{"name": name, "args": args} for name, args in json.loads(config).items()]
    body = f"profiles: [{{pluginConfig: {json.dumps(entries)}}}]"
    return resolve(body, "v1beta1", provider=provider)


def test_v1beta1_decides_as_the_providers_did() -> None:
    assert len(recorded()) > 40
    assert {case["provider"] for case in recorded()} == {"DefaultProvider", "ClusterAutoscalerProvider"}
    for case in recorded():
        (profile,) = _profile_of(case["provider"], json.dumps(case.get("pluginConfig") or {})).profiles
        assert list(differences(case, {"id": case["id"], **dict.fromkeys(FIELDS), **decided(profile, case)})) == []


def test_plugins_can_be_chosen_as_cluster_autoscalers_provider_does() -> None:
    """The other way than --algorithm-provider, with the same decisions."""
    least, most = "{name: NodeResourcesLeastAllocated}", "{name: NodeResourcesMostAllocated, weight: 1}"
    chosen = resolve(profile(f"{{score: {{disabled: [{least}], enabled: [{most}]}}}}"), "v1beta1").profiles[0]
    packing = [case for case in recorded() if case["provider"] != "DefaultProvider" and not case.get("pluginConfig")]
    assert packing
    for case in packing:
        got = {"id": case["id"], **dict.fromkeys(FIELDS), **decided(chosen, case)}
        assert list(differences(case, got)) == []


@pytest.mark.parametrize("provider", ["DefaultProvider", "ClusterAutoscalerProvider"])
def test_the_default_profile_of_v1beta1_is_the_provider(provider: str) -> None:
    (found,) = resolve(version="v1beta1", provider=provider).profiles
    declared = BUILDER.build(module("ksp:cluster-autoscaler.ksp").providers()[provider])
    assert [(each.name, each.arguments) for each in found.predicates] == [
        (each.name, each.arguments) for each in declared.predicates
    ]
    scores = [[(each.name, each.weight) for each in profile.priorities] for profile in (found, declared)]
    if provider == "DefaultProvider":
        assert scores[0] == scores[1]
    assert sorted(scores[0]) == sorted(scores[1])  # where ClusterAutoscalerProvider's own priority stands is no matter
    assert (found.preempts, found.candidates, found.percentage) == (True, None, 100)


@pytest.mark.parametrize("version", MODERN)
def test_a_configuration_like_cluster_autoscalers_packs(version: str) -> None:
    args = "[{name: NodeResourcesFit, args: {scoringStrategy: {type: MostAllocated}}}]"
    (profile_,) = resolve(
        profile("{score: {disabled: [{name: NodeResourcesBalancedAllocation}]}}", args), version
    ).profiles
    totals = _totals(profile_)
    assert totals["busy"] > totals["empty"]


def test_several_profiles_are_in_the_order_of_the_file() -> None:
    made = resolve("profiles: [{schedulerName: b}, {schedulerName: a}]")
    assert [each.scheduler_name for each in made.profiles] == ["b", "a"]
    assert read_configuration(text_of(), "c.yaml").profiles is None
