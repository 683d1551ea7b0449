from __future__ import annotations

import pytest

from ksp.apiserver.http.routing import Target, parse
from ksp.apiserver.resources import catalogue


def target(method: str, path: str) -> Target:
    return parse(method, path, catalogue("1.36"))


@pytest.mark.parametrize(
    ("method", "path", "expected"),
    [
        ("GET", "/api/v1/pods", ("list", "pods", "", "", "")),
        ("GET", "/api/v1/namespaces/w/pods", ("list", "pods", "w", "", "")),
        ("GET", "/api/v1/namespaces/w/pods/a", ("get", "pods", "w", "a", "")),
        ("POST", "/api/v1/namespaces/w/pods/a/binding", ("create", "pods", "w", "a", "binding")),
        ("DELETE", "/api/v1/namespaces/w/pods", ("deletecollection", "pods", "w", "", "")),
        ("PUT", "/api/v1/namespaces/w/finalize", ("update", "namespaces", "w", "w", "finalize")),
        ("GET", "/api/v1/namespaces/w", ("get", "namespaces", "w", "w", "")),
        ("PATCH", "/api/v1/nodes/n/status", ("patch", "nodes", "", "n", "status")),
        ("GET", "/apis/apps/v1/namespaces/w/replicasets/r", ("get", "replicasets", "w", "r", "")),
        ("GET", "/api/v1/pods?watch=true", ("watch", "pods", "", "", "")),
        ("GET", "/api/v1/pods?watch", ("watch", "pods", "", "", "")),
        ("GET", "/api/v1/pods?watch=0", ("list", "pods", "", "", "")),
        ("GET", "/api/v1/watch/namespaces/w/pods/a", ("watch", "pods", "w", "a", "")),
        ("GET", "/api/v1/namespaces/w/pods/a?watch=true", ("get", "pods", "w", "a", "")),
        ("GET", "/api/v1/nodes/", ("list", "nodes", "", "", "")),
        ("GET", "/api/v1/nodes/a%2Fb", ("get", "nodes", "", "a", "b")),
    ],
)
def test_what_a_path_means(method: str, path: str, expected: tuple[str, str, str, str, str]) -> None:
    found = target(method, path)
    assert (found.verb, found.plural, found.namespace, found.name, found.subresource) == expected


@pytest.mark.parametrize("path", ["/", "/healthz", "/api", "/api/v1", "/api/v1/", "/apis/apps/v1", "/metrics"])
def test_other_paths_are_no_resources(path: str) -> None:
    assert not target("GET", path).is_resource


@pytest.mark.parametrize(
    "path",
    [
        "/api/v1/nosuchthings",
        "/api/v1//nodes",
        "/api/v1/namespaces/w/nodes",
        "/api/v1/pods/a",
        "/api/v1/namespaces/w/pods/a/nosuch",
        "/api/v1/namespaces/w/pods/a/status/more",
        "/apis/apps/v9/replicasets",
    ],
)
def test_what_is_not_served(path: str) -> None:
    found = target("GET", path)
    assert found.is_resource
    assert found.resource is None


def test_the_first_value_of_a_parameter_counts() -> None:
    assert target("GET", "/api/v1/pods?limit=1&limit=2&x=").query == {"limit": "1", "x": ""}


@pytest.mark.parametrize("version", ["1.19", "1.36"])
def test_every_group_version_has_its_resources(version: str) -> None:
    found = catalogue(version)
    for group in found.documents["groups"]:
        for name in group["versions"]:
            assert f"{group['name']}/{name}" in found.documents["resources"]
    assert {"pods", "nodes", "leases.coordination.k8s.io", "events"} <= found.stored.keys()
    assert "events.events.k8s.io" not in found.stored
