"""Converted Policies: what is written reads back as what was meant, and decides the same."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.policy.legacy.converting import CHECKER, convert, meant, read_back
from tests.unit.policy.legacy.policies import Json, absent, policy, predicate, present, priority, ratio

from ksp.policy.configuration import read_configuration
from ksp.policy.legacy import LegacyPolicyError
from ksp.policy.legacy.names import GENERAL, HISTORICAL, PREDICATES, PRIORITIES
from ksp.policy.legacy.naming import INTERNAL
from ksp.policy.legacy.writing import literal
from ksp.policy.profile import Profile
from ksp.sim.conversion_proof import interests
from ksp.sim.same_decisions import compared
from ksp.sim.sample_clusters import sample_cases


def shape(profile: Profile) -> Any:
    """All of a profile but the compiled functions."""
    return (
        [(active.name, active.plugin, active.arguments) for active in profile.predicates],
        [(active.name, active.plugin, active.weight) for active in profile.priorities],
        (profile.preempts, profile.checks_all, profile.scheduler_name, profile.percentage),
    )


labels = st.text(st.characters(codec="utf-8"), min_size=1, max_size=8)
weights = st.integers(1, 1000)
own = st.one_of(
    st.builds(lambda x: predicate("own", serviceAffinity={"labels": x}), st.lists(labels, max_size=3)),
    st.builds(lambda x: predicate("own", labelsPresence=present(*x)), st.lists(labels, max_size=3)),
    st.builds(lambda x: predicate("own", labelsPresence=absent(*x)), st.lists(labels.map("no ".__add__), max_size=3)),
)
plain = st.sampled_from([predicate(name) for name in (*PREDICATES, "PodFitsPorts") if name != GENERAL])
scoring = st.builds(priority, st.sampled_from(sorted(PRIORITIES.keys() - INTERNAL)), weights)
preferences = st.builds(lambda label: {"label": label, "presence": True}, labels)
racks = st.builds(lambda label: {"label": label}, labels)
curves = st.builds(
    lambda scores, names: ratio(*zip(range(0, 50, 10), scores, strict=False), resources=[(n, 2) for n in names]),
    st.lists(st.integers(0, 10), min_size=1, max_size=4),
    st.lists(st.sampled_from(["cpu", "memory", "example.com/foo"]), unique=True, max_size=2),
)


@st.composite
def policies(draw: Any) -> Json:
    """Valid Policies of all kinds."""
    made: Json = policy()
    if draw(st.booleans()):
        made["predicates"] = draw(st.lists(st.one_of(plain, own), max_size=6))
    if draw(st.booleans()):
        weight = draw(weights)
        made["priorities"] = [
            *draw(st.lists(scoring, max_size=4)),
            *(priority("own", weight, labelPreference=each) for each in draw(st.lists(preferences, max_size=2))),
            *(priority("own", weight, serviceAntiAffinity=each) for each in draw(st.lists(racks, max_size=2))),
            *(priority("own", 5, requestedToCapacityRatioArguments=x) for x in draw(st.lists(curves, max_size=1))),
        ]  # fmt: skip
    if draw(st.booleans()):
        made["hardPodAffinitySymmetricWeight"] = draw(st.integers(0, 100))
    made["alwaysCheckAllPredicates"] = draw(st.booleans())
    return made


@given(policies())
@settings(max_examples=30)
def test_what_is_written_is_the_profile_that_was_meant(fields: Json) -> None:
    conversion = convert(fields)
    assert shape(read_back(conversion)) == shape(meant(conversion))


@given(policies(), st.integers(0, 9))
@settings(max_examples=10)
def test_two_ways_one_answer(fields: Json, seed: int) -> None:
    conversion = convert(fields)
    cases = sample_cases(2, 3, interests(conversion.plugins), seed)
    assert not compared(meant(conversion), read_back(conversion), cases).difference


def test_every_part_is_in_the_report() -> None:
    conversion = convert(
        policy(
            predicates=[predicate("PodFitsPorts"), predicate("Own", labelsPresence=present("region"))],
            priorities=[
                priority("EqualPriority"),
                priority("InterPodAffinityPriority", 2),
                priority("Racks", 3, serviceAntiAffinity={"label": "rack"}),
            ],
            hardPodAffinitySymmetricWeight=10,
            alwaysCheckAllPredicates=True,
            extenders=[
                {"urlPrefix": "http://a", "ignorable": True},
                {"urlPrefix": "http://b", "filterVerb": "f", "httpTimeout": 2_000_000},
            ],
        )
    )
    assert [(row.pointer, row.becomes, row.note) for row in conversion.rows] == [
        ("/predicates/0", ("PodFitsHostPorts",), "it is PodFitsHostPorts"),
        ("/predicates/1", ("CheckNodeLabelPresence",), 'it is CheckNodeLabelPresence, presentLabels ["region"]'),
        ("", ("CheckNodeUnschedulable",), "always there"),
        ("", ("PodToleratesNodeTaints",), "always there"),
        ("/priorities/0", (), "prefers nothing, left out"),
        ("/priorities/1", ("InterPodAffinityPriority: 2",), ""),
        (
            "/priorities/2",
            ("ServiceAntiAffinityPriority: 3",),
            'it is ServiceAffinity, antiAffinityLabelsPreference ["rack"]',
        ),
        ("/hardPodAffinitySymmetricWeight", ("InterPodAffinityPriority.hardPodAffinityWeight = 10",), ""),
        ("/alwaysCheckAllPredicates", ("alwaysCheckAllPredicates = true",), ""),
        ("/extenders/0", ("extenders[1]",), "in a file of its own"),
        ("/extenders/1", ("extenders[0]",), "in a file of its own"),
    ]
    read = read_configuration(conversion.extenders, "extenders.yaml")
    assert read.extenders == conversion.asked
    assert [each.url_prefix for each in read.extenders] == ["http://b", "http://a"]


def test_what_a_person_would_write() -> None:
    fields = policy(
        predicates=[predicate("GeneralPredicates"), predicate("Own", labelsPresence=absent('$a"\\\n\u202e'))],
        priorities=[priority("TaintTolerationPriority", 7)],
        alwaysCheckAllPredicates=True,
    )
    assert (
        convert(fields, "odd\nname.json", preempts=True).text
        == """\
