"""Which pods use a field that says where they may run: of each row a pod that does, and ones that do not."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.core.scheduling import REQUIRED, info

from ksp.model.pod import PodSpec
from ksp.policy.api_fields import FIELDS, PROTECTING, ApiField, Without

PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
LABELS = {"app": "web", "version": "2"}
WEB = {"matchLabels": {"app": "web"}}


def constraint(when: str = "DoNotSchedule", **more: Any) -> dict[str, Any]:
    plain = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": when, "labelSelector": WEB}
    return {"topologySpreadConstraints": [plain, {**plain, **more}]}


def merged(operator: str) -> dict[str, Any]:
    """The selector as the API server leaves it."""
    return {**WEB, "matchExpressions": [{"key": "version", "operator": operator, "values": ["1"]}]}


def term(kind: str, **more: Any) -> dict[str, Any]:
    plain = {"topologyKey": "zone", "labelSelector": WEB}
    return {"affinity": {kind: {REQUIRED: [plain, {**plain, **more}]}}}


def wish(kind: str, **more: Any) -> dict[str, Any]:
    plain = {"topologyKey": "zone", "labelSelector": WEB, **more}
    return {"affinity": {kind: {PREFERRED: [{"weight": 1, "podAffinityTerm": plain}]}}}


def volume(**source: Any) -> dict[str, Any]:
    return {"volumes": [{"name": "tmp", "emptyDir": {}}, {"name": "data", **source}]}


def port(**port_: Any) -> dict[str, Any]:
    return {"containers": [{"name": "main", "ports": [{"containerPort": 80, **port_}]}]}


SPREAD = "spec.topologySpreadConstraints[]"
VERSION: dict[str, Any] = {"matchLabelKeys": ["version"]}
NOT_VERSION: dict[str, Any] = {"mismatchLabelKeys": ["version"]}
EVERYWHERE: dict[str, Any] = {"namespaceSelector": {}}


def by_kind(name: str, more: dict[str, Any]) -> dict[tuple[str, str], dict[str, Any]]:
    """The rows of a field of affinity terms, each with the spec of a pod that uses it."""
    rows = {}
    for kind in ("podAffinity", "podAntiAffinity"):
        rows[f"spec.affinity.{kind}.{REQUIRED}[].{name}", ""] = term(kind, **more)
        rows[f"spec.affinity.{kind}.{PREFERRED}[].podAffinityTerm.{name}", ""] = wish(kind, **more)
    return rows


# By path and `when` of a row, the spec of a pod that uses this field and no other newer than kube-scheduler 1.19.
USING: dict[tuple[str, str], dict[str, Any]] = {
    ("spec.resourceClaims", ""): {"resourceClaims": [{"name": "gpu", "resourceClaimName": "a"}]},
    ("spec.schedulingGroup", ""): {"schedulingGroup": {"podGroupName": "gang"}},
    ("spec.workloadRef", ""): {"workloadRef": {"name": "job", "podGroup": "workers"}},
    ("spec.volumes[].ephemeral", ""): volume(ephemeral={"volumeClaimTemplate": {"spec": {}}}),
    (f"{SPREAD}.minDomains", "DoNotSchedule"): constraint(minDomains=2),
    (f"{SPREAD}.matchLabelKeys", "DoNotSchedule"): constraint(**VERSION),
    (f"{SPREAD}.matchLabelKeys", "ScheduleAnyway"): constraint("ScheduleAnyway", **VERSION),
    (f"{SPREAD}.nodeAffinityPolicy", "DoNotSchedule"): constraint(nodeAffinityPolicy="Ignore"),
    (f"{SPREAD}.nodeAffinityPolicy", "ScheduleAnyway"): constraint("ScheduleAnyway", nodeAffinityPolicy="Ignore"),
    (f"{SPREAD}.nodeTaintsPolicy", "DoNotSchedule"): constraint(nodeTaintsPolicy="Honor"),
    (f"{SPREAD}.nodeTaintsPolicy", "ScheduleAnyway"): constraint("ScheduleAnyway", nodeTaintsPolicy="Honor"),
    **by_kind("namespaceSelector", EVERYWHERE),
    **by_kind("matchLabelKeys", VERSION),
    **by_kind("mismatchLabelKeys", NOT_VERSION),
    ("spec.tolerations[].operator", "Lt, Gt"): {"tolerations": [{"key": "sla", "operator": "Gt", "value": "9"}]},
    ("spec.nodeSelector", ""): {"nodeSelector": {"disk": "ssd"}},
    (f"spec.affinity.nodeAffinity.{REQUIRED}", ""): {"affinity": {"nodeAffinity": {REQUIRED: {}}}},
    (f"spec.affinity.podAffinity.{REQUIRED}", ""): term("podAffinity"),
    (f"spec.affinity.podAntiAffinity.{REQUIRED}", ""): term("podAntiAffinity"),
    ("spec.topologySpreadConstraints", "DoNotSchedule"): constraint(),
    ("spec.containers[].ports[].hostPort", ""): port(hostPort=80),
    ("spec.volumes[].persistentVolumeClaim", ""): volume(persistentVolumeClaim={"claimName": "data"}),
}


def used(spec: dict[str, Any], **known: Any) -> set[tuple[str, str]]:
    """The rows that a pod with that spec uses."""
    pod = info("p", labels=LABELS, **{**known, **spec})
    return {(f.path, f.when) for f in FIELDS if getattr(pod.spec, f.part) and f.used(pod)}


def new(rows: set[tuple[str, str]]) -> set[tuple[str, str]]:
    """Without those that kube-scheduler 1.19 knows."""
    return rows - {(f.path, f.when) for f in FIELDS if f.without is Without.LEFT_OUT}


def test_every_row_has_a_pod() -> None:
    assert set(USING) == {(f.path, f.when) for f in FIELDS}
    assert len(FIELDS) == len(USING)


@pytest.mark.parametrize("field", FIELDS, ids=lambda field: f"{field.path} {field.when}")
def test_a_pod_uses_the_field(field: ApiField) -> None:
    row = (field.path, field.when)
    found = used(USING[row])
    assert row in found
    assert new(found) <= {row}


@pytest.mark.parametrize("field", FIELDS, ids=lambda field: f"{field.path} {field.when}")
def test_the_part_is_one_of_the_spec_and_empty_in_a_plain_pod(field: ApiField) -> None:
    assert field.part in PodSpec.__struct_fields__
    if field.part != "containers":
        assert not getattr(info("p").spec, field.part)


# Specs that say nothing new.
MEANINGLESS = {
    "no more domains than one": constraint(minDomains=1),
    "domains of a wish": constraint("ScheduleAnyway", minDomains=5),
    "policies by default": constraint(nodeAffinityPolicy="Honor", nodeTaintsPolicy="Ignore"),
    "keys that the API server has put into the selector": constraint(**VERSION, labelSelector=merged("In")),
    "keys that the pod does not have": constraint(matchLabelKeys=["tier"]),
    "keys beside no selector": constraint(**VERSION, labelSelector=None),
    "keys of a term, put into its selector": term("podAntiAffinity", **VERSION, labelSelector=merged("In")),
    "and those of others": term("podAffinity", **NOT_VERSION, labelSelector=merged("NotIn")),
    "keys of a term that the pod does not have": term("podAffinity", mismatchLabelKeys=["tier"]),
    "no selector of namespaces": term("podAntiAffinity", namespaceSelector=None),
    "namespaces by name": term("podAntiAffinity", namespaces=["a", "b"]),
    "operators of old": {"tolerations": [{"operator": "Exists"}, {"key": "a", "operator": "Equal", "value": "b"}]},
    "volumes of old": volume(configMap={"name": "c"}),
    "a port of the pod's own": port(),
    "what is seen to elsewhere": {
        "os": {"name": "linux"}, "overhead": {"cpu": "1"}, "preemptionPolicy": "Never", "runtimeClassName": "gvisor",
        "resources": {"requests": {"cpu": "1"}}, "initContainers": [{"name": "i", "restartPolicy": "Always"}],
    },
    "empty lists": {
        "resourceClaims": [], "topologySpreadConstraints": [], "tolerations": [], "volumes": [], "affinity": {},
        "nodeSelector": {}, "schedulingGroup": None, "workloadRef": None,
    },
}  # fmt: skip


@pytest.mark.parametrize("spec", MEANINGLESS.values(), ids=MEANINGLESS)
def test_what_asks_for_nothing_more_is_not_used(spec: dict[str, Any]) -> None:
    assert new(used(spec)) == set()


def test_keys_put_in_with_another_operator_still_ask_for_more() -> None:
    row = (f"{SPREAD}.matchLabelKeys", "DoNotSchedule")
    assert row in used(constraint(**VERSION, labelSelector=merged("NotIn")))


def test_a_selector_of_all_namespaces_is_not_the_absence_of_one() -> None:
    row = (f"spec.affinity.podAntiAffinity.{REQUIRED}[].namespaceSelector", "")
    assert row in used(term("podAntiAffinity", namespaceSelector={}))
    assert row not in used(term("podAntiAffinity"))


def test_running_pods_are_protected_by_their_required_anti_affinity() -> None:
    prefix = f"spec.affinity.podAntiAffinity.{REQUIRED}[]."
    assert [f.path.removeprefix(prefix) for f in PROTECTING] == [
        "namespaceSelector",
        "matchLabelKeys",
        "mismatchLabelKeys",
    ]
