from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from tests.unit.apiserver.in_process import PODS, Api, pod

from ksp.apiserver.tables.pod_rows import pod_cells
from ksp.apiserver.tables.rows import ROWS
from ksp.apiserver.tables.tables import _columns
from ksp.apiserver.versions import V1_19, V1_36, VERSIONS

Json = dict[str, Any]
NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"


def rows(api: Api, path: str) -> list[list[Any]]:
    code, found = api.get(path, Accept=TABLE)
    assert code == 200
    assert all(len(row["cells"]) == len(found["columnDefinitions"]) for row in found["rows"])
    return [row["cells"] for row in found["rows"]]


def status_of(status: Json, **metadata: Any) -> list[Any]:
    containers = [{"name": "c", "image": "i"}]
    obj = {"metadata": {"name": "p", **metadata}, "spec": {"containers": containers}, "status": status}
    return pod_cells(obj, V1_36, NOW)


def container(state: Json, **fields: Any) -> Json:
    return {"containerStatuses": [{"name": "c", "state": state, **fields}], "phase": "Running"}


@pytest.mark.parametrize("version", VERSIONS)
def test_each_printer_has_its_columns(version: str) -> None:
    assert set(_columns(version)) == set(ROWS)


@pytest.mark.parametrize(
    ("status", "word"),
    [
        ({"phase": "Pending"}, "Pending"),
        ({"phase": "Failed", "reason": "Evicted"}, "Evicted"),
        (container({"running": {}}, ready=True), "Running"),
        (container({"waiting": {"reason": "CrashLoopBackOff"}}), "CrashLoopBackOff"),
        (container({"terminated": {"exitCode": 3}}), "ExitCode:3"),
        (container({"terminated": {"exitCode": 0, "signal": 9}}), "Signal:9"),
        (container({"terminated": {"reason": "Completed"}}), "Completed"),
        ({"phase": "Pending", "initContainerStatuses": [{"state": {"running": {}}}]}, "Init:0/0"),
        ({"initContainerStatuses": [{"state": {"terminated": {"exitCode": 1}}}]}, "Init:ExitCode:1"),
        ({"initContainerStatuses": [{"state": {"waiting": {"reason": "ErrImagePull"}}}]}, "Init:ErrImagePull"),
        (
            {"phase": "Pending", "conditions": [{"type": "PodScheduled", "reason": "SchedulingGated"}]},
            "SchedulingGated",
        ),
    ],
)
def test_the_status_of_a_pod_in_a_word(status: Json, word: str) -> None:
    assert status_of(status)[2] == word


def test_a_pod_that_goes_is_terminating() -> None:
    assert status_of({"phase": "Running"}, deletionTimestamp="2026-01-02T03:04:05Z")[2] == "Terminating"
    lost = {"phase": "Running", "reason": "NodeLost"}
    assert status_of(lost, deletionTimestamp="2026-01-02T03:04:05Z")[2] == "Unknown"


def test_restarts_are_a_number_and_later_a_text_with_the_time_of_the_last() -> None:
    ended = {"terminated": {"finishedAt": "2026-01-02T02:59:05Z"}}
    status = container({"running": {}}, ready=True, restartCount=2, lastState=ended)
    assert status_of(status)[3] == "2 (5m ago)"
    obj = {"metadata": {}, "spec": {}, "status": status}
    assert pod_cells(obj, V1_19, NOW)[3] == 2


def test_ages_grow() -> None:
    api = Api()
    api.post(PODS, pod())
    assert rows(api, PODS)[0][4] == "0s"
    api.clock.advance(600)
    assert rows(api, PODS)[0][4] == "10m"


def test_nodes() -> None:
    api = Api()
    labels = {"node-role.kubernetes.io/worker": "", "node-role.kubernetes.io/a": "", "kubernetes.io/role": "old"}
    api.post(
        "/api/v1/nodes",
        {
            "metadata": {"name": "n", "labels": labels},
            "spec": {"unschedulable": True},
            "status": {
                "conditions": [{"type": "Ready", "status": "True"}],
                "addresses": [{"type": "InternalIP", "address": "10.1.1.1"}],
                "nodeInfo": {"kubeletVersion": "v1.36.0", "osImage": "linux"},
            },
        },
    )
    assert rows(api, "/api/v1/nodes") == [
        [
            *("n", "Ready,SchedulingDisabled", "a,old,worker", "0s", "v1.36.0"),
            *("10.1.1.1", "<none>", "linux", "<unknown>", "<unknown>"),
        ]
    ]


@pytest.mark.parametrize(
    ("spec", "cells"),
    [
        ({"type": "LoadBalancer", "ports": [{"port": 80, "nodePort": 30001}]}, ["<pending>", "80:30001/TCP"]),
        ({"ports": [{"name": "a", "port": 1}, {"name": "b", "port": 2}]}, ["<none>", "1/TCP,2/TCP"]),
        ({"type": "ExternalName", "externalName": "example.com"}, ["example.com", "<none>"]),
        ({"clusterIP": "None"}, ["<none>", "<none>"]),
    ],
)
def test_services(spec: Json, cells: list[str]) -> None:
    api = Api()
    path = "/api/v1/namespaces/default/services"
    code, status = api.post(path, {"metadata": {"name": "s"}, "spec": spec})
    assert code == 201, status
    assert next(row for row in rows(api, path) if row[0] == "s")[3:5] == cells


def test_workloads() -> None:
    api = Api()
    template = {"metadata": {"labels": {"a": "1"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    selector = {"matchLabels": {"a": "1"}, "matchExpressions": [{"key": "b", "operator": "DoesNotExist"}]}
    for plural in ("deployments", "daemonsets", "replicasets"):
        path = f"/apis/apps/v1/namespaces/default/{plural}"
        assert (
            api.post(path, {"metadata": {"name": "x"}, "spec": {"selector": selector, "template": template}})[0] == 201
        )
        assert rows(api, path)[0][-3:] == ["c", "i", "a=1,!b"]


def test_a_default_class_is_marked() -> None:
    api = Api()
    path = "/apis/storage.k8s.io/v1/storageclasses"
    annotations = {"storageclass.kubernetes.io/is-default-class": "true"}
    api.post(path, {"metadata": {"name": "a", "annotations": annotations}, "provisioner": "x"})
    assert rows(api, path)[0][0] == "a (default)"


def test_events_of_both_groups_have_the_same_rows() -> None:
    api = Api()
    core = "/api/v1/namespaces/default/events"
    about = {"kind": "Pod", "name": "p", "namespace": "default"}
    api.post(core, {"metadata": {"name": "e"}, "involvedObject": about, "reason": "R", "source": {"component": "s"}})
    found = rows(api, core)
    assert found == [["<unknown>", "", "R", "pod/p", "", "s", "", "<unknown>", 1, "e"]]
    assert rows(api, "/apis/events.k8s.io/v1/namespaces/default/events") == found


def test_a_kind_without_a_printer_shows_its_name_and_its_birth() -> None:
    api = Api()
    path = "/apis/storage.k8s.io/v1/volumeattachments"
    source = {"persistentVolumeName": "v"}
    api.post(path, {"metadata": {"name": "a"}, "spec": {"attacher": "x", "nodeName": "n", "source": source}})
    assert rows(api, path) == [["a", "2026-01-02T03:04:05Z"]]
