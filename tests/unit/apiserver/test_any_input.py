"""Objects made at random from the table of types: the answer is a Status or the object, and nothing ever crashes."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from tests.unit.apiserver.in_process import JSON_PATCH, MERGE, STRATEGIC, VERSIONS, Api

from ksp.apiserver.codec.api_types import ListOf, MapOf, Scalar, StructRef, Type, find, types_of
from ksp.apiserver.codec.decoder import FieldError, decode
from ksp.apiserver.resources import Resource, catalogue
from ksp.apiserver.strategies import STRATEGIES

Json = dict[str, Any]

WORDS = ("", "a", "b", "Equal", "Exists", "In", "Always", "TCP", "kubernetes.io/x", "A b", "50%", "-")
SCALARS: dict[str, tuple[Any, ...]] = {
    "string": WORDS,
    "bool": (True, False),
    "int32": (-2, 0, 1, 80, 70_000),
    "int64": (-2, 0, 1, 80, 70_000),
    "float64": (0, 1.5),
    "bytes": ("", "eA=="),
    "quantity": ("0", "1", "500m", "1Gi", "-1", 2, "1.5"),
    "time": ("2020-01-02T03:04:05Z", None),
    "microtime": ("2020-01-02T03:04:05.000006Z", None),
    "intstr": (0, 80, "http", "25%"),
    "raw": (None, {"a": 1}),
}
JUNK: tuple[Any, ...] = (None, 0, "x", [], {}, True, 1.5, [None], {"a": None})
CONTAINERS = {"containers": [{"name": "c", "image": "i"}]}
SELECTED = {
    "selector": {"matchLabels": {"a": "b"}},
    "template": {"metadata": {"labels": {"a": "b"}}, "spec": CONTAINERS},
}
SOUND: dict[str, Json] = {
    "events": {"involvedObject": {"namespace": "default"}},
    "persistentvolumeclaims": {
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    },
    "persistentvolumes": {
        "spec": {"accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}, "hostPath": {"path": "/x"}}
    },
    "pods": {"spec": CONTAINERS},
    "replicationcontrollers": {"spec": {"template": SELECTED["template"]}},
    "services": {"spec": {"ports": [{"port": 80}]}},
    "daemonsets.apps": {"spec": SELECTED},
    "deployments.apps": {"spec": SELECTED},
    "replicasets.apps": {"spec": SELECTED},
    "statefulsets.apps": {"spec": SELECTED},
    "events.events.k8s.io": {
        "eventTime": "2020-01-02T03:04:05.000006Z",
        "regarding": {"namespace": "default"},
        **dict.fromkeys(("reportingController", "reportingInstance", "action", "reason"), "x"),
    },
    "storageclasses.storage.k8s.io": {"provisioner": "x"},
    "volumeattachments.storage.k8s.io": {"spec": {"attacher": "x", "nodeName": "n", "source": {}}},
}
"""What a kind needs to be taken, but for a name."""
NOT_CLIENTS = frozenset({"kind", "apiVersion", "managedFields"})


def value(type_: Type, minor: int, depth: int, random: Random) -> Any:
    """Of the type, but for some junk in some places."""
    if random.random() < 0.02:
        return random.choice(JUNK)
    match type_:
        case Scalar(name):
            return random.choice(SCALARS[name])
        case ListOf(item):
            return [value(item, minor, depth - 1, random) for _ in range(random.randrange(3))]
        case MapOf(inner):
            return {random.choice(WORDS): value(inner, minor, depth - 1, random) for _ in range(random.randrange(3))}
    fields = [field for name, field in types_of(minor)[type_.id].fields.items() if name not in NOT_CLIENTS]
    chosen = random.sample(fields, min(len(fields), random.randrange(7))) if depth > 0 else []
    return {field.name: value(field.type, minor, depth - 1, random) for field in chosen}


SERVED = [
    (version, resource)
    for version in VERSIONS
    for resource in catalogue(version).by_path.values()
    if resource.id in STRATEGIES
]


@pytest.mark.parametrize(("version", "resource"), SERVED, ids=lambda one: getattr(one, "id", one))
def test_no_object_breaks_the_server(version: str, resource: Resource) -> None:
    api, random = Api(version), Random(f"{version} {resource.id}")
    minor = api.server.state.version.minor
    struct = find(resource.group, resource.version, resource.kind, minor)
    assert struct is not None
    type_ = StructRef(struct.id)
    path = resource.prefix + ("/namespaces/default/" if resource.namespaced else "/") + resource.plural
    for number in range(30):
        obj = value(type_, minor, 7, random)
        if isinstance(obj, dict) and random.random() < 0.8:
            obj["metadata"] = {"name": f"a{number}"}
        code, made = api.ask("POST", path, obj, {"Content-Type": "application/json"})
        assert code == 201 or made["status"] == "Failure"
    code, made = api.post(path, {"metadata": {"name": "sound"}, **SOUND.get(resource.id, {})})
    assert code == 201, made
    for content_type in (MERGE, STRATEGIC, JSON_PATCH) * 10:
        change = value(type_, minor, 6, random)
        code, changed = api.ask("PATCH", f"{path}/sound", change, {"Content-Type": content_type})
        assert code == 200 or changed["status"] == "Failure"
    code, shown = api.get(path, Accept="application/json;as=Table;v=v1;g=meta.k8s.io")
    assert (code, shown["kind"]) == (200, "Table")
    assert api.delete(f"{path}/sound")[0] == 200


@pytest.mark.parametrize("minor", [19, 36])
@pytest.mark.parametrize("id", ["core.v1.Pod", "core.v1.Node", "core.v1.Event", "apps.v1.StatefulSet"])
def test_what_was_read_reads_as_itself(minor: int, id: str) -> None:
    random, struct = Random(f"{minor} {id}"), types_of(minor)[id]
    read = 0
    for _ in range(200):
        try:
            found, _ = decode(value(StructRef(id), minor, 7, random), struct, minor)
        except FieldError:
            continue
        assert decode(found, struct, minor) == (found, [])
        read += 1
    assert read > 20
