"""Arguments of plugins: completed, checked and handed to rules as in each version."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
from tests.unit.policy.configuration.configurations import MODERN, VERSIONS, errors, read, resolve, warnings

from ksp.model.pod import TopologySpreadConstraint
from ksp.policy.profile import Candidates, Profile

CPU_AND_MEMORY = [{"name": "cpu", "weight": 1}, {"name": "memory", "weight": 1}]


def body(plugin: str, args: str) -> str:
    return f"profiles:\n- pluginConfig:\n  - name: {plugin}\n    args: {args}\n"


def arguments(plugin: str, args: str, version: str = "v1") -> Mapping[str, Any]:
    (profile,) = read(body(plugin, args), version).profiles or ()
    return profile.arguments[plugin]


AT = "6: profiles[0].pluginConfig[0].args"


@pytest.mark.parametrize(
    ("plugin", "args", "version", "expected"),
    [
        ("InterPodAffinity", "{}", "v1beta1", {"hardPodAffinityWeight": 1}),
        ("InterPodAffinity", "", "v1", {"hardPodAffinityWeight": 1}),
        ("InterPodAffinity", "{hardPodAffinityWeight: 0}", "v1", {"hardPodAffinityWeight": 0}),
        ("InterPodAffinity", "{hardPodAffinityWeight: null}", "v1", {"hardPodAffinityWeight": 1}),
        ("VolumeBinding", "{bindTimeoutSeconds: 0}", "v1beta1", {"bindTimeoutSeconds": 0}),
        ("PodTopologySpread", "{}", "v1beta1", {"defaultingType": "List"}),
        ("PodTopologySpread", "{}", "v1beta2", {"defaultingType": "System"}),
        ("PodTopologySpread", "{}", "v1", {"defaultingType": "System"}),
        ("NodeResourcesLeastAllocated", "{}", "v1beta1", {"resources": CPU_AND_MEMORY}),
        ("RequestedToCapacityRatio", "{shape: [{utilization: 0}], resources: [{name: a}]}", "v1beta1",
         {"shape": [{"utilization": 0}], "resources": [{"name": "a", "weight": 1}]}),
        ("NodeResourcesBalancedAllocation", "{}", "v1beta2", {"resources": CPU_AND_MEMORY}),
        ("NodeResourcesBalancedAllocation", "{resources: [{name: a}]}", "v1",
         {"resources": [{"name": "a", "weight": 1}]}),
        ("NodeResourcesFit", "{}", "v1beta1", {}),
        ("NodeResourcesFit", "{}", "v1", {"scoringStrategy": {"type": "LeastAllocated", "resources": CPU_AND_MEMORY}}),
        ("NodeResourcesFit", "{scoringStrategy: {type: MostAllocated}}", "v1beta3",
         {"scoringStrategy": {"type": "MostAllocated", "resources": CPU_AND_MEMORY}}),
        ("NodeResourcesFit", "{scoringStrategy: {type: MostAllocated, resources: [{name: a, weight: 0}]}}", "v1",
         {"scoringStrategy": {"type": "MostAllocated", "resources": [{"name": "a", "weight": 1}]}}),
        ("DefaultPreemption", "{minCandidateNodesAbsolute: 7}", "v1",
         {"minCandidateNodesPercentage": 10, "minCandidateNodesAbsolute": 7}),
        ("Mine", "{a: 1, b: null, apiVersion: x, kind: y}", "v1", {"a": 1}),
    ],
)  # fmt: skip
def test_arguments_are_completed(plugin: str, args: str, version: str, expected: Mapping[str, Any]) -> None:
    assert arguments(plugin, args, version) == expected


WRONG_IN_ALL = [
    ("InterPodAffinity", "{hardPodAffinityWeight: 101}", (
        ".hardPodAffinityWeight: Invalid value: "
        "101: not in valid range [0, 100]"
    )),
    ("InterPodAffinity", "{hardPodAffinityWeight: -1}", (
        ".hardPodAffinityWeight: Invalid value: "
        "-1: not in valid range [0, 100]"
    )),
    ("InterPodAffinity", "{hardPodAffinity: 1}",
     '.hardPodAffinity: strict decoding error: unknown field "profiles[0].pluginConfig[0].args.hardPodAffinity"'),
    ("InterPodAffinity", "[]", ": strict decoding error: json: cannot unmarshal array into an object"),
    ("VolumeBinding", "{bindTimeoutSeconds: -1}",
     ".bindTimeoutSeconds: Invalid value: -1: invalid BindTimeoutSeconds, should not be a negative value"),
    ("DefaultPreemption", "{minCandidateNodesPercentage: 101}",
     ".minCandidateNodesPercentage: Invalid value: 101: not in valid range [0, 100]"),
    ("DefaultPreemption", "{minCandidateNodesAbsolute: -1}",
     ".minCandidateNodesAbsolute: Invalid value: -1: not in valid range [0, inf)"),
    ("NodeResourcesFit", "{ignoredResourceGroups: [a/b]}",
     ".ignoredResourceGroups[0]: Invalid value: \"a/b\": resource group name can't contain '/'"),
    ("NodeResourcesFit", "{ignoredResources: ['']}", (
        '.ignoredResources[0]: Invalid value: '
        '"": name part must be non-empty'
    )),
    ("PodTopologySpread", "{defaultingType: Some}",
     '.defaultingType: Unsupported value: "Some": supported values: "System", "List"'),
    ("PodTopologySpread", (
        "{defaultingType: System, defaultConstraints: [{maxSkew: "
        "1, topologyKey: a, whenUnsatisfiable: DoNotSchedule}]}"
    ),
     '.defaultingType: Invalid value: "System": when .defaultConstraints are not empty'),
    ("NodeAffinity",
     (
         "{addedAffinity: {requiredDuringSchedulingIgnoredDuringExecution: "
         "{nodeSelectorTerms: [{matchExpressions: [{key: a, operator: In}]}]}}}"
     ),
     (
         ".addedAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchExpressions[0].values"
         ": Invalid value: []: for 'in', 'notin' operators, values set can't be empty"
     )),
    ("NodeAffinity",
     (
         "{addedAffinity: {preferredDuringSchedulingIgnoredDuringExecution: "
         "[{preference: {matchFields: [{key: a, operator: Gt}]}}]}}"
     ),
     (
         '.addedAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].preference.matchFields[0].key: '
         'Unsupported value: "a": '
         'supported values: "metadata.name"'
     )),
]  # fmt: skip


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(("plugin", "args", "said"), WRONG_IN_ALL)
def test_what_is_wrong_in_every_version(plugin: str, args: str, said: str, version: str) -> None:
    assert errors(lambda: read(body(plugin, args), version))[0].startswith(AT + said)


WRONG_IN_V1BETA1 = [
    ("NodeLabel", "{presentLabels: [a], absentLabels: [a]}",
     (
         '.presentLabels: Invalid value: ["a"]: detecting at least one label '
         '(e.g., "a") that exist in both presentLabels and absentLabels'
     )),
    ("NodeResourcesLeastAllocated", "{resources: [{name: cpu}]}",
     ".resources[0].weight: Invalid value: 0: resource weight of cpu not in valid range (0, 100]"),
    ("NodeResourcesMostAllocated", "{resources: [{name: cpu, weight: 101}]}",
     ".resources[0].weight: Invalid value: 101: resource weight of cpu not in valid range (0, 100]"),
    ("RequestedToCapacityRatio", "{}", ".shape: Required value: at least one point must be specified"),
    ("RequestedToCapacityRatio", "{shape: [{utilization: 5}, {utilization: 5}]}",
     ".shape[1].utilization: Invalid value: 5: values must be sorted in increasing order"),
    ("RequestedToCapacityRatio", "{shape: [{utilization: 101, score: 11}]}",
     ".shape[0].utilization: Invalid value: 101: not in valid range [0, 100]"),
    ("NodeResourcesFit", "{scoringStrategy: {type: MostAllocated}}",
     '.scoringStrategy: strict decoding error: unknown field "profiles[0].pluginConfig[0].args.scoringStrategy"'),
]  # fmt: skip


@pytest.mark.parametrize(("plugin", "args", "said"), WRONG_IN_V1BETA1)
def test_what_is_wrong_in_v1beta1(plugin: str, args: str, said: str) -> None:
    assert errors(lambda: read(body(plugin, args), "v1beta1"))[0] == AT + said


WRONG_IN_MODERN = [
    ("NodeResourcesFit", "{scoringStrategy: {}}",
     (
         '.scoringStrategy.type: Unsupported value: "": supported values: '
         '"LeastAllocated", "MostAllocated", "RequestedToCapacityRatio"'
     )),
    ("NodeResourcesFit", "{scoringStrategy: {type: RequestedToCapacityRatio}}",
     (
         ".scoringStrategy.requestedToCapacityRatio: Required value: "
         "must be specified when type is RequestedToCapacityRatio"
     )),
    ("NodeResourcesFit", "{scoringStrategy: {type: MostAllocated, requestedToCapacityRatio: {}}}",
     ".scoringStrategy.requestedToCapacityRatio: Forbidden: must be nil when type is not RequestedToCapacityRatio"),
    ("NodeResourcesFit", (
        "{scoringStrategy: {type: RequestedToCapacityRatio, "
        "requestedToCapacityRatio: {shape: [{score: -1}]}}}"
    ),
     ".scoringStrategy.requestedToCapacityRatio.shape[0].score: Invalid value: -1: not in valid range [0, 10]"),
    ("NodeResourcesFit", "{scoringStrategy: {type: MostAllocated, resources: [{name: cpu, weight: 101}]}}",
     ".scoringStrategy.resources[0].weight: Invalid value: 101: resource weight of cpu not in valid range (0, 100]"),
    ("NodeResourcesBalancedAllocation", "{resources: [{name: a}, {name: a}]}", (
        '.resources[1].name: '
        'Duplicate value: "a"'
    )),
    ("NodeResourcesBalancedAllocation", "{resources: [{name: a, weight: 2}]}",
     ".resources[0].weight: Invalid value: 2: must be 1"),
]  # fmt: skip


@pytest.mark.parametrize("version", MODERN)
@pytest.mark.parametrize(("plugin", "args", "said"), WRONG_IN_MODERN)
def test_what_is_wrong_since_v1beta2(plugin: str, args: str, said: str, version: str) -> None:
    assert errors(lambda: read(body(plugin, args), version)) == [AT + said]


def test_all_that_is_wrong_with_constraints_is_told() -> None:
    wrong = "{maxSkew: 0, topologyKey: '', whenUnsatisfiable: Maybe, labelSelector: {}}"
    again = "{maxSkew: 1, topologyKey: a, whenUnsatisfiable: ScheduleAnyway}"
    given = f"{{defaultingType: List, defaultConstraints: [{wrong}, {again}, {again}]}}"
    where = f"{AT}.defaultConstraints"
    assert errors(lambda: read(body("PodTopologySpread", given))) == [
        f"{where}[0].maxSkew: Invalid value: 0: not in valid range (0, inf)",
        f"{where}[0].topologyKey: Required value: can not be empty",
        (
            f'{where}[0].whenUnsatisfiable: Unsupported value: "Maybe": '
            f'supported values: "DoNotSchedule", "ScheduleAnyway"'
        ),
        f"{where}[0].labelSelector: Forbidden: constraint must not define a selector, as they deduced for each pod",
        f'{where}[2]: Duplicate value: "{{a, ScheduleAnyway}}"',
    ]


@pytest.mark.parametrize(
    ("values", "operator", "said"),
    [
        ("[a]", "Exists", 'values: Invalid value: ["a"]: values set must be empty for exists and does not exist'),
        ("[]", "Gt", "values: Invalid value: []: for 'Gt', 'Lt' operators, exactly one value is required"),
        ("[a]", "Lt", "values[0]: Invalid value: \"a\": for 'Gt', 'Lt' operators, the value must be an integer"),
        ("[a]", "Is", (
            'operator: Unsupported value: "Is": supported values: '
            '"In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"'
        )),
    ],
)  # fmt: skip
def test_requirements_of_added_affinity(values: str, operator: str, said: str) -> None:
    term = f"{{matchExpressions: [{{key: a, operator: {operator}, values: {values}}}]}}"
    given = (
        f"{{addedAffinity: {{preferredDuringSchedulingIgnoredDuringExecution: [{{weight: 1, preference: {term}}}]}}}}"
    )
    (error,) = errors(lambda: read(body("NodeAffinity", given)))
    assert error.endswith(f".preference.matchExpressions[0].{said}")


def test_both_limits_of_candidates_cannot_be_zero() -> None:
    found = errors(
        lambda: read(body("DefaultPreemption", "{minCandidateNodesPercentage: 0, minCandidateNodesAbsolute: 0}"))
    )
    assert len(found) == 2
    assert "cannot be zero at the same time as minCandidateNodesAbsolute" in found[0]


@pytest.mark.parametrize("version", VERSIONS)
def test_arguments_may_say_what_they_are(version: str) -> None:
    header = f"apiVersion: kubescheduler.config.k8s.io/{version}, kind: InterPodAffinityArgs"
    assert (
        arguments("InterPodAffinity", f"{{{header}, hardPodAffinityWeight: 5}}", version)["hardPodAffinityWeight"] == 5
    )
    other = header.replace("InterPod", "Node")
    (error,) = errors(lambda: read(body("InterPodAffinity", f"{{{other}}}"), version))
    assert "args for plugin InterPodAffinity were not of type" in error
    assert error.endswith("Kind=NodeAffinityArgs")


def test_arguments_of_a_plugin_twice_are_an_error() -> None:
    twice = "profiles: [{pluginConfig: [{name: NodeAffinity}, {name: NodeAffinity}, {args: {}}]}]"
    assert errors(lambda: read(twice)) == [
        '3: profiles[0].pluginConfig[1]: Duplicate value: "NodeAffinity"',
        "3: profiles[0].pluginConfig[2].name: Required value",
    ]


# ---- what rules make of them


def values_of(profile: Profile, plugin: str) -> Mapping[str, object]:
    return next(active.arguments for active in profile.predicates if active.plugin == plugin)


@pytest.mark.parametrize("version", VERSIONS)
def test_arguments_are_the_parameters_of_the_rules(version: str) -> None:
    given = """profiles:
