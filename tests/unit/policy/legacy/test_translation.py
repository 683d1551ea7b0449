"""What Policies come to: plugins in order, weights, arguments, extenders, and what has no effect."""

from __future__ import annotations

import json

import pytest
from tests.unit.policy.legacy.policies import absent, configured, policy, predicate, present, priority, ratio

from ksp.policy.extender import DEFAULT_TIMEOUT, ExtenderTLS
from ksp.policy.legacy import LegacyPolicy, LegacyPolicyError, configuration, read_and_configure, read_policy
from ksp.policy.legacy.model import Predicate

MANDATORY = ("NodeUnschedulable", "TaintToleration")


def test_without_lists_the_default_ones_and_with_empty_ones_what_is_mandatory() -> None:
    default = configured().plugins
    assert (len(default.filters), len(default.scores)) == (15, 9)
    assert dict(default.scores)["NodePreferAvoidPods"] == 10000
    empty = configured(predicates=[], priorities=[]).plugins
    assert (empty.filters, empty.scores) == (MANDATORY, ())
    assert not default.preempts


def test_predicates_are_asked_in_their_own_order_and_priorities_sorted() -> None:
    names = ["MatchInterPodAffinity", "NoDiskConflict", "PodFitsPorts", "HostName", "HostName"]
    made = configured(
        predicates=[predicate(name) for name in names],
        priorities=[priority("TaintTolerationPriority", 3), priority("ImageLocalityPriority", 2)],
    ).plugins
    assert made.filters == (
        "NodeUnschedulable", "NodeName", "NodePorts", "VolumeRestrictions", "TaintToleration", "InterPodAffinity",
    )  # fmt: skip
    assert made.scores == (("ImageLocality", 2), ("TaintToleration", 3))


def test_arguments_of_several_entries_add_up() -> None:
    made = configured(
        predicates=[
            predicate("A", serviceAffinity={"labels": ["region"]}),
            predicate("B", labelsPresence=absent("z")),
            predicate("C", serviceAffinity={"labels": ["zone", "rack"]}),
            predicate("D", labelsPresence=present("x", "y")),
        ],
        priorities=[
            priority("E", 3, labelPreference={"label": "a", "presence": True}),
            priority("F", 3, labelPreference={"label": "b"}),
            priority("G", 2, serviceAntiAffinity={"label": "rack"}),
            priority("H", 5, requestedToCapacityRatioArguments=ratio((0, 0), (100, 10))),
        ],
    )
    assert made.plugins.filters == ("NodeUnschedulable", "TaintToleration", "NodeLabel", "ServiceAffinity")
    assert made.plugins.scores == (("NodeLabel", 6), ("RequestedToCapacityRatio", 5), ("ServiceAffinity", 2))
    assert made.plugins.arguments == {
        "ServiceAffinity": {"affinityLabels": ["region", "zone", "rack"], "antiAffinityLabelsPreference": ["rack"]},
        "NodeLabel": {
            "presentLabels": ["x", "y"],
            "absentLabels": ["z"],
            "presentLabelsPreference": ["a"],
            "absentLabelsPreference": ["b"],
        },
        "RequestedToCapacityRatio": {
            "shape": [{"utilization": 0, "score": 0}, {"utilization": 100, "score": 10}],
            "resources": [],
        },
    }


def test_the_weight_of_affinity_that_is_hard() -> None:
    scored = configured(priorities=[priority("InterPodAffinityPriority")], hardPodAffinitySymmetricWeight=10)
    assert scored.plugins.arguments == {"InterPodAffinity": {"hardPodAffinityWeight": 10}}
    assert not configured(
        priorities=[priority("InterPodAffinityPriority")], hardPodAffinitySymmetricWeight=0
    ).plugins.arguments
    unscored = configured(priorities=[], hardPodAffinitySymmetricWeight=10)
    assert not unscored.plugins.arguments
    assert [each.pointer for each in unscored.warnings] == ["/hardPodAffinitySymmetricWeight"]


def test_numbers_of_yaml_are_what_json_makes_of_them() -> None:
    text = "kind: Policy\napiVersion: v1\npriorities: [{name: ImageLocalityPriority, weight: 2.0}]\n"
    text += "hardPodAffinitySymmetricWeight: 1e1\n"
    made = read_policy(text, "policy.yaml")
    assert made.priorities is not None
    assert (made.priorities[0].weight, made.hard_weight) == (2, 10)


