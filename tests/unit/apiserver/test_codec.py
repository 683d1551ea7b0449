from __future__ import annotations

import json
from typing import Any

import pytest

from ksp.apiserver.codec.api_types import find, types_of
from ksp.apiserver.codec.decoder import FieldError, decode
from ksp.apiserver.codec.json_places import place_of

OLD, NEW = 19, 36


def read(obj: dict[str, Any], minor: int = NEW, kind: str = "Pod", group: str = "") -> dict[str, Any]:
    struct = find(group, "v1", kind, minor)
    assert struct is not None
    return decode(obj, struct, minor)[0]


def refusal(obj: dict[str, Any], minor: int = NEW, kind: str = "Pod", group: str = "") -> FieldError:
    with pytest.raises(FieldError) as caught:
        read(obj, minor, kind, group)
    return caught.value


def container(**fields: Any) -> dict[str, Any]:
    return {"spec": {"containers": [{"name": "c", **fields}]}}


@pytest.mark.parametrize(
    ("minor", "template"),
    [(OLD, {"creationTimestamp": None}), (NEW, {})],
)
def test_structs_that_are_no_pointers_are_always_there(minor: int, template: dict[str, Any]) -> None:
    found = read({"spec": {}}, minor, "ReplicaSet", "apps")
    assert found["status"] == {"replicas": 0}
    assert found["spec"]["template"] == {"metadata": template, "spec": {"containers": None}}


def test_a_zero_stays_where_go_has_a_pointer_and_goes_where_it_has_a_value() -> None:
    spec = {"hostNetwork": False, "nodeName": "", "priority": 0, "enableServiceLinks": False, "tolerations": []}
    found = read({"spec": {"containers": [], **spec}})["spec"]
    assert found == {"containers": [], "priority": 0, "enableServiceLinks": False}


def test_an_empty_object_behind_a_pointer_stays() -> None:
    found = read({"spec": {"containers": [], "affinity": {"podAffinity": {}}, "securityContext": {}}})["spec"]
    assert found["affinity"] == {"podAffinity": {}}
    assert found["securityContext"] == {}


def test_fields_of_a_later_version_are_unknown() -> None:
    obj = {"spec": {"containers": [], "schedulingGates": [{"name": "a"}]}}
    assert read(obj, NEW)["spec"]["schedulingGates"] == [{"name": "a"}]
    assert "schedulingGates" not in read(obj, OLD)["spec"]


def test_unknown_fields_are_told_with_their_paths() -> None:
    struct = find("", "v1", "Pod", NEW)
    assert struct is not None
    obj = {"spec": {"containers": [{"name": "c", "imag": "i"}]}, "Kind": "x"}
    _, unknown = decode(obj, struct, NEW)
    assert unknown == ['unknown field "Kind"', 'unknown field "spec.containers[0].imag"']


def test_quantities_and_times_become_canonical() -> None:
    obj = container(resources={"limits": {"memory": "1024Mi", "cpu": 0.5}})
    assert read(obj)["spec"]["containers"][0]["resources"] == {"limits": {"cpu": "500m", "memory": "1Gi"}}
    lease = {"spec": {"renewTime": "2020-01-02T03:04:05.123456+02:00"}}
    assert read(lease, NEW, "Lease", "coordination.k8s.io")["spec"] == {"renewTime": "2020-01-02T01:04:05.123456Z"}


@pytest.mark.parametrize(
    ("obj", "message"),
    [
        ({"spec": []}, "json: cannot unmarshal array into Go struct field Pod.spec of type v1.PodSpec"),
        (
            {"spec": {"containers": {}}},
            "json: cannot unmarshal object into Go struct field PodSpec.spec.containers of type []v1.Container",
        ),
        (
            container(image=5),
            "json: cannot unmarshal number into Go struct field Container.spec.containers.image of type string",
        ),
        (
            {"spec": {"priority": 1 << 31}},
            "json: cannot unmarshal number 2147483648 into Go struct field PodSpec.spec.priority of type int32",
        ),
        (
            {"metadata": {"labels": {"a": 1}}},
            "json: cannot unmarshal number into Go struct field ObjectMeta.metadata.labels of type string",
        ),
        (
            {"metadata": {"labels": "a"}},
            "json: cannot unmarshal string into Go struct field ObjectMeta.metadata.labels of type map[string]string",
        ),
    ],
)
def test_a_wrong_type_is_told_as_encoding_json_tells_it(obj: dict[str, Any], message: str) -> None:
    error = refusal(obj)
    assert str(error) == message
    assert error.within(json.dumps(obj)) == message


def test_the_old_reader_tells_go_names_and_quotes_the_text() -> None:
    obj = container(ports=[{"containerPort": "x"}])
    text = '{"spec": {"containers": [{"name": "c", "ports": [{"containerPort": "x"}]}]}}'
    assert refusal(obj, OLD).within(text) == (
        "v1.Pod.Spec: v1.PodSpec.Containers: []v1.Container: v1.Container.Ports: []v1.ContainerPort: "
        "v1.ContainerPort.ContainerPort: readUint32: unexpected character: \ufffd, "
        'error found in #10 byte of ...|erPort": "x"}]}]}}|..., bigger context ...|ers": [{"name": "c", "ports": '
        '[{"containerPort": "x"}]}]}}|...'
    )


def test_the_old_reader_stands_behind_a_value_that_reads_itself() -> None:
    obj = {"status": {"capacity": {"cpu": "x"}}}
    message = refusal(obj, OLD, "Node").within(json.dumps(obj))
    assert "v1.NodeStatus.Capacity: unmarshalerDecoder: quantities must match" in message
    assert 'error found in #10 byte of ...|"cpu": "x"}}}|...' in message


@pytest.mark.parametrize(
    ("text", "path", "value"),
    [
        ('{"a": {"b": [1, {"c": "x"}]}}', ("a", "b", 1, "c"), '"x"'),
        ('{"a":1,"a":2}', ("a",), "2"),
        (' { "a" : [ ] , "b" : null } ', ("b",), "null"),
        ('{"}": [{}, "]"]}', ("}", 1), '"]"'),
    ],
)
def test_the_place_of_a_value(text: str, path: tuple[str | int, ...], value: str) -> None:
    start, end = place_of(text, path)
    assert text[start:end] == value


@pytest.mark.parametrize("minor", [OLD, NEW])
def test_all_types_that_fields_name_are_there(minor: int) -> None:
    types = types_of(minor)
    named = {field.type for struct in types.values() for field in struct.fields.values()}
    for type_ in named:
        inner: Any = type_
        while hasattr(inner, "item") or hasattr(inner, "value"):
            inner = getattr(inner, "item", None) or inner.value
        assert not hasattr(inner, "id") or inner.id in types


def test_group_versions_that_share_their_types() -> None:
    assert find("policy", "v1beta1", "PodDisruptionBudget", OLD) is find("policy", "v1", "PodDisruptionBudget", OLD)
    assert find("example.com", "v1", "Thing", NEW) is None