// What the Policy in odd?name.json says.
// Written by `ksp convert`, which has made sure that both decide the same.
import "ksp:by-labels.ksp"
import "ksp:nodes.ksp"
import "ksp:ports.ksp"
import "ksp:resources.ksp"
import "ksp:taints.ksp"

/// The predicates in the order in which they are asked, the priorities with their weights.
provider FromPolicy {
  predicates {
    CheckNodeUnschedulable, PodFitsResources, HostName, PodFitsHostPorts, MatchNodeSelector,
    PodToleratesNodeTaints, CheckNodeLabelPresence
  }
  priorities {
    TaintTolerationPriority: 7
  }
}

profile "default-scheduler" uses FromPolicy {
  preemption = true
  alwaysCheckAllPredicates = true
  CheckNodeLabelPresence.absentLabels = ["\\$a\\"\\\\\\u000a\\u202e"]
}
"""
    )


def test_a_weight_that_cannot_be_said_is_named() -> None:
    with pytest.raises(LegacyPolicyError) as caught:
        convert(policy(priorities=[priority("ImageLocalityPriority", 1_000_001)]))
    (error,) = caught.value.errors
    assert error.pointer == "/priorities/0/weight"
    assert "at most 1000000" in error.message
    assert convert(policy(priorities=[priority("ImageLocalityPriority", 1_000_000)])).plugins.scores


def test_rules_of_the_past_are_where_the_hint_says() -> None:
    module = CHECKER.check("ksp:historical.ksp")
    assert module is not None
    assert {rule.name for rule in module.own_rules()} == HISTORICAL.keys()


def test_only_values_that_the_language_has_become_literals() -> None:
    assert literal([True, {"a": -1}, "\U0001f600\x00"]) == '[true, {a: -1}, "\U0001f600\\u0000"]'
    with pytest.raises(TypeError):
        literal(1.5)
