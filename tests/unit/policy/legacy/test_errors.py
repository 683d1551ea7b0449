"""What is wrong with a Policy: all of it, each with its pointer; the first is what kube-scheduler stops at."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.policy.legacy.policies import (
    Json,
    absent,
    configured,
    errors,
    policy,
    predicate,
    present,
    priority,
    ratio,
)

from ksp.policy.legacy import LegacyPolicyError, configuration, policy_of, read_policy
from ksp.policy.legacy.decoding import POLICY

PLUGIN = "initializing profiles: creating profile for scheduler name default-scheduler: error initializing plugin "
STRICT = "strict decoding error: "
TWICE = "initializing profiles: creating profile for scheduler name default-scheduler: plugin "
RATIO = "/priorities/0/argument/requestedToCapacityRatioArguments"


def test_all_are_told_in_the_order_in_which_kube_scheduler_looks() -> None:
    found = errors(
        policy(
            predicates=[predicate("GeneralPredicates"), predicate("HostName"), predicate("PodFitsResource")],
            priorities=[
                priority("LeastRequestedPriority", 0),
                priority("R", 2, requestedToCapacityRatioArguments=ratio()),
            ],
            hardPodAffinitySymmetricWeight=-1,
            algorithm="x",
        )
    )
    assert [pointer for _, pointer in found] == [
        "/algorithm",
        "/priorities/0/weight",
        "/hardPodAffinitySymmetricWeight",
        "/predicates/2/name",
        "/priorities/1/argument/requestedToCapacityRatioArguments/shape",
        "/predicates/1",
    ]
    said = [message for message, _ in found]
    assert said[0] == f'{STRICT}unknown field "algorithm"'
    assert said[2] == "hardPodAffinitySymmetricWeight: Invalid value: -1: not in valid range [0-100]"
    assert said[3] == 'Invalid configuration: Predicate type not found for "PodFitsResource"'
    assert said[4] == f'{PLUGIN}"RequestedToCapacityRatio": at least one point must be specified'
    assert said[5] == f'{TWICE}"NodeName" already registered as "FilterPlugin"'


@pytest.mark.parametrize(
    ("entry", "message", "at"),
    [
        (predicate("Own"), 'Invalid configuration: Predicate type not found for "Own"', "/name"),
        (
            predicate("A", labelsPresence=present("a"), serviceAffinity={"labels": ["b"]}),
            "Exactly 1 predicate argument is required, numArgs: 2, Predicate: A",
            "/argument",
        ),
        (
            {"name": "HostName", "argument": {}},
            "Exactly 1 predicate argument is required, numArgs: 0, Predicate: HostName",
            "/argument",
        ),
        ({"name": 5}, f"{STRICT}json: cannot unmarshal number 5 into a value of type string", "/name"),
        ({"name": "HostName", "weight": 1}, f'{STRICT}unknown field "predicates[1].weight"', "/weight"),
        (
            predicate("A", labelsPresence={"labels": "a"}),
            f"{STRICT}json: cannot unmarshal string into a list",
            "/argument/labelsPresence/labels",
        ),
        (
            predicate("A", labelPresence=present("a")),
            f'{STRICT}unknown field "predicates[1].argument.labelPresence"; did you mean `labelsPresence`?',
            "/argument/labelPresence",
        ),
        ([], f"{STRICT}json: cannot unmarshal array into an object", ""),
    ],
)
def test_entries_of_predicates(entry: Any, message: str, at: str) -> None:
    assert errors(policy(predicates=[predicate("HostName"), entry]))[0] == (message, f"/predicates/1{at}")


@pytest.mark.parametrize(
    ("entry", "message", "at"),
    [
        (priority("Own"), 'Invalid configuration: Priority type not found for "Own"', "/name"),
        (
            priority("A", labelPreference={"label": "a"}, serviceAntiAffinity={"label": "b"}),
            "Exactly 1 priority argument is required, numArgs: 2, Priority: A",
            "/argument",
        ),
        ({"name": "A", "weight": 1, "argument": {}}, "No priority arguments set for priority A", "/argument"),
        (
            {"name": "EqualPriority"},
            "Priority EqualPriority should have a positive weight applied to it or it has overflown",
            "/weight",
        ),
        (
            priority("ImageLocalityPriority", (2**63 - 1) // 10),
            "Priority ImageLocalityPriority should have a positive weight applied to it or it has overflown",
            "/weight",
        ),
        (
            priority("ImageLocalityPriority", 2**31),
            "the weight of ImageLocality is 2147483648, and kube-scheduler 1.19 keeps 32 bits of it",
            "/weight",
        ),
        (
            priority("ImageLocalityPriority", 1.5),
            f"{STRICT}json: cannot unmarshal number 1.5 into a value of type int64",
            "/weight",
        ),
        (
            priority("ImageLocalityPriority", 2**63),
            f"{STRICT}json: cannot unmarshal number {2**63} into a value of type int64",
            "/weight",
        ),
        (
            priority("A", labelPreference={"label": "\ud800"}),
            f"{STRICT}half of a surrogate pair is no text",
            "/argument/labelPreference/label",
        ),
        (priority("NodeLabel"), 'priority "NodeLabel" has no label, of which kube-scheduler 1.19 crashes', "/name"),
        (
            priority("ServiceAffinity"),
            'priority "ServiceAffinity" has no label, of which kube-scheduler 1.19 crashes',
            "/name",
        ),
        (
            priority("RequestedToCapacityRatio"),
            f'{PLUGIN}"RequestedToCapacityRatio": at least one point must be specified',
            "/shape",
        ),
    ],
)
def test_entries_of_priorities(entry: Any, message: str, at: str) -> None:
    assert errors(policy(priorities=[entry]))[0] == (message, f"/priorities/0{at}")


def test_a_curve_and_its_resources() -> None:
    curve = ratio((50, 11), (50, -1), (101, 0), resources=[("cpu", 0), ("memory", 1)])
    said = errors(policy(priorities=[priority("R", requestedToCapacityRatioArguments=curve)]))
    assert [
        (message.removeprefix(f'{PLUGIN}"RequestedToCapacityRatio": '), at.removeprefix(RATIO)) for message, at in said
    ] == [
        ("utilization values must be sorted. Utilization[0]==50 >= Utilization[1]==50", "/shape/1/utilization"),
        ("score values must not be greater than 10. Score[0]==11", "/shape/0/score"),
        ("score values must not be less than 0. Score[1]==-1", "/shape/1/score"),
        ("utilization values must not be greater than 100. Utilization[2]==101", "/shape/2/utilization"),
        ("resource cpu weight 0 must not be less than 1", "/resources/0/weight"),
    ]


def test_labels_that_must_and_must_not_be_there() -> None:
    entries = [predicate("A", labelsPresence=present("a", "b")), predicate("B", labelsPresence=absent("c", "b"))]
    said = 'detecting at least one label (e.g., "b") that exist in both the present([a b]) and absent([c b]) label list'
    assert errors(policy(predicates=entries)) == [
        (f'{PLUGIN}"NodeLabel": {said}', "/predicates/1/argument/labelsPresence/labels/1")
    ]


def test_the_plugins_of_general_predicates_stand_once() -> None:
    parts = ["PodFitsResources", "HostName", "PodFitsPorts", "MatchNodeSelector"]
    said = errors(policy(predicates=[predicate(name) for name in ("GeneralPredicates", *parts)]))
    assert said == [
        (f'{TWICE}"NodePorts" already registered as "PreFilterPlugin"', "/predicates/3"),
        (f'{TWICE}"NodeResourcesFit" already registered as "PreFilterPlugin"', "/predicates/1"),
        (f'{TWICE}"NodeName" already registered as "FilterPlugin"', "/predicates/2"),
        (f'{TWICE}"NodeAffinity" already registered as "FilterPlugin"', "/predicates/4"),
    ]


def test_the_scheduler_of_the_message_is_the_one_that_was_named() -> None:
    text = json.dumps(policy(predicates=[predicate("GeneralPredicates"), predicate("HostName")]))
    with pytest.raises(LegacyPolicyError, match="for scheduler name mine: plugin"):
        read_policy(text, "policy.json", "mine")


def test_extenders() -> None:
    resource = {"name": "example.com/a"}
    found = errors(
        policy(
            extenders=[
                {
                    "urlPrefix": "http://a",
                    "prioritizeVerb": "p",
                    "bindVerb": "b",
                    "managedResources": [resource, resource],
                },
                {"urlPrefix": "http://b", "bindVerb": "b", "managedResources": [{"name": "cpu"}, {"name": "a/b/c"}]},
                {"urlPrefix": "http://c", "httpTimeout": "10s", "tlsConfig": {"caData": "%"}},
            ]
        )
    )
    assert [pointer for _, pointer in found] == [
        "/extenders/2/httpTimeout",
        "/extenders/2/tlsConfig/caData",
        "/extenders/0/weight",
        "/extenders/0/managedResources/1/name",
        "/extenders/1/managedResources/0/name",
        "/extenders/1/managedResources/1/name",
        "/extenders/1/bindVerb",
    ]
    said = [message for message, _ in found]
    assert said[2] == "Priority for extender http://a should have a positive weight applied to it"
    assert said[3] == "Duplicate extender managed resource name example.com/a"
    assert said[4] == "cpu is an invalid extended resource name"
    assert said[5].startswith("a qualified name must consist of alphanumeric characters")
    assert said[6] == "Only one extender can implement bind, found 2"


def test_extenders_that_kube_scheduler_starts_with_and_others() -> None:
    entries = [
        {"urlPrefix": "http://a", "tlsConfig": {"Insecure": True, "caFile": "/ca"}},
        {"urlPrefix": "a", "httpTimeout": -1, "tlsConfig": {"certFile": "/c"}},
    ]
    said = "specifying a root certificates file with the insecure flag is not allowed"
    assert errors(policy(extenders=entries)) == [(said, "/extenders/0/tlsConfig/insecure")]
    assert [str(each) for each in configured(extenders=entries[1:]).warnings] == [
        'Invalid value: "a": must be a URL with http:// or https:// and a host (/extenders/0/urlPrefix)',
        "Invalid value: -1ns: must not be negative (/extenders/0/httpTimeout)",
        "Invalid value: a certificate and its key go together (/extenders/0/tlsConfig)",
    ]


def test_hints() -> None:
    entries = [predicate("podfitsresources"), predicate("CheckNodeCondition")]
    extender = {"urlPrefix": "http://c", "httpTimeout": "500ms"}
    with pytest.raises(LegacyPolicyError) as caught:
        read_policy(json.dumps(policy(predicates=entries, extenders=[extender])), "policy.json")
    timeout, near, historical = caught.value.messages
    assert timeout.endswith("not a string; did you mean 500000000? (/extenders/0/httpTimeout)")
    assert near.endswith("did you mean `PodFitsResources`? (/predicates/0/name)")
    assert "kube-scheduler 1.16 was the last to have it" in historical


@pytest.mark.parametrize(
    ("text", "message", "pointer"),
    [
        ("", "empty", ""),
        ("[]", "must be an object, of kind Policy", ""),
        ("{", "not JSON: Expecting property name enclosed in double quotes (line 1, column 2)", ""),
        ("a: [", "line 1: not YAML: did not find expected node content", ""),
        ("a: 1\n---\nb: 1\n", "several documents; a Policy is one", ""),
        ("{" + '"a":{' * 100_000, "nested too deeply", ""),
        (
            f'{{"kind": "Policy", "apiVersion": "v1", "hardPodAffinitySymmetricWeight": {"1" * 5000}}}',
            None,
            "/hardPodAffinitySymmetricWeight",
        ),
        ('{"kind": "Policy", "apiVersion": "v1", "kind": "Policy"}', "`kind` stands twice in the same object", "/kind"),
        (
            '{"predicates": [{"name": "a", "name": "b"}]}',
            "`name` stands twice in the same object",
            "/predicates/0/name",
        ),
        ("{}", "Object 'Kind' is missing", "/kind"),
        ('{"kind": "Policy"}', "Object 'apiVersion' is missing", "/apiVersion"),
        ('{"kind": "Policy", "apiVersion": "v2"}', 'no kind "Policy" is registered for version "v2"', "/apiVersion"),
        (
            '{"kind": "KubeSchedulerConfiguration", "apiVersion": "kubescheduler.config.k8s.io/v1", "profiles": []}',
            'no kind "KubeSchedulerConfiguration" is registered for version "kubescheduler.config.k8s.io/v1"',
            "/kind",
        ),
        ("x" * (1024 * 1024 + 1), "larger than 1,048,576 characters", ""),
        ("a~b/c: 1\nkind: Policy\napiVersion: v1", f'{STRICT}unknown field "a~b/c"', "/a~0b~1c"),
    ],
)
def test_texts_that_are_no_policy(text: str, message: str | None, pointer: str) -> None:
    (first, *_) = errors(text)
    assert first[1] == pointer
    assert message is None or first[0] == message


scalars = st.one_of(st.none(), st.booleans(), st.integers(-(2**65), 2**65), st.floats(), st.text(max_size=3))
KEYS = st.sampled_from(
    ["name", "weight", "argument", "labels", "labelsPresence", "labelPreference", "shape", "urlPrefix"]
)
values = st.recursive(
    scalars,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.one_of(KEYS, st.text(max_size=2)), inner)),
    max_leaves=12,
)


@given(st.dictionaries(st.sampled_from(list(POLICY.fields)[2:]), values), st.booleans())
def test_whatever_stands_in_a_policy_it_is_read_or_all_is_told(fields: Json, typed: bool) -> None:
    value = policy(**fields) if typed else fields
    messages: tuple[str, ...] = ("read",)
    try:
        configuration(policy_of(value, "policy.json"))
    except LegacyPolicyError as error:
        messages = error.messages
    assert messages
    assert all(message.isprintable() for message in messages)


def test_a_message_is_one_line_and_ends() -> None:
    with pytest.raises(LegacyPolicyError) as caught:
        policy_of(policy(**{"a\nb\u202e": 1, "x" * 5000: 1}), "policy.json")
    odd, long = caught.value.messages
    assert odd == r'policy.json: strict decoding error: unknown field "a\u000ab\u202e" (/a\u000ab\u202e)'
    assert len(long) < 2100


def test_of_what_could_not_be_read_nothing_else_is_said() -> None:
    fields = policy(
        predicates=[{"name": 5}, predicate("A", labelPresence=present("a")), []],
        priorities=[priority("ImageLocalityPriority", "1"), priority("B", 1.5), priority("C", 0)],
        hardPodAffinitySymmetricWeight="10",
    )
    assert [pointer for _, pointer in errors(fields)] == [
        "/predicates/0/name",
        "/predicates/1/argument/labelPresence",
        "/predicates/2",
        "/priorities/0/weight",
        "/priorities/1/weight",
        "/hardPodAffinitySymmetricWeight",
        "/priorities/2/weight",
        "/priorities/1/name",
        "/priorities/2/name",
    ]


def test_of_very_many_mistakes_the_first_hundred_are_printed() -> None:
    with pytest.raises(LegacyPolicyError) as caught:
        policy_of(policy(predicates=[predicate(f"P{i}") for i in range(103)]), "policy.json")
    assert len(caught.value.errors) == 103
    assert len(caught.value.messages) == 101
    assert caught.value.messages[-1] == "policy.json: 3 more are not shown"


@given(st.text(max_size=40))
def test_whatever_a_text_is_it_is_read_or_refused(text: str) -> None:
    with pytest.raises(LegacyPolicyError):
        read_policy(text, "policy.json")


def test_a_valid_policy_has_no_errors() -> None:
    assert errors(policy(predicates=None, priorities=None, extenders=None, hardPodAffinitySymmetricWeight=None)) == []
    assert not configured().warnings
