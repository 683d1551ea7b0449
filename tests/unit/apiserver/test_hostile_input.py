"""What no sane client sends ends in a Status that says so, and in nothing worse."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from tests.unit.apiserver.in_process import JSON_PATCH, PODS, STRATEGIC, VERSIONS, Api, pod

from ksp.apiserver.dispatch import WARNINGS_LIMIT, warning_headers
from ksp.apiserver.http import bodies

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
ROLES = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
SERVICES = "/api/v1/namespaces/default/services"
REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
DIGITS = "9" * 5000
"""More than Python reads as a number."""

of_versions = pytest.mark.parametrize("version", VERSIONS)


def token(**fields: Any) -> str:
    return base64.urlsafe_b64encode(json.dumps({"v": "meta.k8s.io/v1", **fields}).encode()).decode().rstrip("=")


@of_versions
@pytest.mark.parametrize("text", [DIGITS, "99999999999999999999", "1e3", "\u0661"])
@pytest.mark.parametrize("name", ["limit", "timeoutSeconds"])
def test_numbers_of_a_query(version: str, name: str, text: str) -> None:
    code, status = Api(version).get(f"{CONFIG_MAPS}?{name}={text}")
    assert (code, status["reason"]) == (400, "BadRequest")
    assert "strconv.ParseInt" in status["message"]


@of_versions
@pytest.mark.parametrize("path", [f"{CONFIG_MAPS}?resourceVersion=", f"{CONFIG_MAPS}/x?resourceVersion="])
def test_resource_versions_that_no_64_bits_hold(version: str, path: str) -> None:
    for text in (DIGITS, str(1 << 64)):
        _, status = Api(version).get(path + text)
        assert "value out of range" in status["message"]


@of_versions
@pytest.mark.parametrize(
    "text",
    [
        token(rv="abc"),
        token(rv=[]),
        token(rv=10**30),
        token(rv=1, start=5),
        base64.urlsafe_b64encode(b"[" * 50_000).decode(),
        base64.urlsafe_b64encode(b"\xff\xfe").decode(),
    ],
)
def test_continue_tokens(version: str, text: str) -> None:
    code, status = Api(version).get(f"{CONFIG_MAPS}?continue={text}")
    assert (code, status["reason"]) == (400, "BadRequest")
    assert status["message"].startswith("invalid continue token")


@of_versions
@pytest.mark.parametrize("selector", [f"x>{DIGITS}", "x>abc", "x<1e5", "x>"])
def test_bounds_of_label_selectors_are_numbers(version: str, selector: str) -> None:
    code, status = Api(version).get(f"{CONFIG_MAPS}?labelSelector={selector}")
    assert (code, status["reason"]) == (400, "BadRequest")


@of_versions
@pytest.mark.parametrize("content_type", ["application/json", "application/yaml"])
@pytest.mark.parametrize("depth", [bodies.DEEPEST + 1, 300])
def test_deep_bodies(version: str, content_type: str, depth: int) -> None:
    api = Api(version)
    for body in ("[" * depth + "]" * depth, '{"data":' + "[" * depth + "]" * depth + "}"):
        for path in (CONFIG_MAPS, ROLES):
            code, status = api.ask("POST", path, body, {"Content-Type": content_type})
            assert (code, status["reason"]) == (400, "BadRequest")
            assert "exceeded max depth" in status["message"]


@of_versions
def test_a_body_as_deep_as_allowed(version: str) -> None:
    depth = bodies.DEEPEST - 2
    body = '{"metadata":{"name":"a"},"x":' + "[" * depth + "]" * depth + "}"
    assert Api(version).post(ROLES, body)[0] == 201


@of_versions
def test_a_patch_that_digs_deep(version: str) -> None:
    api = Api(version)
    assert api.post(ROLES, {"metadata": {"name": "a"}})[0] == 201
    digging = [{"op": "add", "path": "/x" * depth, "value": {}} for depth in range(1, 1200)]
    code, status = api.patch(f"{ROLES}/a", digging, JSON_PATCH)
    assert code == 400
    assert "exceeded max depth" in status["message"]
    code, status = api.patch(f"{ROLES}/a", [*digging, {"op": "copy", "from": "/x", "path": "/y"}], JSON_PATCH)
    assert (code, status["reason"]) == (422, "Invalid")


@of_versions
def test_a_patch_that_copies_its_copies(version: str) -> None:
    api = Api(version)
    assert api.post(ROLES, {"metadata": {"name": "a"}})[0] == 201
    doubling = [{"op": "copy", "from": "", "path": f"/x{number}"} for number in range(40)]
    code, status = api.patch(f"{ROLES}/a", doubling, JSON_PATCH)
    assert (code, status["reason"]) == (422, "Invalid")


@of_versions
@pytest.mark.parametrize("index", [DIGITS, "-1", "²"])
def test_an_index_of_a_json_patch(version: str, index: str) -> None:
    api = Api(version)
    assert api.post(PODS, pod())[0] == 201
    change = [{"op": "add", "path": f"/spec/containers/{index}", "value": {}}]
    assert api.patch(f"{PODS}/p", change, JSON_PATCH)[0] == 422


@of_versions
@pytest.mark.parametrize(
    "change",
    [
        {"metadata": {"$setElementOrder/finalizers": ["a"], "finalizers": 5}},
        {"metadata": {"$setElementOrder/finalizers": ["a"], "finalizers": {}}},
        {"spec": {"$setElementOrder/containers": [{"name": []}], "containers": 5}},
        {"$setElementOrder/metadata": [1], "metadata": {}},
        {"spec": {"$retainKeys": [[]], "containers": []}},
    ],
)
def test_directives_of_other_types(version: str, change: dict[str, Any]) -> None:
    api = Api(version)
    assert api.post(PODS, pod())[0] == 201
    code, status = api.patch(f"{PODS}/p", change, STRATEGIC)
    assert (code, status["reason"]) == (400, "BadRequest")


@of_versions
@pytest.mark.parametrize(
    "body",
    [
        "metadata: {name: a, labels: {1: 2, b: c}}",
        "data: !!timestamp 2001-01-01",
        "data: !!int x",
        '"\\uD800": 1\nmetadata: {name: "\\uD800"}',
        "metadata: {name: a}\ndata: {a: 99999999999999999999999999}",
        "? [a]\n: b",
        "&a [*a]",
    ],
)
def test_yaml_that_is_no_json(version: str, body: str) -> None:
    code, status = Api(version).ask("POST", CONFIG_MAPS, body, {"Content-Type": "application/yaml"})
    assert code in {400, 422}, status
    assert status["status"] == "Failure"


def test_long_yaml_is_not_read() -> None:
    body = "a: b\n" * (bodies.YAML_LIMIT // 5 + 1)
    code, status = Api().ask("POST", CONFIG_MAPS, body, {"Content-Type": "application/yaml"})
    assert (code, status["reason"]) == (413, "RequestEntityTooLarge")


def test_protobuf_is_refused_with_a_way_out() -> None:
    code, status = Api().ask("POST", CONFIG_MAPS, "k8s\0", {"Content-Type": "application/vnd.kubernetes.protobuf"})
    assert (code, status["reason"]) == (415, "UnsupportedMediaType")
    assert "kubectl create -f" in status["message"]


@of_versions
@pytest.mark.parametrize(
    "options",
    [
        {"gracePeriodSeconds": "x"},
        {"gracePeriodSeconds": 10**30},
        {"preconditions": 5},
        {"dryRun": 5},
        {"dryRun": [5]},
        {"propagationPolicy": []},
        {"orphanDependents": "x"},
    ],
)
def test_options_of_a_delete(version: str, options: dict[str, Any]) -> None:
    api = Api(version)
    assert api.post(PODS, pod())[0] == 201
    for path in (f"{PODS}/p", PODS):
        code, status = api.delete(path, options)
        assert (code, status["reason"]) == (400, "BadRequest")


@of_versions
@pytest.mark.parametrize("seconds", [10**18, -(10**18)])
def test_a_grace_beyond_the_calendar(version: str, seconds: int) -> None:
    api = Api(version)
    api.server.load([{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}])
    assert api.post(PODS, pod(nodeName="n"))[0] == 201
    assert api.delete(f"{PODS}/p", {"gracePeriodSeconds": seconds})[0] == 200


@of_versions
@pytest.mark.parametrize(
    "spec",
    [
        5,
        {"user": "x", "groups": 5, "resourceAttributes": {}},
        {"user": "system:kube-scheduler", "resourceAttributes": {"verb": [], "resource": "pods"}},
        {"user": "x", "nonResourceAttributes": [1]},
    ],
)
def test_reviews(version: str, spec: Any) -> None:
    code, status = Api(version).post(REVIEWS, {"spec": spec})
    assert (code, status["reason"]) == (400, "BadRequest")


@of_versions
def test_a_service_of_node_ports_without_ports(version: str) -> None:
    code, status = Api(version).post(SERVICES, {"metadata": {"name": "s"}, "spec": {"type": "NodePort"}})
    assert (code, status["details"]["causes"][0]["field"]) == (422, "spec.ports")


def test_more_node_ports_than_there_are() -> None:
    ports = [{"name": f"p{number}", "port": number} for number in range(1, 3000)]
    code, status = Api().post(SERVICES, {"metadata": {"name": "s"}, "spec": {"type": "NodePort", "ports": ports}})
    assert code == 422
    assert "range is full" in status["message"]


@of_versions
def test_quantities_of_any_length(version: str) -> None:
    api = Api(version)
    for amount in (DIGITS, f"0.{DIGITS}", f"1e{DIGITS}"):
        wanted = pod(containers=[{"name": "c", "image": "i", "resources": {"requests": {"cpu": amount}}}])
        assert api.post(PODS, wanted)[0] == 400


@of_versions
@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "FOO"])
def test_paths_of_old_watches_take_get_alone(version: str, method: str) -> None:
    code, status = Api(version).ask(method, "/api/v1/watch/namespaces", "{}", {"Content-Type": "application/json"})
    assert (code, status["reason"]) == (405, "MethodNotAllowed")


@pytest.mark.parametrize("path", ["?", "?a=b", "//", "/api/v1/namespaces//pods", "/apis/../../.."])
def test_odd_paths(path: str) -> None:
    answer = Api().answer("GET", path)
    assert answer.code in {200, 404}


def test_warnings_fit_into_headers() -> None:
    api = Api()
    names = {"a\r\nSet-Cookie: b": 1, "c\0": 2, "d": 3} | {f"x{number}": 0 for number in range(2000)}
    assert api.post(CONFIG_MAPS, {"metadata": {"name": "a"}, **names})[0] == 201
    found = [text for _, text in warning_headers(api.warnings)]
    assert found[0] == '299 - "unknown field \\"d\\""'
    assert all(text.isprintable() for text in found)
    assert sum(map(len, found)) < 2 * WARNINGS_LIMIT


def test_many_doubled_fields_are_found_in_time() -> None:
    """By a count, and not by a search for each: that would take minutes here."""
    doubled = ",".join(f'"x{number}":0,"x{number}":1' for number in range(50_000))
    code, status = Api().post(f"{CONFIG_MAPS}?fieldValidation=Strict", f"{{{doubled}}}")
    assert code == 400
    assert status["message"].count("duplicate field") == 50_000


def test_long_lists_are_merged_in_time() -> None:
    """By looking keys up, and not by searching for each: that would take minutes here."""
    api, count = Api(), 20_000
    assert api.post(CONFIG_MAPS, {"metadata": {"name": "a", "finalizers": [f"x/{n}" for n in range(count)]}})[0] == 201
    added = [f"y/{n}" for n in range(count)]
    code, changed = api.patch(f"{CONFIG_MAPS}/a", {"metadata": {"finalizers": added}}, STRATEGIC)
    assert (code, len(changed["metadata"]["finalizers"])) == (200, 2 * count)