- pluginConfig:
  - {name: NodeResourcesFit, args: {ignoredResources: [example.com/a], ignoredResourceGroups: [example.org]}}
  - {name: VolumeBinding, args: {bindTimeoutSeconds: 5}}
  - name: PodTopologySpread
    args: {defaultingType: List, defaultConstraints: [{maxSkew: 3, topologyKey: a, whenUnsatisfiable: DoNotSchedule}]}
"""
    (profile,) = resolve(given, version).profiles
    fit = values_of(profile, "NodeResourcesFit")
    assert (fit["ignoredResources"], fit["ignoredResourceGroups"]) == (("example.com/a",), ("example.org",))
    assert profile.bind_timeout == 5
    constraint = TopologySpreadConstraint(max_skew=3, topology_key="a", when_unsatisfiable="DoNotSchedule")
    assert values_of(profile, "PodTopologySpread")["defaultConstraints"] == (constraint,)


@pytest.mark.parametrize(
    ("plugin", "points", "args"),
    [
        ("NodeLabel", ("filter", "score"), {
            "presentLabels": ["a"], "absentLabels": ["b"], "presentLabelsPreference": ["c"],
            "absentLabelsPreference": ["d"],
        }),
        ("ServiceAffinity", ("filter", "score"), {"affinityLabels": ["a"], "antiAffinityLabelsPreference": ["b"]}),
        ("NodeResourcesMostAllocated", ("score",), {"resources": [{"name": "a", "weight": 3}]}),
        ("RequestedToCapacityRatio", ("score",), {
            "shape": [{"utilization": 5, "score": 6}], "resources": [{"name": "a", "weight": 2}],
        }),
    ],
)  # fmt: skip
def test_arguments_of_the_plugins_of_1_19_are_parameters(
    plugin: str, points: tuple[str, ...], args: Mapping[str, Any]
) -> None:
    """That a rule lacks a parameter would be an error."""
    plugins = {point: {"enabled": [{"name": plugin}]} for point in points}
    profile = {"plugins": plugins, "pluginConfig": [{"name": plugin, "args": args}]}
    made = resolve(json.dumps({"profiles": [profile]})[1:-1], "v1beta1")
    assert made.plugins[0].arguments[plugin] == args
    assert made.plugins[0].scores[-1] == (plugin, 1)
    if "filter" in points:
        values = values_of(made.profiles[0], plugin)
        assert all(values[name] == tuple(args[name]) for name in args.keys() & values.keys())
        assert args.keys() & values.keys()


def test_modern_arguments_are_the_parameters_of_the_modern_rules() -> None:
    given = """profiles:
