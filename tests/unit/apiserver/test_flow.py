"""What create, update, patch and delete do with every kind."""

from __future__ import annotations

import pytest
from tests.unit.apiserver.in_process import MERGE, PODS, VERSIONS, Api, Json, causes, pod

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
REPLICA_SETS = "/apis/apps/v1/namespaces/default/replicasets"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
BOTH = pytest.mark.parametrize("version", VERSIONS)


def config_map(name: str = "a", **more: object) -> Json:
    return {"metadata": {"name": name}, **more}


def made(api: Api, path: str, obj: Json) -> Json:
    code, body = api.post(path, obj)
    assert code == 201, body
    return body


# --- create


@BOTH
def test_the_server_gives_uid_time_and_version(version: str) -> None:
    api = Api(version)
    given = config_map()
    given["metadata"] |= {"uid": "mine", "creationTimestamp": "2001-01-01T00:00:00Z", "selfLink": "/x"}
    meta = made(api, CONFIG_MAPS, given)["metadata"]
    assert meta["uid"] != "mine"
    assert meta["creationTimestamp"] == "2026-01-02T03:04:05Z"
    assert meta["resourceVersion"] == str(api.server.state.store.revision)
    assert meta.get("selfLink") in {None, f"{CONFIG_MAPS}/a"}


@BOTH
def test_generated_names_differ(version: str) -> None:
    api = Api(version)
    names = {made(api, CONFIG_MAPS, {"metadata": {"generateName": "g-"}})["metadata"]["name"] for _ in range(20)}
    assert len(names) == 20
    assert all(name.startswith("g-") and len(name) == 7 for name in names)


@pytest.mark.parametrize(
    ("obj", "code", "message"),
    [
        ({"metadata": {"name": "a", "resourceVersion": "5"}}, 500, "should not be set on objects to be created"),
        ({"metadata": {"name": "a", "namespace": "other"}}, 400, "does not match the namespace sent on the request"),
        ({"metadata": {}}, 422, "name or generateName is required"),
        ({"kind": "Pod", "metadata": {"name": "a"}}, 400, "unknown conversion"),
        ({"kind": "Nonsense", "metadata": {"name": "a"}}, 400, 'no kind "Nonsense" is registered'),
        ({"metadata": "a"}, 400, "cannot unmarshal string"),
        ('{"metadata":', 400, "unexpected end of JSON input"),
        ("[1]", 400, "cannot unmarshal array"),
        ("", 400, "<empty>"),
        ("[" * 100_000, 400, "json parse error"),
    ],
)
def test_what_cannot_be_created(obj: Json | str, code: int, message: str) -> None:
    found, status = Api().post(CONFIG_MAPS, obj)
    assert found == code
    assert message in status["message"]


@BOTH
def test_a_name_is_taken_once(version: str) -> None:
    api = Api(version)
    made(api, CONFIG_MAPS, config_map())
    code, status = api.post(CONFIG_MAPS, config_map())
    assert (code, status["reason"]) == (409, "AlreadyExists")


@BOTH
def test_a_dry_create_leaves_nothing(version: str) -> None:
    api = Api(version)
    code, body = api.post(f"{CONFIG_MAPS}?dryRun=All", config_map())
    assert code == 201
    assert "resourceVersion" not in body["metadata"]
    assert api.get(f"{CONFIG_MAPS}/a")[0] == 404
    assert api.post(f"{CONFIG_MAPS}?dryRun=Some", config_map())[0] == 422


def test_unknown_fields_warn_or_are_refused() -> None:
    api = Api("1.36")
    made(api, CONFIG_MAPS, config_map(nosuch=1))
    assert api.warnings == ['unknown field "nosuch"']
    code, status = api.post(f"{CONFIG_MAPS}?fieldValidation=Strict", config_map("b", nosuch=1))
    assert (code, status["message"].rpartition(": ")[2]) == (400, 'unknown field "nosuch"')
    twice = '{"metadata": {"name": "c"}, "data": {}, "data": {}}'
    assert 'duplicate field "data"' in api.post(f"{CONFIG_MAPS}?fieldValidation=Strict", twice)[1]["message"]
    made(api, f"{CONFIG_MAPS}?fieldValidation=Ignore", config_map("d", nosuch=1))
    assert api.warnings == []


