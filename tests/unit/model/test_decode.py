from __future__ import annotations

import datetime as dt
import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import inspect
from tests.unit.model import samples

from ksp.model.apps import ReplicationController, Service
from ksp.model.decode import CLUSTER_SCOPED, KINDS, DecodeError, convert, decode, kind_of
from ksp.model.int64 import MAX
from ksp.model.node import AvoidPods, Node
from ksp.model.pod import Pod
from ksp.model.policy import PodDisruptionBudget
from ksp.model.storage import CSINode, PersistentVolumeClaim, StorageClass


@pytest.mark.parametrize("kind", [*KINDS.values(), AvoidPods], ids=lambda kind: kind.__name__)
def test_null_means_zero_wherever_it_stands(kind: type[msgspec.Struct]) -> None:
    whole = samples.full(kind)
    found = list(samples.places(whole, inspect.type_info(kind)))
    assert len(found) >= 4
    for steps, element in found:
        nulled = samples.put(whole, steps, None)
        meant = (
            samples.without(whole, steps) if element is None else samples.put(whole, steps, samples.zero_json(element))
        )
        expected = msgspec.convert(meant, kind)
        assert decode(kind, json.dumps(nulled).encode()) == expected, steps
        assert convert(kind, nulled) == expected, steps


def test_a_full_pod_has_hundreds_of_places() -> None:
    assert len(list(samples.places(samples.full(Pod), inspect.type_info(Pod)))) > 300


def test_several_nulls_at_once() -> None:
    pod = decode(Pod, b'{"metadata":{"labels":{"a":null},"name":null},"spec":{"containers":[null,{"image":null}]}}')
    assert pod.metadata.labels == {"a": ""}
    assert pod.metadata.name == ""
    assert [container.image for container in pod.spec.containers] == ["", ""]


def test_a_null_quantity_is_present_and_zero() -> None:
    pod = decode(Pod, b'{"spec":{"containers":[{"resources":{"requests":{"cpu":null}}}]}}')
    assert pod.spec.containers[0].resources.requests == {"cpu": 0}


def test_unknown_fields_are_ignored() -> None:
    assert decode(Pod, b'{"apiVersion":"v1","kind":"Pod","spec":{"new":{"deep":[1,null]},"nodeName":"n"}}') == decode(
        Pod, b'{"spec":{"nodeName":"n"}}'
    )


@pytest.mark.parametrize("spec", ["{}", '{"selector":null}'])
def test_an_absent_selector_is_not_an_empty_one(spec: str) -> None:
    text = f'{{"spec":{spec}}}'.encode()
    assert decode(Service, text).spec.selector is None
    assert decode(ReplicationController, text).spec.selector is None
    assert decode(KINDS["ReplicaSet"], text).spec.selector is None  # type: ignore[attr-defined]
    assert decode(PodDisruptionBudget, text).spec.selector is None
    assert decode(PersistentVolumeClaim, text).spec.selector is None


def test_an_empty_selector_is_there() -> None:
    text = b'{"spec":{"selector":{}}}'
    assert decode(Service, text).spec.selector == {}
    assert decode(ReplicationController, text).spec.selector == {}
    assert decode(PodDisruptionBudget, text).spec.selector is not None
    affinity = decode(
        Pod,
        b'{"spec":{"affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{}},"podAffinity":null}}}',
    ).spec.affinity
    assert affinity is not None
    assert affinity.node_affinity is not None
    assert affinity.node_affinity.required_during_scheduling_ignored_during_execution is not None
    assert affinity.pod_affinity is None


def test_what_is_nil_in_the_api_is_none() -> None:
    driver = decode(CSINode, b'{"spec":{"drivers":[{"allocatable":{"count":null}},{"allocatable":{"count":0}},{}]}}')
    counts = [entry.allocatable and entry.allocatable.count for entry in driver.spec.drivers]
    assert counts == [None, 0, None]
    assert decode(StorageClass, b"{}").volume_binding_mode is None
    assert decode(Pod, b'{"metadata":{"deletionTimestamp":null}}').metadata.deletion_timestamp is None
    assert decode(Pod, b'{"spec":{"priority":0}}').spec.priority == 0
    assert decode(Pod, b"{}").spec.priority is None


