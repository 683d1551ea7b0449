"""From stored objects to what a client sees: the version of the path, self links, lists, Tables, metadata alone."""

from collections.abc import Sequence
from typing import Any, Final

from ksp.apiserver.http.negotiation import Form
from ksp.apiserver.resources import Resource
from ksp.apiserver.state import Call
from ksp.apiserver.strategies import strategy_of
from ksp.apiserver.strategy import Context
from ksp.apiserver.tables.tables import table
from ksp.apiserver.versions import Version

Json = dict[str, Any]


def public(obj: Json, resource: Resource, version: Version, subresource: str = "") -> Json:
    """A stored object in the version of its path; the stored one stays as it is."""
    shown = strategy_of(resource).from_storage(obj)
    if shown.get("apiVersion") != resource.group_version:
        shown = {**shown, "apiVersion": resource.group_version, "kind": resource.kind}
    if version.self_links:
        link = self_link(shown, resource) + (f"/{subresource}" if subresource else "")
        shown = {**shown, "metadata": {**shown["metadata"], "selfLink": link}}
    return shown


def self_link(obj: Json, resource: Resource) -> str:
    meta = obj["metadata"]
    place = f"/namespaces/{meta['namespace']}" if resource.namespaced and "namespace" in meta else ""
    return f"{resource.prefix}{place}/{resource.plural}/{meta.get('name', '')}"


def partial(shown: Json, form: Form) -> Json:
    """PartialObjectMetadata of an object."""
    api_version = f"meta.k8s.io/{form.transform_version}"
    return {"kind": "PartialObjectMetadata", "apiVersion": api_version, "metadata": shown["metadata"]}


def one(obj: Json, call: Call) -> Json:
    """The answer that is one object, in the form that was asked for."""
    subresource = call.target.subresource
    shown = public(obj, call.resource, call.state.version, subresource)
    form = call.form
    if form.transform == "Table":
        meta = {key: shown["metadata"][key] for key in ("selfLink", "resourceVersion") if key in shown["metadata"]}
        return as_table([shown], meta, form, call.context())
    if form.transform:
        return partial(shown, form)
    return shown


def many(objects: Sequence[Json], meta: Json, call: Call) -> Json:
    """The answer that is a list. `meta` is the list's own: resourceVersion, continue, remainingItemCount."""
    resource, version, form = call.resource, call.state.version, call.form
    if version.self_links:
        meta = {"selfLink": call.target.path, **meta}
    shown = [public(obj, resource, version) for obj in objects]
    if form.transform == "Table":
        return as_table(shown, meta, form, call.context())
    if form.transform:
        api_version = f"meta.k8s.io/{form.transform_version}"
        if not version.partial_lists_count:
            meta = {key: value for key, value in meta.items() if key != "remainingItemCount"}
        items: list[Json] | None = [partial(obj, form) for obj in shown] or None
        return {"kind": "PartialObjectMetadataList", "apiVersion": api_version, "metadata": meta, "items": items}
    return {
        "kind": f"{resource.kind}List",
        "apiVersion": resource.group_version,
        "metadata": meta,
        "items": [bare(obj) for obj in shown],
    }


def bare(obj: Json) -> Json:
    """An item of a list: without its kind."""
    return {key: value for key, value in obj.items() if key not in {"kind", "apiVersion"}}


def as_table(shown: Sequence[Json], meta: Json, form: Form, context: Context, *, columns: bool = True) -> Json:
    """A Table; `includeObject` of the query says what a row carries."""
    definitions, cells = table(context.resource, shown, context)
    include = context.query.get("includeObject", "Metadata")
    rows = [{"cells": line, "object": _row_object(obj, include, form)} for obj, line in zip(shown, cells, strict=True)]
    return {
        "kind": "Table",
        "apiVersion": f"meta.k8s.io/{form.transform_version}",
        "metadata": meta,
        "columnDefinitions": definitions if columns else None,
        "rows": rows,
    }


def _row_object(obj: Json, include: str, form: Form) -> Json | None:
    if include == "None":
        return None
    return obj if include == "Object" else partial(obj, form)


ZEROS: Final[dict[str, Json]] = {
    "Pod": {"spec": {"containers": None}, "status": {}},
    "Node": {"spec": {}, "status": {"daemonEndpoints": {"kubeletEndpoint": {"Port": 0}}, "nodeInfo": dict.fromkeys(
        (
            *("machineID", "systemUUID", "bootID", "kernelVersion", "osImage", "containerRuntimeVersion"),
            *("kubeletVersion", "kubeProxyVersion", "operatingSystem", "architecture"),
        ),
        "",
    )}},
    "Namespace": {"spec": {}, "status": {}},
    "Service": {"spec": {}, "status": {"loadBalancer": {}}},
    "PersistentVolume": {"spec": {}, "status": {}},
    "PersistentVolumeClaim": {"spec": {"resources": {}}, "status": {}},
    "Lease": {"spec": {}},
    "CSINode": {"spec": {"drivers": None}},
    "CSIDriver": {"spec": {}},
    "StorageClass": {"provisioner": ""},
    "PriorityClass": {"value": 0},
    "ReplicationController": {"spec": {}, "status": {"replicas": 0}},
    "PodDisruptionBudget": {
        "spec": {},
        "status": {"disruptionsAllowed": 0, "currentHealthy": 0, "desiredHealthy": 0, "expectedPods": 0},
    },
}  # fmt: skip
"""What a typed object of Go shows of its zero fields: the rest of a BOOKMARK beside its metadata."""

EVENT_ZERO: Final[Json] = {
    "involvedObject": {},
    "source": {},
    "firstTimestamp": None,
    "lastTimestamp": None,
    "eventTime": None,
    "reportingComponent": "",
    "reportingInstance": "",
}


def empty(resource: Resource, version: Version, meta: Json) -> Json:
    """An object with nothing but metadata, as the object of a BOOKMARK."""
    if version.null_creation_timestamps:
        meta = {**meta, "creationTimestamp": None}
    rest = EVENT_ZERO if resource.id == "events" else ZEROS.get(resource.kind, {})
    return {"kind": resource.kind, "apiVersion": resource.group_version, "metadata": meta, **rest}