- pluginConfig:
  - name: NodeAffinity
    args:
      addedAffinity:
        requiredDuringSchedulingIgnoredDuringExecution:
          nodeSelectorTerms: [{matchExpressions: [{key: pool, operator: In, values: [a]}]}]
  - {name: InterPodAffinity, args: {ignorePreferredTermsOfExistingPods: true}}
  - {name: NodeResourcesFit, args: {scoringStrategy: {type: MostAllocated}}}
"""
    made = resolve(given)
    affinity = values_of(made.profiles[0], "NodeAffinity")["addedAffinity"]
    (term,) = affinity.required_during_scheduling_ignored_during_execution.node_selector_terms  # type: ignore[attr-defined]
    assert (term.match_expressions[0].key, term.match_expressions[0].values) == ("pool", ("a",))
    assert made.plugins[0].arguments["InterPodAffinity"]["ignorePreferredTermsOfExistingPods"] is True
    assert made.plugins[0].arguments["NodeResourcesFit"]["scoringStrategy"]["type"] == "MostAllocated"


@pytest.mark.parametrize(
    ("version", "args", "expected"),
    [
        ("v1beta1", None, None),
        ("v1beta1", "{}", Candidates(10, 100)),
        *[(version, None, Candidates(10, 100)) for version in MODERN],
        ("v1", "{minCandidateNodesPercentage: 50, minCandidateNodesAbsolute: 3}", Candidates(50, 3)),
    ],
)
def test_how_many_candidates_a_search_for_victims_wants(
    version: str, args: str | None, expected: Candidates | None
) -> None:
    given = "" if args is None else body("DefaultPreemption", args)
    assert resolve(given, version).profiles[0].candidates == expected


def test_arguments_without_effect_are_warned_of() -> None:
    made = resolve(body("VolumeBinding", "{shape: [{utilization: 0, score: 0}]}"))
    assert warnings(made) == [f"{AT}.shape: has no effect: nodes are not scored by the capacity of volumes"]
    given = (
        "{defaultingType: List, defaultConstraints: [{maxSkew: 1, "
        "topologyKey: a, whenUnsatisfiable: DoNotSchedule, minDomains: 2}]}"
    )
    found = read(body("PodTopologySpread", given))
    assert warnings(found) == [f"{AT}.defaultConstraints[0].minDomains: is not read by the shipped rules"]