def test_what_has_no_effect_is_told_with_its_pointer() -> None:
    made = configured(
        predicates=[predicate("CheckServiceAffinity"), predicate("HostName", labelsPresence=present("a"))],
        priorities=[
            priority("EqualPriority"),
            priority("SelectorSpreadPriority", 1),
            priority("ServiceSpreadingPriority", 4),
            priority("ImageLocalityPriority", 1, labelPreference={"label": "a"}),
        ],
        extenders=[{"urlPrefix": "/x", "nodeCachecapable": True, "bindverbs": "b"}],
    )
    assert [each.pointer for each in made.warnings] == [
        "/extenders/0/bindverbs",
        "/predicates/1/argument",
        "/priorities/0",
        "/priorities/2",
        "/priorities/3/argument",
        "/predicates/0",
        "/extenders/0/urlPrefix",
    ]
    assert str(made.warnings[0]) == (
        'unknown field "extenders[0].bindverbs" is ignored; did you mean `bindVerb`? (/extenders/0/bindverbs)'
    )
    assert made.plugins.scores == (("ImageLocality", 1), ("SelectorSpread", 4))
    assert made.extenders[0].node_cache_capable


def test_the_name_of_a_rule_for_labels_is_enough_where_another_entry_has_them() -> None:
    made = configured(predicates=[predicate("CheckNodeLabelPresence"), predicate("Own", labelsPresence=present("a"))])
    assert not made.warnings
    assert made.plugins.arguments == {"NodeLabel": {"presentLabels": ["a"]}}
    without = configured(predicates=[predicate("Own", labelsPresence=present())])
    assert [str(each) for each in without.warnings] == [
        "CheckNodeLabelPresence without labels denies nothing (/predicates/0)"
    ]


def test_extenders_those_that_may_fail_last() -> None:
    made = configured(
        predicates=[predicate("PodFitsResources")],
        extenders=[
            {
                "urlPrefix": "http://a",
                "FILTERVERB": "filter",
                "PrioritizeVerb": "prioritize",
                "weight": 5,
                "ignorable": True,
                "managedResources": [{"name": "example.com/a", "ignoredByScheduler": True}, {"name": "example.com/b"}],
            },
            {
                "urlPrefix": "https://b",
                "bindVerb": "bind",
                "enableHttps": True,
                "httpTimeout": 1_500_000_000,
                "tlsConfig": {"serverName": "s", "caFile": "/ca", "certData": "YWJj"},
            },
        ],
    )
    binds, filters = made.extenders
    assert (binds.url_prefix, binds.bind_verb, binds.enable_https, binds.timeout) == ("https://b", "bind", True, 1.5)
    assert binds.tls == ExtenderTLS(server_name="s", ca_file="/ca", cert_data=b"abc")
    assert (filters.filter_verb, filters.prioritize_verb, filters.weight) == ("filter", "prioritize", 5)
    assert (filters.timeout, filters.tls, filters.ignorable) == (DEFAULT_TIMEOUT, None, True)
    assert filters.managed_resources == {"example.com/a", "example.com/b"}
    assert filters.ignored_resources == {"example.com/a"}
    assert made.plugins.arguments == {"NodeResourcesFit": {"ignoredResources": ["example.com/a"]}}


def test_json_and_yaml_say_the_same() -> None:
    fields = policy(
        predicates=[predicate("A", labelsPresence=present("x"))], priorities=[priority("ImageLocalityPriority", 2)]
    )
    yaml = """\
# a comment
kind: Policy
apiVersion: kubescheduler.config.k8s.io/v1
predicates:
- name: A
  argument: {labelsPresence: {labels: [x], presence: yes}}
priorities:
- {name: ImageLocalityPriority, weight: 2}
"""
    assert read_and_configure(yaml, "a") == read_and_configure(json.dumps(fields, indent="\t"), "b")


def test_a_policy_that_was_made_and_is_not_valid_is_refused() -> None:
    with pytest.raises(LegacyPolicyError, match="made: Invalid configuration: Predicate type not found"):
        configuration(LegacyPolicy("made", predicates=(Predicate("None"),)))
