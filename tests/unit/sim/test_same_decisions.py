"""Comparing profiles: a difference of any part shows, and every rule of a Policy has a say."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest
from tests.unit.policy.legacy.policies import absent, configured, policy, predicate, present, priority, ratio

from ksp.check.program import Module
from ksp.policy.legacy import RULES, policy_of
from ksp.policy.legacy.conversion import Conversion, converted
from ksp.policy.legacy.names import PREDICATES, PRIORITIES
from ksp.policy.legacy.naming import INTERNAL
from ksp.policy.load import load
from ksp.policy.plugins import PluginSet, profile_of
from ksp.policy.profile import Profile, ProfileBuilder
from ksp.sim.conversion_proof import NotSoundError, interests, proof
from ksp.sim.same_decisions import Comparison, compared
from ksp.sim.sample_clusters import Interests, sample_cases
from ksp.source.origin import Texts

PARTS = ("HostName", "PodFitsHostPorts", "MatchNodeSelector", "PodFitsResources")  # of GeneralPredicates
OWN = ("CheckNodeLabelPresence", "CheckServiceAffinity")


@cache
def rules() -> Module:
    module = load(Texts({}), RULES).module
    assert module is not None
    return module


@cache
def builder() -> ProfileBuilder:
    return ProfileBuilder()


def profile(plugins: PluginSet) -> Profile:
    return profile_of(plugins, rules(), builder(), "default-scheduler")


@cache
def everything() -> PluginSet:
    """A Policy with all that one can name."""
    own = [
        predicate("A", serviceAffinity={"labels": ["rack"]}),
        predicate("B", labelsPresence=absent("old")),
    ]
    arguments = {
        "labelPreference": {"label": "rack", "presence": True},
        "serviceAntiAffinity": {"label": "rack"},
        "requestedToCapacityRatioArguments": ratio((0, 0), (100, 10), resources=[("cpu", 1), ("example.com/foo", 3)]),
    }
    made = configured(
        predicates=[*map(predicate, PREDICATES.keys() - {*PARTS, *OWN}), *own],
        priorities=[
            *(priority(name, 3) for name in PRIORITIES.keys() - INTERNAL),
            *(priority("own", 2, **{kind: argument}) for kind, argument in arguments.items()),
        ],
        alwaysCheckAllPredicates=True,
    )
    return made.plugins


def compare(one: PluginSet, other: PluginSet, clusters: int = 10) -> Comparison:
    return compared(profile(one), profile(other), sample_cases(clusters, 4, interests(one), 1))


def test_every_rule_of_a_policy_has_a_say_in_the_sample() -> None:
    plugins = replace(everything(), checks_all=False)
    result = compare(plugins, plugins, clusters=20)
    assert not result.difference
    assert result.decisions == 80
    assert 20 < result.placed < 70
    assert len(result.idle(profile(plugins))) <= 4


@pytest.mark.parametrize(
    "change",
    [
        {"filters": tuple(reversed(everything().filters)), "checks_all": False},
        {"filters": tuple(name for name in everything().filters if name != "TaintToleration")},
        {"scores": tuple((name, 4 if name == "ImageLocality" else weight) for name, weight in everything().scores)},
        {"scores": everything().scores[1:]},
        {"arguments": {**everything().arguments, "NodeLabel": {"presentLabelsPreference": ["rack"]}}},
        {"arguments": {**everything().arguments, "ServiceAffinity": {"affinityLabels": ["disk"]}}},
        {"checks_all": False},
        {"preempts": True},
    ],
    ids=["order", "a predicate less", "a weight", "a priority less", "labels", "affinity", "asks all", "preempts"],
)
def test_a_difference_of_any_part_shows(change: dict[str, object]) -> None:
    result = compare(everything(), replace(everything(), **change))  # type: ignore[arg-type]
    assert result.difference
    assert result.decisions <= 40


def test_the_same_seed_makes_the_same_clusters_and_another_others() -> None:
    one, again, other = (list(sample_cases(2, 2, Interests(("rack",)), seed)) for seed in (1, 1, 2))
    assert one == again != other
    assert any("rack" in node["metadata"]["labels"] for node in one[0]["cluster"]["nodes"])


def test_a_text_that_is_not_sound_is_no_proof() -> None:
    with pytest.raises(NotSoundError, match="`Nobody`"):
        proof(Conversion("provider P { predicates { Nobody } }", "", (), (), everything()), rules(), 4)


MUTATED = policy(
    predicates=[predicate("HostName"), predicate("PodFitsResources"), predicate("Own", labelsPresence=present("rare"))],
    priorities=[
        priority("InterPodAffinityPriority", 2),
        priority("Racks", 3, serviceAntiAffinity={"label": "rack"}),
        priority("LeastRequestedPriority", 2),
    ],
    hardPodAffinitySymmetricWeight=10,
    extenders=[{"urlPrefix": "http://a", "filterVerb": "f", "managedResources": [
        {"name": "example.com/foo", "ignoredByScheduler": True}]}],
)  # fmt: skip


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("LeastRequestedPriority: 2", "LeastRequestedPriority: 3"),
        ("LeastRequestedPriority: 2", "MostRequestedPriority: 2"),
        ("HostName, ", ""),
        ("HostName, PodFitsResources", "PodFitsResources, HostName"),
        ('presentLabels = ["rare"]', 'presentLabels = ["more rare"]'),
        ('presentLabels = ["rare"]', 'absentLabels = ["rare"]'),
        ('antiAffinityLabelsPreference = ["rack"]', 'antiAffinityLabelsPreference = ["rack", "rack"]'),
        ("hardPodAffinityWeight = 10", "hardPodAffinityWeight = 11"),
        ('ignoredResources = ["example.com/foo"]', 'ignoredResources = ["example.com/fo"]'),
        ("preemption = false", "preemption = true"),
        ("preemption = false", "preemption = false\n  alwaysCheckAllPredicates = true"),
        ("preemption = false", "preemption = false\n  percentageOfNodesToScore = 50"),
        ('profile "mine"', 'profile "default-scheduler"'),
    ],
)
def test_a_wrong_text_is_no_proof_be_it_by_a_letter(right: str, wrong: str) -> None:
    made = converted(policy_of(MUTATED, "policy.json"), rules(), "mine")
    assert made.text.count(right) == 1
    assert proof(replace(made, text=made.text.replace(right, wrong)), rules(), 1).comparison.difference


def test_a_right_text_is_a_proof() -> None:
    made = converted(policy_of(MUTATED, "policy.json"), rules(), "mine")
    assert proof(made, rules(), 40).comparison.difference == ""


@pytest.mark.parametrize(("right", "wrong"), [("filterVerb: f", "filterVerb: g"), ("http://a", "http://b")])
def test_a_wrong_file_of_extenders_is_no_proof(right: str, wrong: str) -> None:
    made = converted(policy_of(MUTATED, "policy.json"), rules(), "mine")
    changed = replace(made, extenders=made.extenders.replace(right, wrong))
    assert proof(changed, rules(), 1).comparison.difference == "the extenders differ"


def test_extenders_that_are_read_otherwise_are_a_difference() -> None:
    text = 'import "ksp:taints.ksp"\nprovider P { predicates { PodToleratesNodeTaints } }\n'
    text += 'profile "default-scheduler" uses P { preemption = false }\n'
    plugins = PluginSet(("TaintToleration",), (), preempts=False)
    head = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nextenders:\n"
    made = Conversion(text, f"{head}- urlPrefix: http://a\n", (), (), plugins)
    assert proof(made, rules(), 4).comparison.difference == "the extenders differ"
    assert proof(replace(made, extenders=""), rules(), 4).comparison.difference == ""
    with pytest.raises(NotSoundError, match="urlPrefix"):
        proof(replace(made, extenders=f"{head}- urlPrefix: a\n"), rules(), 4)
