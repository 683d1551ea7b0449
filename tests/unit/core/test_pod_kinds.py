"""Which pods rules cannot tell apart."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.core.scheduling import anti_affinity, default_profile, info, profile_of

from ksp.core.pod_kinds import PodKinds
from ksp.policy.profile import Profile


def alike(profile: Profile, one: dict[str, Any], other: dict[str, Any]) -> bool:
    kinds = PodKinds([profile])
    return kinds.of(info("a", **one)) == kinds.of(info("b", **other))


CLAIM = {"persistentVolumeClaim": {"claimName": "data"}}


@pytest.mark.parametrize(
    ("one", "other", "equal"),
    [
        ({}, {}, True),
        ({"labels": {"a": "1", "b": "2"}}, {"labels": {"b": "2", "a": "1"}}, True),
        ({"labels": {"a": "1"}}, {"labels": {"a": "2"}}, False),
        ({"metadata": {"annotations": {"a": "1"}}}, {}, True),
        ({"metadata": {"namespace": "other"}}, {}, False),
        ({"hostname": "a"}, {"hostname": "b"}, True),
        ({"requests": {"cpu": "1000m"}}, {"requests": {"cpu": "1"}}, True),
        ({"requests": {"cpu": "2"}}, {"requests": {"cpu": "1"}}, False),
        ({"priority": 1}, {}, False),
        ({"preemptionPolicy": "Never"}, {}, False),
        ({"affinity": anti_affinity("web")}, {}, False),
        ({"affinity": anti_affinity("web")}, {"affinity": anti_affinity("web")}, True),
        ({"tolerations": [{"operator": "Exists"}]}, {}, False),
        ({"volumes": [{"name": "x", **CLAIM}]}, {"volumes": [{"name": "y", **CLAIM}]}, True),
        ({"volumes": [{"name": "x", **CLAIM}]}, {"volumes": [{"name": "x"}]}, False),
        ({"phase": "Pending"}, {"phase": ""}, True),
    ],
)
def test_for_the_shipped_rules(one: dict[str, Any], other: dict[str, Any], equal: bool) -> None:
    assert alike(default_profile(), one, other) == equal


@pytest.mark.parametrize(
    ("condition", "one", "other"),
    [
        ("pod.name == node.name", {}, {}),
        ("pod.metadata.generateName == node.name", {"metadata": {"generateName": "a"}}, {}),
        ("pod.status.phase == node.name", {"phase": "Pending"}, {"phase": ""}),
        (
            "pod.spec.volumes.exists(v, v.name == node.name)",
            {"volumes": [{"name": "x"}]},
            {"volumes": [{"name": "y"}]},
        ),
        (
            "pod.spec.volumes.exists(v, has(v.persistentVolumeClaim) && v in pod.spec.volumes.filter(w, w == v))",
            {"volumes": [{"name": "x"}]},
            {"volumes": [{"name": "y"}]},
        ),
        (
            "pod.spec.volumes.exists(v, has(v.persistentVolumeClaim)) && size(pod.spec.volumes.distinct()) > 1",
            {"volumes": [{"name": "x"}]},
            {"volumes": [{"name": "y"}]},
        ),
        ("size(pod.spec.volumes) > node.podCount", {"volumes": [{"name": "x"}]}, {}),
    ],
)
def test_what_a_rule_reads_tells_pods_apart(condition: str, one: dict[str, Any], other: dict[str, Any]) -> None:
    reading = profile_of(f'predicate Reads {{ deny "x" when {condition} }}', "predicates { Reads }")
    assert not alike(reading, one, other)
    assert alike(profile_of('predicate Reads { deny "x" when node.podCount > 1 }', "predicates { Reads }"), {}, {})


def test_claims_tell_pods_apart_whatever_rules_read() -> None:
    """They must be there. Each pod has an ephemeral one of its own."""
    reading = profile_of('predicate Reads { deny "x" when node.podCount > 1 }', "predicates { Reads }")
    ephemeral = {"volumes": [{"name": "x", "ephemeral": {"volumeClaimTemplate": {}}}]}
    assert not alike(reading, {"volumes": [{"name": "x", **CLAIM}]}, {})
    assert not alike(reading, ephemeral, ephemeral)
    assert alike(reading, {"volumes": [{"name": "x"}]}, {})


def test_a_pod_whose_claim_is_made_for_it_is_not_like_one_that_names_that_claim() -> None:
    """If the claim belongs to somebody else, the first cannot run; the second can."""
    own = info("a", volumes=[{"name": "data", "ephemeral": {"volumeClaimTemplate": {}}}])
    named = info("b", volumes=[{"name": "x", "persistentVolumeClaim": {"claimName": "a-data"}}])
    assert own.claim_names == named.claim_names
    kinds = PodKinds([profile_of('predicate Reads { deny "x" when node.podCount > 1 }', "predicates { Reads }")])
    assert kinds.of(own) == kinds.of(own)
    assert kinds.of(own) != kinds.of(named)


def test_how_many_volumes_there_are_needs_no_names() -> None:
    reading = profile_of('predicate Reads { deny "x" when size(pod.spec.volumes) > 3 }', "predicates { Reads }")
    assert alike(reading, {"volumes": [{"name": "x"}]}, {"volumes": [{"name": "y"}]})


def test_pods_of_schedulers_that_are_not_known_are_all_different() -> None:
    assert not alike(default_profile(), {"schedulerName": "another"}, {"schedulerName": "another"})
