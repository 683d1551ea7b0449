from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest
from tests.unit.apiserver.in_process import JSON_PATCH, PODS, STRATEGIC, VERSIONS, Api, causes, pod

from ksp.apiserver.codec.api_types import find, types_of
from ksp.apiserver.patches import json_patch, merge_patch, strategic_merge

Json = dict[str, Any]


def strategic(original: Json, patch: Json, kind: str = "Pod") -> Json:
    struct = find("", "v1", kind, 36)
    assert struct is not None
    before = deepcopy((original, patch))
    out = strategic_merge.apply(original, patch, struct, types_of(36))
    assert (original, patch) == before
    return out


def containers(*names: str) -> list[Json]:
    return [{"name": name, "image": f"{name}:1"} for name in names]


# --- RFC 7386


@pytest.mark.parametrize(
    ("original", "patch", "result"),
    [
        ({"a": "b"}, {"a": "c"}, {"a": "c"}),
        ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
        ({"a": "b"}, {"a": None}, {}),
        ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
        ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
        ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
        ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
        ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
        ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
        ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
        ({"a": "foo"}, "bar", "bar"),
    ],
)
def test_merge_patches_of_the_rfc(original: Any, patch: Any, result: Any) -> None:
    assert merge_patch.apply(original, patch) == result


# --- RFC 6902


@pytest.mark.parametrize(
    ("original", "operation", "result"),
    [
        ({"a": 1}, {"op": "add", "path": "/b", "value": 2}, {"a": 1, "b": 2}),
        ({"a": [1, 3]}, {"op": "add", "path": "/a/1", "value": 2}, {"a": [1, 2, 3]}),
        ({"a": [1]}, {"op": "add", "path": "/a/-", "value": 2}, {"a": [1, 2]}),
        ({"a": 1}, {"op": "add", "path": "", "value": {"c": 3}}, {"c": 3}),
        ({"a": 1, "b": 2}, {"op": "remove", "path": "/b"}, {"a": 1}),
        ({"a": [1, 2]}, {"op": "remove", "path": "/a/0"}, {"a": [2]}),
        ({"a": 1}, {"op": "replace", "path": "/a", "value": None}, {"a": None}),
        ({"a": {"x": 1}, "b": {}}, {"op": "move", "from": "/a/x", "path": "/b/x"}, {"a": {}, "b": {"x": 1}}),
        ({"a": [1]}, {"op": "copy", "from": "/a", "path": "/b"}, {"a": [1], "b": [1]}),
        ({"a/b": {"m~n": 1}}, {"op": "test", "path": "/a~1b/m~0n", "value": 1}, {"a/b": {"m~n": 1}}),
        ({"a": 1}, {"op": "test", "path": "/b", "value": None}, {"a": 1}),
    ],
)
def test_operations(original: Any, operation: Json, result: Any) -> None:
    before = deepcopy(original)
    assert json_patch.apply(original, [operation]) == result
    assert original == before


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "add", "path": "/x/y", "value": 1},
        {"op": "add", "path": "/a/3", "value": 1},
        {"op": "add", "path": "b", "value": 1},
        {"op": "add", "path": "/b"},
        {"op": "remove", "path": "/b"},
        {"op": "remove", "path": "/a/-"},
        {"op": "replace", "path": "/b", "value": 1},
        {"op": "test", "path": "/a/0", "value": 2},
        {"op": "copy", "path": "/b"},
        {"op": "frobnicate", "path": "/a"},
    ],
)
def test_operations_that_do_not_fit_the_document(operation: Json) -> None:
    with pytest.raises(json_patch.PatchOperationError):
        json_patch.apply({"a": [1]}, [operation])


def test_a_copy_does_not_share_what_was_copied() -> None:
    operations: list[Json] = [{"op": "copy", "from": "/a", "path": "/b"}, {"op": "add", "path": "/b/-", "value": 2}]
    assert json_patch.apply({"a": [1]}, operations) == {"a": [1], "b": [1, 2]}


