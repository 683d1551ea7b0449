"""The table of types, which is kept by hand, against the models of the official client, which are generated."""

from __future__ import annotations

from typing import Any

import pytest
from kubernetes.client import models

from ksp.apiserver.codec.api_types import SERVED_AS, ListOf, MapOf, Scalar, Struct, Type, types_of

NEWEST = types_of(36)
MODELS: dict[str, Any] = {
    name: model for name in dir(models) if hasattr(model := getattr(models, name), "attribute_map")
}

LATER: dict[str, set[str]] = {
    "autoscaling.v2.HorizontalPodAutoscalerCondition": {"observedGeneration"},
    "batch.v1.JobSpec": {"scheduling"},
    "core.v1.ClusterTrustBundleProjection": {"user"},
    "core.v1.ConfigMapVolumeSource": {"defaultUser"},
    "core.v1.DownwardAPIVolumeFile": {"user"},
    "core.v1.DownwardAPIVolumeSource": {"defaultUser"},
    "core.v1.EmptyDirVolumeSource": {"mode"},
    "core.v1.GRPCAction": {"mode"},
    "core.v1.HTTPGetAction": {"protocol"},
    "core.v1.KeyToPath": {"user"},
    "core.v1.NodeAllocatableResourceClaimStatus": {"mapping", "overhead"},
    "core.v1.NodeSpec": {"podPreemptionPolicy"},
    "core.v1.NodeSystemInfo": {"runningInUserNamespace"},
    "core.v1.PersistentVolumeClaimStatus": {"healthStatus"},
    "core.v1.PodCertificateProjection": {"user"},
    "core.v1.PodSpec": {"evictionResponders"},
    "core.v1.PodStatus": {"volumeHealth"},
    "core.v1.ProjectedVolumeSource": {"defaultUser"},
    "core.v1.SecretVolumeSource": {"defaultUser"},
    "core.v1.ServiceAccountTokenProjection": {"user"},
    "core.v1.VolumeMount": {"bindMountOptions"},
    "resource.v1.Device": {"nodeAllocatableResources"},
    "resource.v1.DeviceCounterConsumption": {"compatibilityGroups"},
    "resource.v1.DeviceRequestAllocationResult": {"skipNodeOperations"},
    "resource.v1.DeviceSubRequest": {"derivedAttributes"},
    "resource.v1.ExactDeviceRequest": {"derivedAttributes"},
    "resource.v1.ResourceSliceSpec": {"partitionTypeAttribute", "skipNodeOperations"},
    "storage.v1.CSINode": {"status"},
}
"""Fields that the client has and 1.36 has not: the client is of the version that follows."""
EARLIER: dict[str, set[str]] = {
    "core.v1.NodeAllocatableResourceClaimStatus": {"resources"},
    "resource.v1.Device": {"nodeAllocatableResourceMappings"},
}
"""Alpha fields of 1.36 that the client has no more."""
WITHOUT_MODEL = {"meta.v1.PartialObjectMetadata", "resource.v1.NodeAllocatableResourceMapping"}

SCALARS: dict[str, set[str]] = {
    "str": {"string", "quantity", "bytes"},
    "bytes": {"bytes"},
    "bool": {"bool"},
    "int": {"int32", "int64"},
    "float": {"float64"},
    "datetime": {"time", "microtime"},
    "object": {"raw", "intstr"},
}


def model_of(struct: Struct) -> Any:
    """Several groups have types of one name; the client puts the group in front of some of them."""
    group, version, name = struct.id.split(".")
    names = (f"{group.capitalize()}{version.upper()}{name}", f"{version.upper()}{name}")
    return next((MODELS[each] for each in names if each in MODELS), None)


def fits(of: Type, text: str) -> bool:
    """Whether a type of the table is what the client calls `text`: `List[V1Container]`, `Dict[str, str]`, `int`."""
    match of:
        case ListOf(item):
            return text.startswith("List[") and fits(item, text[5:-1])
        case MapOf(value):
            return text == "object" or (text.startswith("Dict[str, ") and fits(value, text[10:-1]))
        case Scalar(name):
            return name in SCALARS.get(text, ())
    return text == "object" or text.endswith(of.id.rpartition(".")[2])


@pytest.mark.parametrize("id", sorted(NEWEST.keys() - WITHOUT_MODEL))
def test_a_type_has_the_fields_of_the_clients_model(id: str) -> None:
    struct = NEWEST[id]
    model = model_of(struct)
    assert model is not None, "the client has no such type"
    python_names = {name: python for python, name in model.attribute_map.items()}
    assert python_names.keys() - struct.fields.keys() == LATER.get(id, set())
    assert struct.fields.keys() - python_names.keys() == EARLIER.get(id, set())
    for name in struct.fields.keys() & python_names.keys():
        text = model.openapi_types[python_names[name]]
        assert fits(struct.fields[name].type, text), f"{name}: {struct.fields[name].type} is {text}"


def test_what_a_type_refers_to_is_there() -> None:
    for minor in (19, 36):
        for struct in types_of(minor).values():
            for field in struct.fields.values():
                inner = field.type
                while isinstance(inner, ListOf | MapOf):
                    inner = inner.item if isinstance(inner, ListOf) else inner.value
                assert isinstance(inner, Scalar) or inner.id in types_of(minor), f"{struct.id}.{field.name}"


def test_merge_keys_are_fields_of_the_items() -> None:
    for struct in NEWEST.values():
        for field in struct.fields.values():
            if field.merge_key:
                assert isinstance(field.type, ListOf)
                assert not isinstance(field.type.item, Scalar | ListOf | MapOf)
                assert field.merge_key in NEWEST[field.type.item.id].fields


def test_versions_that_share_their_types_have_them() -> None:
    prefixes = {id.rpartition(".")[0] for id in NEWEST}
    assert set(SERVED_AS.values()) <= prefixes
