"""What all kinds of objects have in common: metadata, selectors, integers and resource lists."""

from __future__ import annotations

from typing import Annotated

import msgspec

from ksp.model.int64 import MAX, MIN
from ksp.model.quantity import Quantity
from ksp.model.selector import LabelSelector, LabelSelectorRequirement

__all__ = ["Int", "LabelSelector", "LabelSelectorRequirement", "ObjectMeta", "OwnerReference", "ResourceList"]

Int = Annotated[int, msgspec.Meta(ge=MIN, le=MAX)]

# Amounts as the API writes them, by resource.
ResourceList = dict[str, Quantity]


class OwnerReference(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """The object that this one belongs to; at most one owner is its controller."""

    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool = False


class ObjectMeta(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """Who an object is. Times are RFC 3339 texts."""

    name: str = ""
    generate_name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: Int = 0
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    labels: dict[str, str] = msgspec.field(default_factory=dict)
    annotations: dict[str, str] = msgspec.field(default_factory=dict)
    owner_references: tuple[OwnerReference, ...] = ()
    finalizers: tuple[str, ...] = ()
