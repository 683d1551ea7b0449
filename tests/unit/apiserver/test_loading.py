"""Objects from files are taken as they are."""

from __future__ import annotations

from typing import Any

import pytest

from ksp.apiserver import ApiServer
from ksp.apiserver.status import ApiStatusError

NODE = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "n", "uid": "u-1", "resourceVersion": "77", "creationTimestamp": "2020-01-01T00:00:00Z"},
    "status": {"capacity": {"cpu": "4"}, "conditions": [{"type": "Ready", "status": "True"}]},
}
POD: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "p", "namespace": "elsewhere", "managedFields": [{}]},
    "spec": {"nodeName": "n", "containers": [{"name": "c", "image": "i"}]},
    "status": {"phase": "Running"},
}
VERSIONS = pytest.mark.parametrize("version", ["1.19", "1.36"])


@VERSIONS
def test_a_node_keeps_its_status_and_gets_no_taint(version: str) -> None:
    server = ApiServer(version)
    assert server.load([NODE]) == 1
    node = server.state.store.get("nodes", "", "n")
    assert node is not None
    assert node["status"]["capacity"] == {"cpu": "4"}
    assert "taints" not in node.get("spec", {})
    assert node["metadata"]["uid"] == "u-1"
    assert node["metadata"]["creationTimestamp"] == "2020-01-01T00:00:00Z"
    assert node["metadata"]["resourceVersion"] == str(server.state.store.revision)


@VERSIONS
def test_a_pod_keeps_its_status_and_gets_its_namespace(version: str) -> None:
    server = ApiServer(version)
    server.load([POD])
    pod = server.state.store.get("pods", "elsewhere", "p")
    assert pod is not None
    assert pod["status"]["phase"] == "Running"
    assert pod["spec"]["schedulerName"] == "default-scheduler"
    assert "managedFields" not in pod["metadata"]
    assert server.state.store.get("namespaces", "", "elsewhere") is not None


def test_an_empty_namespace_is_the_default_one() -> None:
    server = ApiServer()
    server.load([{**POD, "metadata": {"name": "p", "namespace": ""}}])
    assert server.state.store.get("pods", "default", "p") is not None


def _priority_class(name: str, value: int, **more: str | bool) -> dict[str, Any]:
    kind = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass"}
    return {**kind, "metadata": {"name": name}, "value": value, **more}


def _spec_of(server: ApiServer, storage_id: str, namespace: str, name: str) -> dict[str, object]:
    found = server.state.store.get(storage_id, namespace, name)
    assert found is not None
    spec: dict[str, object] = found["spec"]
    return spec


@VERSIONS
def test_a_pod_has_the_priority_of_its_class_wherever_that_stands(version: str) -> None:
    server = ApiServer(version)
    spec = {**POD["spec"], "priorityClassName": "low"}
    server.load(
        [
            {**POD, "spec": spec},
            {**POD, "metadata": {"name": "given"}, "spec": {**spec, "priority": 7}},
            {**POD, "metadata": {"name": "plain"}},
            _priority_class("low", 10, preemptionPolicy="Never"),
            _priority_class("usual", 100, globalDefault=True),
        ]
    )
    pod = _spec_of(server, "pods", "elsewhere", "p")
    assert (pod["priority"], pod["preemptionPolicy"]) == (10, "Never")
    assert _spec_of(server, "pods", "default", "given")["priority"] == 7
    plain = _spec_of(server, "pods", "default", "plain")
    assert (plain["priority"], plain["priorityClassName"]) == (100, "usual")


@VERSIONS
def test_an_open_claim_without_a_class_is_of_the_default_one(version: str) -> None:
    server = ApiServer(version)
    claim: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "open"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }
    default: dict[str, Any] = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": "cloud", "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}},
        "provisioner": "disk.example.com",
    }
    bound = {**claim, "metadata": {"name": "bound"}, "spec": {**claim["spec"], "volumeName": "v"}}
    server.load([claim, bound, default, {**default, "metadata": {**default["metadata"], "name": "boxes"}}])
    assert _spec_of(server, "persistentvolumeclaims", "default", "open")["storageClassName"] in ("cloud", "boxes")
    assert "storageClassName" not in _spec_of(server, "persistentvolumeclaims", "default", "bound")


def test_what_belongs_to_no_namespace_has_none() -> None:
    server = ApiServer()
    server.load([{**NODE, "metadata": {"name": "n", "namespace": "x"}}])
    assert server.state.store.get("nodes", "", "n") is not None


def test_what_was_given_is_not_changed() -> None:
    ApiServer().load([POD])
    assert "uid" not in POD["metadata"]


@pytest.mark.parametrize(
    ("obj", "message"),
    [
        ({"apiVersion": "v9", "kind": "Pod", "metadata": {"name": "p"}}, 'no kind "Pod" in version "v9" is served'),
        ({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": 1}}, "containers"),
        ({"apiVersion": "v1", "kind": "Node"}, "metadata is missing"),
        ({"apiVersion": "v1", "kind": "Node", "metadata": [1]}, "metadata is missing"),
        ({"apiVersion": "v1", "kind": "Pod", "metadata": {"namespace": [1]}}, "metadata.namespace"),
        ({"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "p"}}, "a Binding is not kept"),
        ({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}, "x": object()}, "not an object of the API"),
        ({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "P"}, "spec": {"containers": []}}, "metadata.name"),
    ],
)
def test_what_is_not_valid_is_refused(obj: dict[str, object], message: str) -> None:
    with pytest.raises(ApiStatusError) as error:
        ApiServer().load([obj])
    assert message in str(error.value)
