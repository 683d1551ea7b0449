"""A configuration that is written is the same when it is read again."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.policy.configuration.configurations import BUILDER, OWN, VERSIONS, module, resolve

from ksp.policy.configuration import profiles_of, read_configuration, write_configuration
from ksp.policy.configuration.versions import Version
from ksp.policy.profile import Profile

GROUP = "kubescheduler.config.k8s.io"


@pytest.mark.parametrize("version", VERSIONS)
def test_all_defaults_are_written(version: str) -> None:
    text = write_configuration(resolve(version=version).effective)
    written = yaml.safe_load(text)
    assert (written["apiVersion"], written["kind"]) == (f"{GROUP}/{version}", "KubeSchedulerConfiguration")
    assert written["leaderElection"]["leaseDuration"] == "15s"
    assert written["percentageOfNodesToScore"] == 100
    (profile,) = written["profiles"]
    assert profile["schedulerName"] == "default-scheduler"
    assert len(profile["plugins"]["filter"]["enabled"]) == 15
    assert {"name": "VolumeBinding"} in profile["plugins"]["preBind"]["enabled"]
    names = [entry["name"] for entry in profile["pluginConfig"]]
    assert ("DefaultPreemption" in names) == (version != "v1beta1")
    assert ("NodeResourcesLeastAllocated" in names) == (version == "v1beta1")
    assert "&" not in text
    assert read_configuration(text, "w.yaml").warnings == ()


def test_what_is_written_says_what_the_file_says() -> None:
    body = """percentageOfNodesToScore: 30
leaderElection: {renewDeadline: 9500ms}
profiles:
- schedulerName: a
  percentageOfNodesToScore: 0
  plugins: {multiPoint: {enabled: [{name: ImageLocality, weight: 5}], disabled: [{name: NodeName}]}}
  pluginConfig: [{name: VolumeBinding, args: {bindTimeoutSeconds: 7}}]