@pytest.mark.parametrize(
    ("content_type", "body", "code"),
    [
        ("application/yaml", "metadata: {name: a}\ndata: {since: 2020-01-01}\n", 201),
        ("application/yaml", "a: [1", 400),
        ("application/yaml", "a: &x {b: 1}\nmetadata: {name: a}\ndata: *x\n", 400),
        ("text/html", "{}", 415),
    ],
)
def test_forms_of_bodies(content_type: str, body: str, code: int) -> None:
    found, status = Api().ask("POST", CONFIG_MAPS, body, {"Content-Type": content_type})
    assert found == code, status
    if code == 201:
        assert status["data"] == {"since": "2020-01-01"}


# --- update


@BOTH
def test_a_stale_update_is_a_conflict(version: str) -> None:
    api = Api(version)
    first = made(api, CONFIG_MAPS, config_map())
    assert api.put(f"{CONFIG_MAPS}/a", {**first, "data": {"k": "1"}})[0] == 200
    code, status = api.put(f"{CONFIG_MAPS}/a", {**first, "data": {"k": "2"}})
    assert (code, status["reason"]) == (409, "Conflict")
    del first["metadata"]["resourceVersion"]
    assert api.put(f"{CONFIG_MAPS}/a", {**first, "data": {"k": "2"}})[0] == 200


@BOTH
def test_an_update_that_changes_nothing_takes_no_version(version: str) -> None:
    api = Api(version)
    first = made(api, CONFIG_MAPS, config_map(data={"k": "1"}))
    before = api.server.state.store.revision
    code, body = api.put(f"{CONFIG_MAPS}/a", first)
    assert (code, body) == (200, first)
    assert api.server.state.store.revision == before


@pytest.mark.parametrize(
    ("change", "code"),
    [({"uid": "another"}, 409), ({"name": "b"}, 400), ({"namespace": "b"}, 400), ({"resourceVersion": "x"}, 500)],
)
def test_updates_that_are_refused(change: Json, code: int) -> None:
    api = Api()
    first = made(api, CONFIG_MAPS, config_map())
    assert api.put(f"{CONFIG_MAPS}/a", {**first, "metadata": {**first["metadata"], **change}})[0] == code


@BOTH
def test_what_a_client_cannot_change(version: str) -> None:
    api = Api(version)
    first = made(api, CONFIG_MAPS, config_map())
    changed = {**first["metadata"], "creationTimestamp": "2001-01-01T00:00:00Z", "deletionTimestamp": "x"}
    del changed["deletionTimestamp"]
    code, body = api.put(f"{CONFIG_MAPS}/a", {**first, "metadata": {**changed, "labels": {"a": "1"}}})
    assert code == 200
    assert body["metadata"]["creationTimestamp"] == first["metadata"]["creationTimestamp"]
    assert body["metadata"]["labels"] == {"a": "1"}


@BOTH
def test_some_kinds_are_made_by_an_update(version: str) -> None:
    api = Api(version)
    assert api.put(f"{LEASES}/l", {"metadata": {"name": "l"}, "spec": {}})[0] == 201
    assert api.put(f"{CONFIG_MAPS}/a", config_map())[0] == 404


@pytest.mark.parametrize(("version", "code"), [("1.19", 409), ("1.36", 404)])
def test_an_update_of_what_is_gone(version: str, code: int) -> None:
    api = Api(version)
    first = made(api, CONFIG_MAPS, config_map())
    api.delete(f"{CONFIG_MAPS}/a")
    assert api.put(f"{CONFIG_MAPS}/a", first)[0] == code