@pytest.mark.parametrize(
    ("text", "path", "message"),
    [
        ('{"spec":{"containers":[{"image":3}]}}', "$.spec.containers[0].image", "expected a string, got the number 3"),
        ('{"spec":{"containers":{}}}', "$.spec.containers", "expected a list, got an object"),
        ('{"spec":[]}', "$.spec", "expected an object, got a list"),
        ('{"spec":{"hostNetwork":"no"}}', "$.spec.hostNetwork", 'expected true or false, got the string "no"'),
        ('{"spec":{"priority":true}}', "$.spec.priority", "expected an integer, got true"),
        ('{"spec":{"priority":1.5}}', "$.spec.priority", "expected an integer, got the number 1.5"),
        ('{"spec":{"priority":9223372036854775808}}', "$.spec.priority", "the number does not fit in 64 bits"),
        (
            '{"spec":{"overhead":{"cpu":[1]}}}',
            "$.spec.overhead.cpu",
            "expected a quantity (a string or a number), got a list",
        ),
        (
            '{"metadata":{"labels":{"example.com/a":1}}}',
            '$.metadata.labels["example.com/a"]',
            "expected a string, got the number 1",
        ),
        (
            '{"metadata":{"name":123456789012345678901}}',
            "$.metadata.name",
            "expected a string, got a number of more than 64 bits",
        ),
        ("[1]", "$", "expected an object, got a list"),
        ("{", "$", "not valid JSON: Input data was truncated"),
        ("", "$", "not valid JSON: Input data was truncated"),
        ("{} x", "$", "not valid JSON: trailing characters (byte 4)"),
    ],
)  # fmt: skip
def test_errors_say_what_and_where(text: str, path: str, message: str) -> None:
    with pytest.raises(DecodeError) as raised:
        decode(Pod, text.encode())
    assert (raised.value.path, raised.value.message) == (path, message)
    assert str(raised.value) == f"{path}: {message}"


def test_an_error_after_nulls_is_found_too() -> None:
    with pytest.raises(DecodeError) as raised:
        convert(Pod, {"metadata": None, "spec": {"containers": [None, {"ports": [{"hostPort": "80"}]}]}})
    assert raised.value.steps == ("spec", "containers", 1, "ports", 0, "hostPort")


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"metadata": {"labels": {1: "a"}}}, "$.metadata.labels: expected strings as keys, got the number 1"),
        (
            {"metadata": {"creationTimestamp": dt.datetime(2020, 1, 1, tzinfo=dt.UTC)}},
            "$.metadata.creationTimestamp: expected a string, got a time (write it in quotes)",
        ),
        ("text", '$: expected an object, got the string "text"'),
        ({"metadata": {"name": b"x"}}, "$.metadata.name: expected a string, got a bytes"),
    ],
)
def test_values_that_only_yaml_has(value: object, message: str) -> None:
    with pytest.raises(DecodeError) as raised:
        convert(Pod, value)
    assert str(raised.value) == message


@pytest.mark.parametrize("field", ["unknown", "metadata", "spec"])
@pytest.mark.parametrize("pair", ["[]", "{}"])
def test_absurd_nesting_is_an_error_like_any_other(field: str, pair: str) -> None:
    opening = "[" if pair == "[]" else '{"a":'
    deep = opening * 100_000 + "1" + pair[1] * 100_000
    with pytest.raises(DecodeError, match="nested too deeply"):
        decode(Pod, f'{{"{field}":{deep}}}'.encode())


def test_values_nested_in_themselves_end() -> None:
    loop: dict[str, Any] = {}
    loop["spec"] = loop
    loop["metadata"] = {"name": "n", "labels": {"a": None}}
    assert convert(Pod, loop).metadata.name == "n"


def test_bytes_that_are_no_text() -> None:
    with pytest.raises(DecodeError, match="not valid UTF-8"):
        decode(Pod, b'{"metadata":{"name":"\xff"}}')


def test_integers_up_to_the_last() -> None:
    assert decode(Node, b'{"status":{"images":[{"sizeBytes":9223372036854775807}]}}').status.images[0].size_bytes == MAX
    with pytest.raises(DecodeError):
        decode(Pod, b'{"spec":{"priority":' + b"9" * 5000 + b"}}")


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["metadata", "labels", "spec", "containers", "resources", "requests", "affinity", "x"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=20,
)


@given(_json)
def test_any_json_gives_a_pod_or_an_error(value: Any) -> None:
    try:
        pod = decode(Pod, json.dumps(value).encode())
    except DecodeError:
        with pytest.raises(DecodeError):
            convert(Pod, value)
    else:
        assert convert(Pod, value) == pod


def test_kinds_by_version() -> None:
    assert kind_of("v1", "Pod") is Pod
    assert kind_of("policy/v1beta1", "PodDisruptionBudget") is PodDisruptionBudget
    assert kind_of("serving.knative.dev/v1", "Service") is None
    assert kind_of("v1", "ReplicaSet") is None
    assert kind_of("v1", "ConfigMap") is None
    assert set(KINDS) > CLUSTER_SCOPED