# --- strategic merge


def test_items_are_joined_by_their_key() -> None:
    original = {"spec": {"containers": containers("a", "b")}}
    patch = {"spec": {"containers": [{"name": "b", "image": "b:2"}]}}
    found = strategic(original, patch)["spec"]["containers"]
    assert found == [{"name": "a", "image": "a:1"}, {"name": "b", "image": "b:2"}]


def test_new_items_come_before_those_of_the_server() -> None:
    original = {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}
    patch = {"status": {"conditions": [{"type": "DiskPressure", "status": "False"}]}}
    found = strategic(original, patch, "Node")["status"]["conditions"]
    assert [each["type"] for each in found] == ["DiskPressure", "Ready"]


def test_items_that_the_given_order_does_not_name_stay_before_what_follows_them() -> None:
    original = {"spec": {"containers": containers("a", "b", "c")}}
    order = [{"name": "c"}, {"name": "new"}, {"name": "a"}]
    patch = {"spec": {"$setElementOrder/containers": order, "containers": containers("new")}}
    found = strategic(original, patch)["spec"]["containers"]
    assert [each["name"] for each in found] == ["b", "c", "new", "a"]


def test_an_order_alone_sorts() -> None:
    original = {"spec": {"containers": containers("a", "b")}}
    patch = {"spec": {"$setElementOrder/containers": [{"name": "b"}, {"name": "a"}]}}
    assert [each["name"] for each in strategic(original, patch)["spec"]["containers"]] == ["b", "a"]


def test_items_are_deleted_by_their_key() -> None:
    original = {"spec": {"containers": containers("a", "b")}}
    patch = {"spec": {"containers": [{"name": "a", "$patch": "delete"}]}}
    assert strategic(original, patch)["spec"]["containers"] == containers("b")


def test_a_list_is_replaced_on_demand() -> None:
    original = {"spec": {"containers": containers("a", "b")}}
    patch = {"spec": {"containers": [{"$patch": "replace"}, *containers("z")]}}
    assert strategic(original, patch)["spec"]["containers"] == containers("z")


def test_lists_without_a_strategy_are_replaced() -> None:
    original = {"spec": {"tolerations": [{"key": "a"}]}}
    patch = {"spec": {"tolerations": [{"key": "b"}]}}
    assert strategic(original, patch)["spec"]["tolerations"] == [{"key": "b"}]


def test_sets_of_texts_grow_and_shrink() -> None:
    original = {"metadata": {"finalizers": ["a", "b"]}}
    assert strategic(original, {"metadata": {"finalizers": ["c", "a"]}})["metadata"]["finalizers"] == ["c", "a", "b"]
    patch = {"metadata": {"$deleteFromPrimitiveList/finalizers": ["a"]}}
    assert strategic(original, patch)["metadata"]["finalizers"] == ["b"]


def test_objects_are_replaced_or_emptied_on_demand() -> None:
    original = {"metadata": {"labels": {"a": "1", "b": "2"}}}
    patch: Json = {"metadata": {"labels": {"$patch": "replace", "c": "3"}}}
    assert strategic(original, patch)["metadata"]["labels"] == {"c": "3"}
    patch = {"metadata": {"labels": {"$patch": "delete"}}}
    assert strategic(original, patch)["metadata"]["labels"] == {}


def test_keys_to_retain() -> None:
    original = {"spec": {"volumes": [{"name": "v", "emptyDir": {}}]}}
    patch = {"spec": {"volumes": [{"name": "v", "$retainKeys": ["name", "hostPath"], "hostPath": {"path": "/x"}}]}}
    assert strategic(original, patch)["spec"]["volumes"] == [{"name": "v", "hostPath": {"path": "/x"}}]