@BOTH
def test_a_pod_can_be_replaced_by_its_manifest(version: str) -> None:
    api = Api(version)
    made(api, PODS, pod())
    manifest = pod()
    manifest["metadata"]["labels"] = {"a": "b"}
    code, body = api.put(f"{PODS}/p", manifest)
    assert code == 200, body
    assert body["metadata"]["labels"] == {"a": "b"}


# --- patch


def test_a_patch_cannot_change_the_uid_or_the_name() -> None:
    api = Api()
    made(api, CONFIG_MAPS, config_map())
    code, status = api.patch(f"{CONFIG_MAPS}/a", {"metadata": {"uid": "x"}})
    assert (code, causes(status)[0]) == (422, 'metadata.uid: Invalid value: "x": field is immutable')
    assert api.patch(f"{CONFIG_MAPS}/a", {"metadata": {"name": "x"}})[0] == 400
    assert api.patch(f"{CONFIG_MAPS}/none", {})[0] == 404


def test_a_patch_that_names_an_old_version_is_a_conflict() -> None:
    api = Api()
    first = made(api, CONFIG_MAPS, config_map())
    version = first["metadata"]["resourceVersion"]
    assert api.patch(f"{CONFIG_MAPS}/a", {"metadata": {"resourceVersion": version}, "data": {"k": "1"}})[0] == 200
    assert api.patch(f"{CONFIG_MAPS}/a", {"metadata": {"resourceVersion": version}, "data": {"k": "2"}})[0] == 409


@pytest.mark.parametrize("content_type", ["application/json", "application/apply-patch+yaml", ""])
def test_other_kinds_of_patches_are_not_taken(content_type: str) -> None:
    api = Api()
    made(api, CONFIG_MAPS, config_map())
    assert api.patch(f"{CONFIG_MAPS}/a", {}, content_type)[0] == 415


# --- delete


@BOTH
def test_what_is_deleted_is_gone(version: str) -> None:
    api = Api(version)
    uid = made(api, CONFIG_MAPS, config_map())["metadata"]["uid"]
    code, status = api.delete(f"{CONFIG_MAPS}/a")
    assert code == 200
    assert status["details"] == {"name": "a", "kind": "configmaps", "uid": uid}
    assert api.delete(f"{CONFIG_MAPS}/a")[0] == 404


@pytest.mark.parametrize("precondition", [{"uid": "x"}, {"resourceVersion": "1"}])
def test_preconditions(precondition: dict[str, str]) -> None:
    api = Api()
    made(api, CONFIG_MAPS, config_map())
    code, status = api.delete(f"{CONFIG_MAPS}/a", {"preconditions": precondition})
    assert (code, status["reason"]) == (409, "Conflict")
    assert api.get(f"{CONFIG_MAPS}/a")[0] == 200


@BOTH
def test_finalizers_hold_an_object(version: str) -> None:
    api = Api(version)
    obj = config_map()
    obj["metadata"]["finalizers"] = ["example.com/f"]
    made(api, CONFIG_MAPS, obj)
    code, body = api.delete(f"{CONFIG_MAPS}/a")
    assert code == 200
    assert body["metadata"]["deletionTimestamp"] == "2026-01-02T03:04:05Z"
    assert api.post(CONFIG_MAPS, config_map())[1]["message"].startswith("object is being deleted")
    assert api.patch(f"{CONFIG_MAPS}/a", {"metadata": {"finalizers": None}}, MERGE)[0] == 200
    assert api.get(f"{CONFIG_MAPS}/a")[0] == 404


