"""What a profile says of plugins, merged with the defaults of the version: the cases of kube-scheduler's own tests."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.unit.policy.configuration.configurations import (
    MODERN,
    MULTI_POINT,
    OWN,
    errors,
    profile,
    read,
    resolve,
)

from ksp.policy.configuration.configuration import Plugin
from ksp.policy.configuration.default_plugins import default_plugins
from ksp.policy.configuration.merging import merged_set
from ksp.policy.configuration.versions import Version


def plugins(*names: str | tuple[str, int]) -> list[Plugin]:
    return [Plugin(name) if isinstance(name, str) else Plugin(*name) for name in names]


@pytest.mark.parametrize(
    ("enabled", "disabled", "merged", "in_v1beta1"),
    [
        ([], [], ["A", "B", "C"], ["A", "B", "C"]),
        (["D"], [], ["A", "B", "C", "D"], ["A", "B", "C", "D"]),
        ([], ["B"], ["A", "C"], ["A", "C"]),
        (["D"], ["B"], ["A", "C", "D"], ["A", "C", "D"]),
        ([], ["*"], [], []),
        (["D"], ["*"], ["D"], ["D"]),
        (["B", "A"], ["*"], ["B", "A"], ["B", "A"]),
        (["B"], ["B"], ["A", "C", "B"], ["A", "C", "B"]),
        ([("B", 5)], [], ["A", ("B", 5), "C"], ["A", "B", "C", ("B", 5)]),
        ([("C", 2), ("A", 3)], [], [("A", 3), "B", ("C", 2)], ["A", "B", "C", ("C", 2), ("A", 3)]),
        (["D", ("B", 5)], [], ["A", ("B", 5), "C", "D"], ["A", "B", "C", "D", ("B", 5)]),
        (["D", "D"], [], ["A", "B", "C", "D", "D"], ["A", "B", "C", "D", "D"]),
        ([("B", 1), ("B", 2)], [], ["A", ("B", 2), "C", ("B", 1)], ["A", "B", "C", ("B", 1), ("B", 2)]),
        (["D"], ["*", "A"], ["D"], ["D"]),
        ([], ["X"], ["A", "B", "C"], ["A", "B", "C"]),
    ],
)
def test_a_set_is_merged_as_each_version_does(
    enabled: list[str], disabled: list[str], merged: list[str], in_v1beta1: list[str]
) -> None:
    defaults, off = plugins("A", "B", "C"), frozenset(disabled)
    assert merged_set(defaults, plugins(*enabled), off, in_place=True) == plugins(*merged)
    assert merged_set(defaults, plugins(*enabled), off, in_place=False) == plugins(*in_v1beta1)


# ---- default sets

SCORES_SINCE_V1BETA3 = (
    ("TaintToleration", 3), ("NodeAffinity", 2), ("NodeResourcesFit", 1), ("PodTopologySpread", 2),
    ("InterPodAffinity", 2), ("NodeResourcesBalancedAllocation", 1), ("ImageLocality", 1),
)  # fmt: skip
FILTERS_SINCE_V1BETA2 = (
    "NodeUnschedulable", "NodeName", "TaintToleration", "NodeAffinity", "NodePorts", "NodeResourcesFit",
    "VolumeRestrictions", "EBSLimits", "GCEPDLimits", "NodeVolumeLimits", "AzureDiskLimits", "VolumeBinding",
    "VolumeZone", "PodTopologySpread", "InterPodAffinity",
)  # fmt: skip


@pytest.mark.shared
@pytest.mark.parametrize("provider", ["DefaultProvider", "ClusterAutoscalerProvider"])
def test_v1beta1_has_the_plugins_of_the_providers(shared: Path, provider: str) -> None:
    header = json.loads((shared / "golden" / "header-1.19.json").read_text())["providers"][provider]["plugins"]
    found = default_plugins(Version.V1BETA1, provider)
    assert {point: [plugin.name for plugin in each] for point, each in found.items()} == {
        point: [plugin["name"] for plugin in each] for point, each in header.items()
    }
    assert [plugin.weight for plugin in found["score"]] == [plugin["weight"] for plugin in header["score"]]


def test_v1beta1_decides_by_the_set_of_1_19() -> None:
    (found,) = resolve(version="v1beta1").plugins
    assert found.filters[:4] == ("NodeUnschedulable", "NodeResourcesFit", "NodeName", "NodePorts")
    assert ("NodePreferAvoidPods", 10000) in found.scores
    assert ("NodeResourcesLeastAllocated", 1) in found.scores
    (packed,) = resolve(version="v1beta1", provider="ClusterAutoscalerProvider").plugins
    assert [name for name, _ in packed.scores][3] == "NodeResourcesMostAllocated"


@pytest.mark.parametrize("version", MODERN)
def test_since_v1beta2_node_resources_fit_scores(version: str) -> None:
    (found,) = resolve(version=version).plugins
    assert found.filters == FILTERS_SINCE_V1BETA2
    names = [name for name, _ in found.scores]
    assert "NodeResourcesFit" in names
    assert not {"NodeResourcesLeastAllocated", "SelectorSpread", "NodePreferAvoidPods"} & set(names)
    assert dict(found.scores)["TaintToleration"] == (1 if version == "v1beta2" else 3)


@pytest.mark.parametrize("version", MULTI_POINT)
def test_since_v1beta3_plugins_come_by_multi_point_with_other_weights(version: str) -> None:
    assert resolve(version=version).plugins[0].scores == SCORES_SINCE_V1BETA3


def test_v1_holds_back_pods_with_gates() -> None:
    by_version = {
        version: any(plugin.name == "SchedulingGates" for plugin in default_plugins(version).get("multiPoint", ()))
        for version in Version
    }
    assert [version.value for version, found in by_version.items() if found] == ["v1"]


# ---- multiPoint


def scores(said: str, version: str = "v1") -> list[tuple[str, int]]:
    return list(resolve(profile(said), version, OWN).plugins[0].scores)


def filters(said: str, version: str = "v1") -> list[str]:
    return list(resolve(profile(said), version, OWN).plugins[0].filters)


ONLY_OWN = "multiPoint: {disabled: [{name: '*'}], enabled: [{name: PrioritySort}, {name: DefaultBinder}"


@pytest.mark.parametrize("version", MULTI_POINT)
@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("{%s, {name: Both, weight: 4}, {name: Only}]}}", [("Both", 4), ("Only", 1)]),
        ("{%s, {name: Only}, {name: Both, weight: 4}]}}", [("Only", 1), ("Both", 4)]),
        # a weight that the point says wins, 0 is 1; what both name comes first, in the point's order
        ("{%s, {name: Only}, {name: Both, weight: 4}]}, score: {enabled: [{name: Both}]}}", [("Both", 1), ("Only", 1)]),
        (
            "{%s, {name: Only}, {name: Both}]}, score: {enabled: [{name: ImageLocality, weight: 7}, {name: Both}]}}",
            [("Both", 1), ("Only", 1), ("ImageLocality", 7)],
        ),
        # off at one point, on at the other
        ("{%s, {name: Only}, {name: Both}]}, score: {disabled: [{name: Both}]}}", [("Only", 1)]),
        ("{%s, {name: Only}, {name: Both}]}, score: {disabled: [{name: '*'}]}}", []),
        ("{%s, {name: Only}]}, score: {disabled: [{name: '*'}], enabled: [{name: Both, weight: 2}]}}", [("Both", 2)]),
    ],
)  # fmt: skip
def test_multi_point_is_spread_out(said: str, expected: list[tuple[str, int]], version: str) -> None:
    assert scores(said % ONLY_OWN, version) == expected


@pytest.mark.parametrize("version", MULTI_POINT)
def test_a_custom_plugin_takes_part_where_it_has_rules(version: str) -> None:
    said = "{multiPoint: {enabled: [{name: Both, weight: 9}]}}"
    assert filters(said, version) == [*FILTERS_SINCE_V1BETA2, "Both"]
    assert scores(said, version) == [*SCORES_SINCE_V1BETA3, ("Both", 9)]


@pytest.mark.parametrize("version", MULTI_POINT)
def test_a_default_plugin_of_multi_point_is_replaced_where_it_stands(version: str) -> None:
    found = scores("{multiPoint: {enabled: [{name: PodTopologySpread, weight: 50}]}}", version)
    assert found == [(name, 50 if name == "PodTopologySpread" else weight) for name, weight in SCORES_SINCE_V1BETA3]


@pytest.mark.parametrize("version", MULTI_POINT)
def test_a_plugin_that_a_point_names_comes_first_there(version: str) -> None:
    found = scores("{score: {enabled: [{name: ImageLocality, weight: 5}]}}", version)
    assert found == [("ImageLocality", 5), *SCORES_SINCE_V1BETA3[:-1]]


@pytest.mark.parametrize("version", MODERN)
def test_a_default_plugin_can_be_off_at_one_point(version: str) -> None:
    (found,) = resolve(profile("{score: {disabled: [{name: NodeAffinity}]}}"), version).plugins
    assert "NodeAffinity" not in dict(found.scores)
    assert "NodeAffinity" in found.filters


# ---- what stands twice


def test_in_v1beta1_a_default_plugin_has_to_be_off_to_be_named_again() -> None:
    again = "{score: {enabled: [{name: NodeAffinity, weight: 5}]}}"
    assert errors(lambda: read(profile(again), "v1beta1")) == [
        '4: profiles[0].plugins.score.enabled[0]: plugin "NodeAffinity" already registered as "ScorePlugin"'
    ]
    off = "{score: {enabled: [{name: NodeAffinity, weight: 5}], disabled: [{name: NodeAffinity}]}}"
    assert resolve(profile(off), "v1beta1").plugins[0].scores[-1] == ("NodeAffinity", 5)


@pytest.mark.parametrize("version", MULTI_POINT)
@pytest.mark.parametrize(
    ("said", "error"),
    [
        (
            "{score: {enabled: [{name: Only}, {name: Only}]}}",
            'score.enabled[1]: plugin "Only" already registered as "ScorePlugin"',
        ),
        (
            "{multiPoint: {enabled: [{name: Only}, {name: Only}]}}",
            'multiPoint.enabled[1]: plugin "Only" already registered as "MultiPointPlugin"',
        ),
    ],
)
def test_a_plugin_that_is_named_twice_is_an_error(said: str, error: str, version: str) -> None:
    assert errors(lambda: resolve(profile(said), version, OWN)) == [f"4: profiles[0].plugins.{error}"]


@pytest.mark.parametrize(
    ("version", "name", "since"),
    [
        *[
            (version, name, "v1beta2")
            for version in MODERN
            for name in (
                "NodeLabel", "ServiceAffinity", "NodePreferAvoidPods", "NodeResourcesLeastAllocated",
                "NodeResourcesMostAllocated", "RequestedToCapacityRatio",
            )
        ],
        ("v1", "SelectorSpread", "v1"),
    ],
)  # fmt: skip
def test_names_that_a_version_took_away(version: str, name: str, since: str) -> None:
    group = "kubescheduler.config.k8s.io"
    text = f'was invalid in version "{group}/{since}" (KubeSchedulerConfiguration is version "{group}/{version}")'
    body = profile("{score: {enabled: [{name: %s}]}}" % name, "[{name: %s}]" % name)  # noqa: UP031
    assert errors(lambda: read(body, version)) == [
        f'4: profiles[0].plugins.score.enabled[0]: Invalid value: "{name}": {text}',
        f'5: profiles[0].pluginConfig[0]: Invalid value: "{name}": {text}',
    ]


@pytest.mark.parametrize("version", ["v1beta2", "v1beta3"])
def test_selector_spread_can_be_named_until_v1(version: str) -> None:
    (found,) = resolve(profile("{score: {enabled: [{name: SelectorSpread, weight: 3}]}}"), version).plugins
    assert ("SelectorSpread", 3) in found.scores


@pytest.mark.parametrize("weight", [-1, 1_000_001])
def test_weights_have_bounds(weight: int) -> None:
    (error,) = errors(lambda: read(profile(("{score: {enabled: [{name: NodeAffinity, weight: %d}]}}") % weight)))  # noqa: UP031
    where = "4: profiles[0].plugins.score.enabled[0].weight"
    assert error == f"{where}: Invalid value: {weight}: must be from 1 to 1000000, or 0 for 1"