extenders: [{urlPrefix: http://e, filterVerb: f, tlsConfig: {caData: UEVN}, httpTimeout: 2s}]
"""
    written = yaml.safe_load(write_configuration(resolve(body).effective))
    assert (written["percentageOfNodesToScore"], written["leaderElection"]["renewDeadline"]) == (30, "9.5s")
    (profile,), (extender,) = written["profiles"], written["extenders"]
    assert profile["percentageOfNodesToScore"] == 0
    assert {"name": "ImageLocality", "weight": 5} in profile["plugins"]["score"]["enabled"]
    assert {"name": "NodeName"} not in profile["plugins"]["filter"]["enabled"]
    arguments = {entry["name"]: entry["args"] for entry in profile["pluginConfig"]}
    assert arguments["VolumeBinding"] == {
        "apiVersion": f"{GROUP}/v1", "kind": "VolumeBindingArgs", "bindTimeoutSeconds": 7,
    }  # fmt: skip
    assert (extender["tlsConfig"]["caData"], extender["httpTimeout"]) == ("UEVN", "2s")


# ---- any configuration

seconds = st.integers(1, 10**6).map(lambda milliseconds: f"{milliseconds}ms")
names = st.text("abcxyz-", min_size=1, max_size=5).map(lambda text: f"n{text}n")
resource = names.map(lambda name: f"example.com/{name}")
FILTERS = ("NodeName", "NodePorts", "TaintToleration", "Both")
SCORES = ("ImageLocality", "TaintToleration", "NodeAffinity", "Both")


@st.composite
def plugin_sets(draw: st.DrawFn, point: str, version: Version) -> dict[str, Any]:
    known = {"filter": FILTERS, "score": SCORES, "preFilter": ("NodePorts", "Both")}.get(point, (*FILTERS, *SCORES))
    enabled = draw(st.lists(st.sampled_from(known), unique=True, max_size=3))
    disabled = draw(st.lists(st.sampled_from([*known, "*"]), unique=True, max_size=2))
    if version is Version.V1BETA1:
        disabled = [*disabled, *enabled]
    if point == "multiPoint":
        enabled += [each for each in ("PrioritySort", "DefaultBinder") if "*" in disabled]
    weights = draw(st.lists(st.integers(0, 100), min_size=len(enabled), max_size=len(enabled)))
    return {
        "enabled": [{"name": name, "weight": weight} for name, weight in zip(enabled, weights, strict=True)],
        "disabled": [{"name": name} for name in disabled],
    }


@st.composite
def profiles(draw: st.DrawFn, version: Version, name: str) -> dict[str, Any]:
    points = ["filter", "score", "preFilter"] + (["multiPoint"] if version.is_from(Version.V1BETA3) else [])
    plugins = {point: draw(plugin_sets(point, version)) for point in draw(st.sets(st.sampled_from(points)))}
    if draw(st.booleans()):
        plugins["postFilter"] = {"disabled": [{"name": "DefaultPreemption"}]}
    config = [
        {"name": "InterPodAffinity", "args": {"hardPodAffinityWeight": draw(st.integers(0, 100))}},
        {"name": "NodeResourcesFit", "args": {"ignoredResources": draw(st.lists(resource, max_size=2))}},
    ]
    made: dict[str, Any] = {
        "schedulerName": name,
        "plugins": plugins,
        "pluginConfig": draw(st.lists(st.sampled_from(config), max_size=1)),
    }
    if version is Version.V1 and draw(st.booleans()):
        made["percentageOfNodesToScore"] = draw(st.integers(0, 100))
    return made


@st.composite
def extenders(draw: st.DrawFn, prefix: str) -> dict[str, Any]:
    return {
        "urlPrefix": f"http://{prefix}",
        "filterVerb": draw(names | st.just("")),
        "prioritizeVerb": draw(names | st.just("")),
        "weight": draw(st.integers(1, 9)),
        "httpTimeout": draw(seconds),
        "ignorable": draw(st.booleans()),
        "nodeCacheCapable": draw(st.booleans()),
        "managedResources": [{"name": f"{prefix}.com/r", "ignoredByScheduler": draw(st.booleans())}],
        "tlsConfig": draw(st.none() | st.just({"caData": "UEVN", "serverName": "s"})),
    }


@st.composite
def configurations(draw: st.DrawFn) -> tuple[Version, dict[str, Any]]:
    version = draw(st.sampled_from(Version))
    body = {
        "leaderElection": {"leaderElect": draw(st.booleans()), "retryPeriod": draw(st.sampled_from(["1s", "2500ms"]))},
        "clientConnection": {"qps": draw(st.floats(1, 1000, width=32)), "kubeconfig": draw(names)},
        "enableProfiling": draw(st.booleans()),
        "podMaxBackoffSeconds": draw(st.integers(1, 100)),
        "percentageOfNodesToScore": draw(st.integers(0, 100) | st.none()),
        "profiles": [draw(profiles(version, f"p{i}")) for i in range(draw(st.integers(0, 2)))],
        "extenders": [draw(extenders(f"e{i}")) for i in range(draw(st.integers(0, 2)))],
    }
    if not version.is_from(Version.V1BETA3):
        body["healthzBindAddress"] = draw(st.sampled_from(["", ":80", "10.0.0.1"]))
    return version, body


@given(configurations())
@settings(max_examples=25)
def test_what_is_written_is_read_as_the_same(found: tuple[Version, dict[str, Any]]) -> None:
    version, body = found
    configuration = read_configuration(_text(version, body), "c.yaml")
    made = profiles_of(configuration, module(OWN), BUILDER)
    text = write_configuration(made.effective)
    again = read_configuration(text, "c.yaml")
    assert again == made.effective
    resolved = profiles_of(again, module(OWN), BUILDER)
    assert write_configuration(resolved.effective) == text
    assert [_decides(each) for each in resolved.profiles] == [_decides(each) for each in made.profiles]


def _decides(profile: Profile) -> tuple[object, ...]:
    return (
        [(rule.name, rule.arguments) for rule in profile.predicates],
        [(rule.name, rule.weight) for rule in profile.priorities],
        (profile.scheduler_name, profile.percentage, profile.preempts, profile.candidates),
    )


def _text(version: Version, body: dict[str, Any]) -> str:
    return json.dumps({"apiVersion": version.api_version, "kind": "KubeSchedulerConfiguration"} | body)
