"""Objects made at random from the table of types: whatever comes in, the answer is a Status or the object, never a crash."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ksp.apiserver.api_types import ListOf, MapOf, Scalar, Struct, Type, find, types_of
from ksp.apiserver.codec import FieldError, decode
from ksp.apiserver.resources import catalogue
from ksp.apiserver.strategies import STRATEGIES
from tests.unit.apiserver.in_process import JSON_PATCH, MERGE, STRATEGIC, VERSIONS, Api

Json = dict[str, Any]

WORDS = st.sampled_from(["", "a", "b", "Equal", "Exists", "In", "Always", "TCP", "kubernetes.io/x", "A b", "50%", "-"])
SCALARS: dict[str, st.SearchStrategy[Any]] = {
    "string": WORDS,
    "bool": st.booleans(),
    "int32": st.integers(-2, 70_000),
    "int64": st.integers(-2, 70_000),
    "float64": st.floats(0, 1),
    "bytes": st.sampled_from(["", "eA=="]),
    "quantity": st.sampled_from(["0", "1", "500m", "1Gi", "-1", 2, "1.5"]),
    "time": st.sampled_from(["2020-01-02T03:04:05Z", None]),
    "microtime": st.sampled_from(["2020-01-02T03:04:05.000006Z", None]),
    "intstr": st.sampled_from([0, 80, "http", "25%"]),
    "raw": st.sampled_from([None, {"a": 1}]),
}
JUNK = st.sampled_from([None, 0, "x", [], {}, True, 1.5, [None], {"a": None}])


def values(type_: Type, minor: int, depth: int) -> st.SearchStrategy[Any]:
    match type_:
        case Scalar(name):
            return SCALARS[name]
        case ListOf(item):
            return st.lists(values(item, minor, depth - 1), max_size=2)
        case MapOf(value):
            return st.dictionaries(WORDS, values(value, minor, depth - 1), max_size=2)
    return structs(types_of(minor)[type_.id], minor, depth)


def structs(struct: Struct, minor: int, depth: int) -> st.SearchStrategy[Json]:
    """Objects with some of the fields; nesting ends somewhere."""
    fields = {
        name: st.deferred(lambda type_=field.type: values(type_, minor, depth - 1))  # type: ignore[misc]
        for name, field in struct.fields.items()
        if name not in {"kind", "apiVersion", "managedFields"}
    }
    if depth <= 0:
        return st.just({})
    return st.sets(st.sampled_from(sorted(fields)), max_size=6).flatmap(
        lambda names: st.fixed_dictionaries({name: fields[name] for name in sorted(names)})
    )


def spoiled(obj: Any, draw: Any) -> Any:
    """`obj` with junk in some places."""
    if draw(st.integers(0, 40)) == 0:
        return draw(JUNK)
    if isinstance(obj, dict):
        return {key: spoiled(value, draw) for key, value in obj.items()}
    return [spoiled(value, draw) for value in obj] if isinstance(obj, list) else obj


KINDS = sorted(STRATEGIES)


@pytest.mark.parametrize("version", VERSIONS)
@given(st.data())
@settings(max_examples=150)
def test_no_object_breaks_the_server(version: str, data: st.DataObject) -> None:
    api = Api(version)
    minor = api.server.state.version.minor
    served = [one for one in catalogue(version).by_path.values() if one.id in STRATEGIES]
    resource = data.draw(st.sampled_from(sorted(served, key=lambda one: (one.id, one.version))))
    struct = find(resource.group, resource.version, resource.kind, minor)
    assert struct is not None
    place = "/namespaces/default" if resource.namespaced else ""
    path = f"{resource.prefix}{place}/{resource.plural}"
    obj = spoiled(data.draw(structs(struct, minor, 6)), data.draw)
    if isinstance(obj, dict) and data.draw(st.booleans()):
        obj["metadata"] = {"name": "a"}
    code, made = api.ask("POST", path, obj, {"Content-Type": "application/json"})
    assert code == 201 or 400 <= code < 500 or made["status"] == "Failure"
    if code != 201:
        return
    change = spoiled(data.draw(structs(struct, minor, 5)), data.draw)
    for content_type in (MERGE, STRATEGIC, JSON_PATCH):
        code, _ = api.ask("PATCH", f"{path}/{made['metadata']['name']}", change, {"Content-Type": content_type})
        assert code == 200 or 400 <= code <= 500
    assert api.get(path, Accept="application/json;as=Table;v=v1;g=meta.k8s.io")[0] == 200
    assert api.delete(f"{path}/{made['metadata']['name']}")[0] in {200, 403}


@given(st.data())
@settings(max_examples=150)
def test_what_was_read_reads_as_itself(data: st.DataObject) -> None:
    minor = data.draw(st.sampled_from([19, 36]))
    struct = types_of(minor)[data.draw(st.sampled_from(["core.v1.Pod", "core.v1.Node", "core.v1.Event"]))]
    obj = spoiled(data.draw(structs(struct, minor, 5)), data.draw)
    try:
        read, _ = decode(obj, struct, minor)
    except FieldError:
        return
    assert decode(read, struct, minor) == (read, [])
