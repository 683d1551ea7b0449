from __future__ import annotations

from typing import Any

import pytest
from tests.unit.core.scheduling import default_profile, node, pod, profile_of

from ksp.core.changes import Change, DeleteNode, DeleteObject, DeletePod, SetNode, SetObject, SetPod
from ksp.core.state import CLUSTER_KINDS, NAMESPACED_KINDS
from ksp.kube.watch.resources import RESOURCES
from ksp.model.apps import Service
from ksp.model.decode import convert
from ksp.model.info import PodInfo
from ksp.model.pod import Pod
from ksp.runtime.changes import IF_READ, KINDS, OBJECTS, handlers, kinds_of, uid_of


def told() -> tuple[dict[str, Any], list[Change]]:
    changes: list[Change] = []
    return dict(handlers(changes.append, RESOURCES)), changes


def test_there_is_a_handler_for_each_kind_that_rules_can_ask_for() -> None:
    assert set(OBJECTS.values()) == NAMESPACED_KINDS | CLUSTER_KINDS
    assert set(told()[0]) == {"Pod", "Node", *OBJECTS} == set(KINDS) | IF_READ == set(RESOURCES)


@pytest.mark.parametrize(
    ("rule", "kinds"),
    [
        ("predicate R { deny 'no' when false }", ()),
        ("predicate R { deny 'no' when !('high' in cluster.priorityClasses) }", ("PriorityClass",)),
        ("priority R { score size(cluster.namespaces[pod.namespace].metadata.labels) }", ("Namespace",)),
    ],
)
def test_kinds_that_only_rules_read_are_watched_where_one_reads_them(rule: str, kinds: tuple[str, ...]) -> None:
    uses = "predicates { R }" if rule.startswith("predicate") else "priorities { R }"
    assert kinds_of([default_profile(), profile_of(rule, uses)]) == (*KINDS, *kinds)
    assert "PodDisruptionBudget" in KINDS


def test_pods() -> None:
    by_kind, changes = told()
    old, new = pod("a"), pod("a", on="n1")
    by_kind["Pod"].on_add(old)
    by_kind["Pod"].on_update(old, new)
    by_kind["Pod"].on_delete(new, known_final_state=False)
    assert changes == [SetPod(old), SetPod(new), DeletePod("a")]


def test_a_pod_of_another_uid_is_another_pod() -> None:
    by_kind, changes = told()
    old, new = pod("a", metadata={"uid": "1"}), pod("a", metadata={"uid": "2"})
    by_kind["Pod"].on_update(old, new)
    assert changes == [DeletePod("1"), SetPod(new)]


def test_a_pod_without_a_uid_is_known_as_pod_info_knows_it() -> None:
    nameless = convert(Pod, {"metadata": {"name": "a", "namespace": "b"}})
    assert uid_of(nameless) == PodInfo.of(nameless).uid == "b/a"
    assert uid_of(pod("x")) == PodInfo.of(pod("x")).uid


def test_nodes() -> None:
    by_kind, changes = told()
    old, new = node("n1"), node("n1", cpu="8")
    by_kind["Node"].on_add(old)
    by_kind["Node"].on_update(old, new)
    by_kind["Node"].on_delete(new, known_final_state=True)
    assert changes == [SetNode(old), SetNode(new), DeleteNode("n1")]


def test_other_objects() -> None:
    by_kind, changes = told()
    service = convert(Service, {"metadata": {"name": "s", "namespace": "default"}})
    by_kind["Service"].on_add(service)
    by_kind["Service"].on_update(service, service)
    by_kind["Service"].on_delete(service, known_final_state=True)
    place = ("services", "default", "s")
    assert changes == [SetObject(*place, service), SetObject(*place, service), DeleteObject(*place)]
