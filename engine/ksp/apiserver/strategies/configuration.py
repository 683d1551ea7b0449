"""ConfigMaps, Secrets, ServiceAccounts."""

import base64
from typing import ClassVar, Final

from ksp.apiserver.status import Cause, forbidden_field, invalid_value, too_long
from ksp.apiserver.strategies.base import Defaults, Kind
from ksp.apiserver.strategy import Context, Json
from ksp.apiserver.validation import names
from ksp.apiserver.validation.metadata import at_most_bytes, named, quoted

DATA_LIMIT: Final = 1024 * 1024
"""Bytes of all values of a ConfigMap or Secret."""


class ConfigMaps(Kind):
    """core/v1."""

    core = True

    def check(self, obj: Json, context: Context) -> list[Cause]:
        data, binary = obj.get("data") or {}, obj.get("binaryData") or {}
        found: list[Cause] = []
        for key in data:
            found += named(key, f"data[{key}]", names.config_key, context.version)
            if key in binary:
                text = "duplicate of key present in binaryData"
                found.append(invalid_value(f"data[{key}]", quoted(key), text))
        for key in binary:
            found += named(key, f"binaryData[{key}]", names.config_key, context.version)
        size = sum(len(value.encode()) for value in data.values()) + _decoded_size(binary)
        if size > DATA_LIMIT:
            found.append(too_long("[]", at_most_bytes(DATA_LIMIT, context.version)))
        return found

    def check_update(self, new: Json, old: Json, context: Context) -> list[Cause]:
        return _check_immutable(new, old, ("data", "binaryData"))


def _decoded_size(data: dict[str, str | None]) -> int:
    return sum(len(base64.b64decode(value)) for value in data.values() if value)


def _check_immutable(new: Json, old: Json, fields: tuple[str, ...]) -> list[Cause]:
    if not old.get("immutable"):
        return []
    text = "field is immutable when `immutable` is set"
    found = [] if new.get("immutable") else [forbidden_field("immutable", text)]
    return [*found, *(forbidden_field(name, text) for name in fields if new.get(name) != old.get(name))]


class Secrets(Kind):
    """core/v1: what is given as `stringData` is stored as `data`."""

    core = True
    defaults: ClassVar[Defaults] = {"type": "Opaque"}

    def default_more(self, obj: Json, context: Context) -> None:
        given: dict[str, str] = obj.pop("stringData", None) or {}
        if given:
            coded = {key: base64.b64encode(value.encode()).decode() for key, value in given.items()}
            obj["data"] = dict(sorted({**(obj.get("data") or {}), **coded}.items()))

    def check(self, obj: Json, context: Context) -> list[Cause]:
        found: list[Cause] = []
        for key in obj.get("data") or {}:
            found += named(key, f"data[{key}]", names.config_key, context.version)
        if _decoded_size(obj.get("data") or {}) > DATA_LIMIT:
            found.append(too_long("data", at_most_bytes(DATA_LIMIT, context.version)))
        return found

    def check_update(self, new: Json, old: Json, context: Context) -> list[Cause]:
        found = _check_immutable(new, old, ("data",))
        if new.get("type") != old.get("type"):
            found.append(invalid_value("type", quoted(new.get("type", "")), "field is immutable"))
        return found


class ServiceAccounts(Kind):
    """core/v1."""

    core = True
    returns_deleted = True
