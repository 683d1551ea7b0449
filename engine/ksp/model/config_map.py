"""Texts by their names, in the cluster."""

from __future__ import annotations

import msgspec

from ksp.model.meta import ObjectMeta


class ConfigMap(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """`data` are texts, `binary_data` is what is no text, in base64; no key is in both."""

    metadata: ObjectMeta = ObjectMeta()
    data: dict[str, str] = msgspec.field(default_factory=dict)
    binary_data: dict[str, str] = msgspec.field(default_factory=dict)
