"""JSON as API servers send it: objects, lists, events."""

from __future__ import annotations

import json
from typing import Any

Json = dict[str, Any]


def pod(name: str, version: int | str, uid: str = "", **fields: Any) -> Json:
    """A pod in namespace `w`. `node`, `phase` and `labels` may be given; its uid is made of its name unless given."""
    spec: Json = {"containers": [{"name": "c", "image": "i"}]}
    if "node" in fields:
        spec["nodeName"] = fields["node"]
    return {
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": {
            "name": name,
            "namespace": "w",
            "uid": uid or f"uid-{name}",
            "resourceVersion": str(version),
            "labels": fields.get("labels", {}),
        },
        "spec": spec,
        "status": {"phase": fields.get("phase", "Pending")},
    }


def broken(name: str, version: int | str, uid: str = "") -> Json:
    """A pod that cannot be decoded: its containers are no list."""
    return pod(name, version, uid) | {"spec": {"containers": "none"}}


def listed(*items: Json, version: int | str, token: str = "", kind: str = "PodList") -> Json:
    metadata = {"resourceVersion": str(version)} | ({"continue": token} if token else {})
    return {"kind": kind, "apiVersion": "v1", "metadata": metadata, "items": list(items)}


def added(value: Json) -> Json:
    return {"type": "ADDED", "object": value}


def modified(value: Json) -> Json:
    return {"type": "MODIFIED", "object": value}


def deleted(value: Json) -> Json:
    return {"type": "DELETED", "object": value}


def bookmark(version: int | str, *, initial_end: bool = False) -> Json:
    metadata: Json = {"resourceVersion": str(version), "creationTimestamp": None}
    if initial_end:
        metadata["annotations"] = {"k8s.io/initial-events-end": "true"}
    return {"type": "BOOKMARK", "object": {"kind": "Pod", "apiVersion": "v1", "metadata": metadata, "spec": None}}


def status(code: int, reason: str, message: str = "", **details: Any) -> Json:
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message or reason,
        "reason": reason,
        "code": code,
    } | ({"details": details} if details else {})


def error(code: int, reason: str, message: str = "", **details: Any) -> Json:
    return {"type": "ERROR", "object": status(code, reason, message, **details)}


def too_old() -> Json:
    """As 1.19 and 1.36 say it."""
    return error(410, "Expired", "too old resource version: 1 (442)")


def line(value: Json | str) -> bytes:
    return (value if isinstance(value, str) else json.dumps(value)).encode() + b"\n"