def test_nulls_in_what_is_new_say_nothing() -> None:
    patch = {"metadata": {"annotations": {"a": None, "b": "1"}}}
    assert strategic({"metadata": {}}, patch)["metadata"]["annotations"] == {"b": "1"}


def test_null_takes_a_list_out() -> None:
    assert strategic({"spec": {"taints": [{"key": "a"}]}}, {"spec": {"taints": None}}, "Node") == {"spec": {}}


@pytest.mark.parametrize(
    ("patch", "why"),
    [
        ({"spec": {"containers": [{"image": "i"}]}}, "map: map[image:i] does not contain declared merge key: name"),
        ({"spec": {"containers": [{"name": "a", "$patch": "x"}]}}, "unknown patch type: $patch x in list"),
        ({"spec": {"$patch": "x"}}, "unknown patch type: $patch x in map"),
        ({"spec": {"$retainKeys": ["a"], "nodeName": "n"}}, "invalid patch format of retainKeys"),
        ({"spec": {"$setElementOrder/containers": "x"}}, "invalid patch format of setElementOrder list"),
    ],
)
def test_directives_that_make_no_sense(patch: Json, why: str) -> None:
    with pytest.raises(strategic_merge.StrategicPatchError) as caught:
        strategic({"spec": {"containers": containers("a")}}, patch)
    assert str(caught.value) == why


# --- over the API


@pytest.mark.parametrize("version", VERSIONS)
def test_kubectl_apply_takes_out_what_the_manifest_no_longer_has(version: str) -> None:
    api = Api(version)
    service = {
        "metadata": {"name": "s", "labels": {"a": "1", "b": "1"}},
        "spec": {"ports": [{"name": "x", "port": 80}, {"name": "y", "port": 81}]},
    }
    api.post("/api/v1/namespaces/default/services", service)
    patch = {
        "metadata": {"labels": {"b": None}},
        "spec": {
            "$setElementOrder/ports": [{"port": 80}],
            "ports": [{"$patch": "delete", "port": 81}],
        },
    }
    code, found = api.patch("/api/v1/namespaces/default/services/s", patch, STRATEGIC)
    assert code == 200
    assert found["metadata"]["labels"] == {"a": "1"}
    assert [port["port"] for port in found["spec"]["ports"]] == [80]


@pytest.mark.parametrize(("version", "code"), [("1.19", 500), ("1.36", 400)])
def test_a_merge_patch_that_is_no_json(version: str, code: int) -> None:
    api = Api(version)
    api.post(PODS, pod())
    assert api.patch(f"{PODS}/p", "{")[0] == code


@pytest.mark.parametrize("version", VERSIONS)
def test_a_json_patch_is_refused_whole(version: str) -> None:
    api = Api(version)
    _, before = api.post(PODS, pod())
    operations: list[Json] = [
        {"op": "add", "path": "/metadata/labels", "value": {"a": "1"}},
        {"op": "test", "path": "/metadata/name", "value": "other"},
    ]
    code, status = api.patch(f"{PODS}/p", operations, JSON_PATCH)
    assert (code, status["reason"], status["details"]) == (422, "Invalid", {})
    assert api.get(f"{PODS}/p")[1] == before


def test_a_patch_of_too_many_operations() -> None:
    api = Api()
    api.post(PODS, pod())
    operations = [{"op": "test", "path": "/kind", "value": "Pod"}] * 10_001
    assert api.patch(f"{PODS}/p", operations, JSON_PATCH)[0] == 413


@pytest.mark.parametrize("version", VERSIONS)
def test_a_patch_that_leaves_nonsense_quotes_all_of_it(version: str) -> None:
    api = Api(version)
    api.post(PODS, pod())
    code, status = api.patch(f"{PODS}/p", {"spec": {"priority": "high"}})
    assert (code, status["details"].get("name")) == (422, None)
    assert causes(status)[0].startswith('patch: Invalid value: "{')
    assert '\\"priority\\":\\"high\\"' in status["message"]