@pytest.mark.parametrize(
    ("policy", "finalizers"),
    [("Foreground", ["foregroundDeletion"]), ("Orphan", ["orphan"]), ("Background", None), (None, None)],
)
def test_propagation(policy: str | None, finalizers: list[str] | None) -> None:
    api = Api()
    template = {"metadata": {"labels": {"a": "b"}}, "spec": pod()["spec"]}
    spec = {"selector": {"matchLabels": {"a": "b"}}, "template": template}
    made(api, REPLICA_SETS, {"metadata": {"name": "r"}, "spec": spec})
    api.delete(f"{REPLICA_SETS}/r", {"propagationPolicy": policy} if policy else None)
    code, body = api.get(f"{REPLICA_SETS}/r")
    assert code == (200 if finalizers else 404)
    if finalizers:
        assert body["metadata"]["finalizers"] == finalizers


@pytest.mark.parametrize(
    ("query", "code"),
    [("propagationPolicy=Some", 422), ("gracePeriodSeconds=x", 400), ("dryRun=Some", 422), ("dryRun=All", 200)],
)
def test_options_of_deletes(query: str, code: int) -> None:
    api = Api()
    made(api, CONFIG_MAPS, config_map())
    assert api.delete(f"{CONFIG_MAPS}/a?{query}")[0] == code
    assert api.get(f"{CONFIG_MAPS}/a")[0] == 200


@BOTH
def test_a_collection_is_deleted_by_its_selector(version: str) -> None:
    api = Api(version)
    for name, label in (("a", "x"), ("b", "y"), ("c", "x")):
        obj = config_map(name)
        obj["metadata"]["labels"] = {"l": label}
        made(api, CONFIG_MAPS, obj)
    code, body = api.delete(f"{CONFIG_MAPS}?labelSelector=l%3Dx")
    assert code == 200
    assert [item["metadata"]["name"] for item in body["items"]] == ["a", "c"]
    assert [item["metadata"]["name"] for item in api.get(CONFIG_MAPS)[1]["items"]] == ["b"]


# --- paths


@pytest.mark.parametrize(
    ("method", "path", "code"),
    [
        ("PUT", CONFIG_MAPS, 405),
        ("PATCH", CONFIG_MAPS, 405),
        ("POST", f"{CONFIG_MAPS}/a", 405),
        ("DELETE", "/api/v1/configmaps", 405),
        ("POST", "/api/v1/configmaps", 405),
        ("GET", f"{PODS}/p/binding", 405),
        ("HEAD", CONFIG_MAPS, 405),
        ("OPTIONS", CONFIG_MAPS, 405),
        ("DELETE", "/api/v1/namespaces", 405),
        ("POST", "/version", 405),
        ("GET", "/api/v1/nosuch", 404),
        ("GET", "/apis/apps/v9/x", 404),
        ("GET", f"{PODS}/p/log", 501),
    ],
)
def test_methods_and_paths_that_are_not_served(method: str, path: str, code: int) -> None:
    assert Api().ask(method, path, None, {})[0] == code


# --- reviews


def test_access_reviews() -> None:
    api = Api()
    path = "/apis/authorization.k8s.io/v1/subjectaccessreviews"

    def allowed(user: str, verb: str, resource: str) -> bool:
        spec = {"user": user, "resourceAttributes": {"verb": verb, "resource": resource}}
        code, body = api.post(path, {"spec": spec})
        assert code == 201
        return bool(body["status"]["allowed"])

    assert allowed("system:kube-scheduler", "list", "pods")
    assert not allowed("system:kube-scheduler", "list", "secrets")
    assert not allowed("nobody", "list", "pods")
    assert api.post(path, {"spec": {"user": "x"}})[0] == 422
    mine = api.post(
        "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
        {"spec": {"resourceAttributes": {"verb": "create", "resource": "pods"}}},
    )
    assert mine[1]["status"] == {"allowed": True}


def test_token_reviews() -> None:
    api = Api()
    path = "/apis/authentication.k8s.io/v1/tokenreviews"
    assert api.post(path, {"spec": {"token": "x"}})[1]["status"] == {"user": {}, "error": "invalid bearer token"}
    assert api.post(path, {"spec": {}})[0] == 400
