"""One object as the API sends it: a struct with a key, or the reason why it cannot be read and the key all the same.

An object that cannot be read must not stop the others, and must not look deleted. So of a bad object the few fields are
read that tell which one it is; that succeeds for all but the strangest.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

import msgspec

from ksp.kube.watch.resources import Object, Resource, key_of
from ksp.model.decode import DecodeError, decode
from ksp.model.meta import ObjectMeta

T_co = TypeVar("T_co", bound=Object, covariant=True)


@dataclass(frozen=True, slots=True)
class Readable(Generic[T_co]):
    """An object with a name, a uid and a resource version. `wanted`: the resource's selector does not exclude it."""

    key: str
    value: T_co
    wanted: bool

    @property
    def resource_version(self) -> str:
        return self.value.metadata.resource_version


@dataclass(frozen=True, slots=True)
class Unreadable:
    """An object that is there but cannot be used. What is not known of it is empty."""

    key: str
    uid: str
    resource_version: str
    message: str


class _Meta(msgspec.Struct, rename="camel"):
    name: str | None = None
    namespace: str | None = None
    uid: str | None = None
    resource_version: str | None = None


class _Outline(msgspec.Struct):
    metadata: _Meta | None = None


_OUTLINES: Final = msgspec.json.Decoder(_Outline)


def read_object(resource: Resource, data: bytes) -> Readable[Any] | Unreadable:
    """The object in a JSON text, which may be a `msgspec.Raw`; no part of the text is kept, unless the resource says
    so."""
    struct: type[Any] = resource.struct
    try:
        value = resource.understood(decode(struct, data))
    except DecodeError as error:
        return _outline(data, str(error))
    missing = _missing(value.metadata)
    if missing:
        return _outline(data, f"it has no metadata.{missing}")
    wanted = resource.keeps(value)
    if wanted and resource.with_bytes is not None:
        value = resource.with_bytes(value, data)
    return Readable(key_of(value.metadata), value, wanted)


def _missing(meta: ObjectMeta) -> str:
    if not meta.name:
        return "name"
    if not meta.uid:
        return "uid"
    return "" if meta.resource_version else "resourceVersion"


def _outline(data: bytes, message: str) -> Unreadable:
    try:
        meta = _OUTLINES.decode(data).metadata or _Meta()
    except (msgspec.DecodeError, ValueError, RecursionError):
        meta = _Meta()
    key = key_of(ObjectMeta(name=meta.name or "", namespace=meta.namespace or "")) if meta.name else ""
    return Unreadable(key, meta.uid or "", meta.resource_version or "", message)
