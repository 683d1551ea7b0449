"""What a profile reads of a pod follows from its rules."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.core.scheduling import REQUIRED, default_profile, info, profile_of

from ksp.policy.api_fields import FIELDS, Without
from ksp.policy.load import load, profiles
from ksp.policy.profile import Profile
from ksp.policy.unread import (
    NOTHING,
    Unread,
    UnreadBy,
    UnreadFields,
    UnreadOfRunning,
    unread_fields,
    unread_of_running,
)
from ksp.source.origin import Texts

MIN_DOMAINS = "spec.topologySpreadConstraints[].minDomains"
CLAIMS = "spec.resourceClaims"
AWAY = f"spec.affinity.podAntiAffinity.{REQUIRED}[].namespaceSelector"
WEB = {"matchLabels": {"app": "web"}}
CONSTRAINT = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": WEB}
DOMAINS = {"topologySpreadConstraints": [{**CONSTRAINT, "minDomains": 3}]}
DEVICES = {"resourceClaims": [{"name": "gpu"}]}
GREATER = {"tolerations": [{"key": "sla", "operator": "Gt", "value": "9"}]}


def away(**more: Any) -> dict[str, Any]:
    return {"affinity": {"podAntiAffinity": {REQUIRED: [{"topologyKey": "zone", "labelSelector": WEB, **more}]}}}


def extended(rules: str, uses: str) -> Profile:
    """The default profile with more rules."""
    provider = f"provider P extends DefaultProvider {{ {uses} }}"
    text = f'import "ksp:default.ksp"\n{rules}\n{provider}\nprofile "more" uses P {{ }}'
    found = load(Texts({"test.ksp": text}), "test.ksp")
    assert found.module is not None, found.diagnostics
    return next(profile for profile in profiles(found.module) if profile.scheduler_name == "more")


def unread_paths(profile: Profile) -> set[str]:
    return {field.path for field in unread_fields(profile)}


# ---- what is read


def test_the_shipped_rules_read_all_that_kube_scheduler_1_19_knows_and_ephemeral_volumes() -> None:
    unread = {(f.path, f.when) for f in unread_fields(default_profile())}
    newer = {(f.path, f.when) for f in FIELDS if f.without is not Without.LEFT_OUT}
    assert newer - unread == {("spec.volumes[].ephemeral", "")}
    assert unread <= newer


BY_NAME = 'predicate R { deny "x" when "secret" in pod.claimNames }'
RAW = 'predicate R { deny "x" when pod.spec.volumes.exists(v, v.persistentVolumeClaim.claimName == "secret") }'


@pytest.mark.parametrize(
    ("rule", "read"), [(BY_NAME, {"ephemeral", "persistentVolumeClaim"}), (RAW, {"persistentVolumeClaim"})]
)
def test_the_names_of_claims_tell_of_both_kinds_of_volumes(rule: str, read: set[str]) -> None:
    unread = {f.path for f in unread_fields(profile_of(rule, "predicates { R }"))}
    assert {kind for kind in ("ephemeral", "persistentVolumeClaim") if f"spec.volumes[].{kind}" not in unread} == read


READER = 'predicate Reader { deny "x" when pod.spec.topologySpreadConstraints.exists(c, c.minDomains > 3) }'
ITS_SCORE = "priority Scores { score size(pod.spec.topologySpreadConstraints.filter(c, c.minDomains > 3)) normalize }"


def test_a_demand_is_read_by_a_predicate() -> None:
    assert MIN_DOMAINS not in unread_paths(extended(READER, "predicates { Reader }"))


def test_a_demand_is_not_read_by_a_priority() -> None:
    assert MIN_DOMAINS in unread_paths(extended(ITS_SCORE, "priorities { Scores: 1 }"))


def test_a_rule_that_no_profile_uses_reads_nothing() -> None:
    assert MIN_DOMAINS in unread_paths(extended(READER, ""))


@pytest.mark.parametrize(
    ("rules", "uses"),
    [
        ("predicate R { deny 'x' when pod.spec.tolerations.exists(t, t.operator == 'Gt') }", "predicates { R }"),
        ("priority R { score size(pod.spec.tolerations.filter(t, t.operator == 'Gt')) }", "priorities { R: 1 }"),
    ],
)
def test_a_wish_is_read_by_any_rule(rules: str, uses: str) -> None:
    assert "spec.tolerations[].operator" in unread_paths(default_profile())
    assert "spec.tolerations[].operator" not in unread_paths(extended(rules, uses))


@pytest.mark.parametrize(
    "condition",
    [
        "size(pod.spec.resourceClaims) > 0",
        "pod.spec.resourceClaims.exists(c, c.name == 'gpu')",
        "pod.spec.resourceClaims[0].resourceClaimName == 'gpu'",
    ],
)
def test_what_leads_to_a_field_or_into_it_reads_it(condition: str) -> None:
    assert CLAIMS not in unread_paths(extended(f"predicate R {{ deny 'x' when {condition} }}", "predicates { R }"))


def test_what_a_policy_reads_less_than_1_19_is_unread_too() -> None:
    small = profile_of("predicate Small { deny 'x' when node.name == 'n' }", "predicates { Small }")
    assert {"spec.nodeSelector", "spec.containers[].ports[].hostPort"} <= unread_paths(small)


# ---- what becomes of a pod


def test_a_plain_pod_uses_nothing() -> None:
    for mode in UnreadFields:
        assert UnreadBy(default_profile(), mode).of(info("p")) is NOTHING


@pytest.mark.parametrize(
    ("mode", "found"),
    [
        (UnreadFields.REFUSE, Unread((CLAIMS, MIN_DOMAINS), ("spec.tolerations[].operator",))),
        (UnreadFields.WARN, Unread((), (CLAIMS, MIN_DOMAINS, "spec.tolerations[].operator"))),
        (UnreadFields.IGNORE, NOTHING),
    ],
)
def test_the_mode_says_what_becomes_of_it(mode: UnreadFields, found: Unread) -> None:
    pod = info("p", **DEVICES, **DOMAINS, **GREATER)
    assert UnreadBy(default_profile(), mode).of(pod) == found


def test_a_demand_and_a_wish_of_one_path_are_told_once() -> None:
    constraints = [
        {**CONSTRAINT, "nodeTaintsPolicy": "Honor"},
        {**CONSTRAINT, "whenUnsatisfiable": "ScheduleAnyway", "nodeTaintsPolicy": "Honor"},
    ]
    pod = info("p", topologySpreadConstraints=constraints)
    path = "spec.topologySpreadConstraints[].nodeTaintsPolicy"
    assert UnreadBy(default_profile(), UnreadFields.REFUSE).of(pod) == Unread((path,), ())
    assert UnreadBy(default_profile(), UnreadFields.WARN).of(pod) == Unread((), (path,))


def test_a_policy_that_leaves_out_a_rule_of_1_19_refuses_nobody() -> None:
    small = profile_of("predicate Small { deny 'x' when node.name == 'n' }", "predicates { Small }")
    found = UnreadBy(small, UnreadFields.REFUSE).of(info("p", nodeSelector={"disk": "ssd"}))
    assert found == Unread((), ("spec.nodeSelector",))


def test_the_words() -> None:
    subject = UnreadBy(default_profile(), UnreadFields.REFUSE)
    assert subject.refusal(Unread((CLAIMS,))) == (
        'pod uses spec.resourceClaims, which the policy does not read (profile "default-scheduler"): '
        "add a predicate that reads it, or let ksp ignore it with --unread-fields=warn"
    )
    assert subject.refusal(Unread((CLAIMS, MIN_DOMAINS, AWAY))) == (
        f"pod uses spec.resourceClaims, {MIN_DOMAINS} and {AWAY}, which the policy does not read (profile "
        '"default-scheduler"): add a predicate that reads them, or let ksp ignore them with --unread-fields=warn'
    )
    assert subject.warning(Unread(warned=(CLAIMS,))) == (
        'pod uses spec.resourceClaims, which the policy does not read (profile "default-scheduler"): it is ignored'
    )
    assert subject.warning(Unread(warned=(CLAIMS, AWAY))).endswith('(profile "default-scheduler"): they are ignored')


# ---- running pods

PROTECTS = """predicate Protects {
  view away = count p in cluster.pods
      where p.spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution
             .exists(t, has(t.namespaceSelector))
      by p.node.name
  deny "x" when away[node.name] > 0
}"""


def test_a_predicate_may_read_what_protects_running_pods() -> None:
    assert AWAY in {field.path for field in unread_of_running(default_profile())}
    assert AWAY not in {field.path for field in unread_of_running(extended(PROTECTS, "predicates { Protects }"))}


def test_each_profile_has_to_read_what_protects_running_pods() -> None:
    pod = info("p", **away(namespaceSelector={}))
    reading = extended(PROTECTS, "predicates { Protects }")
    assert UnreadOfRunning([reading], UnreadFields.REFUSE).of(pod) == ()
    assert UnreadOfRunning([reading, default_profile()], UnreadFields.WARN).of(pod) == (AWAY,)
    assert UnreadOfRunning([default_profile()], UnreadFields.IGNORE).of(pod) == ()


def test_most_running_pods_need_no_such_protection() -> None:
    subject = UnreadOfRunning([default_profile()], UnreadFields.REFUSE)
    specs: list[dict[str, Any]] = [{}, away(), DOMAINS, DEVICES, {"affinity": {"nodeAffinity": {}}}]
    for spec in specs:
        assert subject.of(info("p", **spec)) == ()
