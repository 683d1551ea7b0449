"""The Lease that is the lock: read, made and changed over the API, and by nobody behind another's back.

Each change carries the resourceVersion of what was read, so of two that change the same version the server takes one.
What others keep in the object (labels, annotations, fields of later versions) stays.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, Protocol

import msgspec

from ksp.kube.errors import ApiError
from ksp.kube.http.client import Client
from ksp.kube.http.paths import path_of
from ksp.kube.http.reader import MalformedError

API: Final = "coordination.k8s.io/v1"

Annotations = Mapping[str, str | None]
"""What a change sets; None takes one away."""


class Record(NamedTuple):
    """What the candidates tell each other. `duration` is in seconds, 0 if nothing is said; times are as the API writes
    them, and are for people: nobody decides by them."""

    holder: str = ""
    duration: int = 0
    acquired: str = ""
    renewed: str = ""
    transitions: int = 0


@dataclass(frozen=True, slots=True)
class Lease:
    """As the server has it. `body` is the whole object, which is not changed."""

    record: Record
    body: dict[str, Any] = field(repr=False)

    @property
    def uid(self) -> str:
        return str(self.body["metadata"].get("uid", ""))

    @property
    def version(self) -> str:
        return str(self.body["metadata"].get("resourceVersion", ""))

    @property
    def annotations(self) -> Mapping[str, str]:
        return dict(self.body["metadata"].get("annotations") or {})


class Lock(Protocol):
    """Where the lease is. All raise KubeError."""

    async def read(self, within: float) -> Lease | None:
        """As etcd has it; None if there is none."""
        ...

    async def create(self, record: Record, annotations: Annotations, within: float) -> Lease:
        """ApiError 409 if there is one."""
        ...

    async def update(self, lease: Lease, record: Record, annotations: Annotations, within: float) -> Lease:
        """ApiError 409 if it is not `lease` any more."""
        ...


class _Spec(msgspec.Struct, rename="camel"):
    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    acquire_time: str | None = None
    renew_time: str | None = None
    lease_transitions: int | None = None


def lease_of(text: bytes) -> Lease:
    """The Lease of an answer. Raises MalformedError."""
    try:
        body = msgspec.json.decode(text, type=dict[str, Any])
        if body.get("kind") != "Lease" or not isinstance(body.get("metadata"), dict):
            raise MalformedError("the answer is no Lease")
        spec = msgspec.convert(body.get("spec") or {}, _Spec)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise MalformedError(f"the answer is no Lease that can be read: {error}") from error
    record = Record(
        spec.holder_identity or "", spec.lease_duration_seconds or 0, spec.acquire_time or "", spec.renew_time or "",
        spec.lease_transitions or 0,
    )  # fmt: skip
    return Lease(record, body)


class LeaseLock:
    """The Lease `namespace`/`name` of coordination.k8s.io/v1."""

    def __init__(self, client: Client, namespace: str, name: str) -> None:
        self.namespace = namespace
        self.name = name
        self._client = client
        self._all = path_of("apis", "coordination.k8s.io", "v1", "namespaces", namespace, "leases")
        self._one = self._all + path_of(name)

    async def read(self, within: float) -> Lease | None:
        try:
            answer = await self._client.request("GET", self._one, timeout=within, retry=False)
        except ApiError as error:
            if error.status == 404 and error.details.get("name") == self.name:  # else the API is not served
                return None
            raise
        return lease_of(answer.body)

    async def create(self, record: Record, annotations: Annotations, within: float) -> Lease:
        metadata = {"namespace": self.namespace, "name": self.name}
        body = {"apiVersion": API, "kind": "Lease", "metadata": metadata}
        return await self._send("POST", self._all, body, record, annotations, within)

    async def update(self, lease: Lease, record: Record, annotations: Annotations, within: float) -> Lease:
        return await self._send("PUT", self._one, deepcopy(lease.body), record, annotations, within)

    async def _send(
        self, method: str, path: str, body: dict[str, Any], record: Record, annotations: Annotations, allowed: float
    ) -> Lease:
        body["spec"] = {**(body.get("spec") or {}), **_spec(record)}
        _annotate(body["metadata"], annotations)
        body["metadata"].pop("managedFields", None)  # the server's own
        text = msgspec.json.encode(body)
        return lease_of((await self._client.request(method, path, body=text, timeout=allowed, retry=False)).body)


def _spec(record: Record) -> dict[str, Any]:
    return {
        "holderIdentity": record.holder,
        "leaseDurationSeconds": record.duration,
        "acquireTime": record.acquired,
        "renewTime": record.renewed,
        "leaseTransitions": record.transitions,
    }


def _annotate(metadata: dict[str, Any], annotations: Annotations) -> None:
    found = {**(metadata.get("annotations") or {}), **annotations}
    metadata["annotations"] = {name: text for name, text in found.items() if text is not None}
