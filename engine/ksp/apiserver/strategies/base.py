"""What the kinds of this package share: reading by the table of types, defaults, metadata, generations."""

from collections.abc import Mapping
from copy import deepcopy
from types import MappingProxyType
from typing import Any, ClassVar, Final

from ksp.apiserver.codec import decoder
from ksp.apiserver.codec.api_types import find, types_of
from ksp.apiserver.status import Cause
from ksp.apiserver.strategies.defaults import fill
from ksp.apiserver.strategy import Context, Json, Strategy
from ksp.apiserver.validation.metadata import validate_metadata, validate_metadata_update
from ksp.apiserver.validation.names import Check, path_segment, subdomain

Defaults = Mapping[str, Any]
NONE: Final[Defaults] = MappingProxyType({})


class Kind(Strategy):
    """A kind of the table of types. Subclasses say what is special in class attributes and in the hooks below."""

    defaults: ClassVar[Defaults] = NONE
    """Of the object itself."""
    spec_defaults: ClassVar[Defaults] = NONE
    name_check: Check = staticmethod(subdomain)
    core = False
    """Whether finalizers without a slash must be the standard ones: kinds whose metadata the core package validates."""
    generation = False
    """Whether metadata.generation counts the changes of the spec."""
    initial_status: ClassVar[Json | None] = None
    """What the status is at create, whatever was sent; None: as it was sent."""

    def decode(self, obj: Json, context: Context) -> list[str]:
        """Of a kind that the table does not have, only the metadata is read."""
        resource = context.resource
        minor = context.version.minor
        struct = find(resource.group, resource.version, resource.kind, minor)
        if struct is None:
            partial = types_of(minor)["meta.v1.PartialObjectMetadata"]
            read, unknown = decoder.decode({"metadata": obj.get("metadata")}, partial, minor)
            obj["metadata"] = read["metadata"]
            return unknown
        read, unknown = decoder.decode(obj, struct, minor)
        obj.clear()
        obj.update(read)
        return unknown

    def default(self, obj: Json, context: Context) -> None:
        fill(obj, self.defaults)
        if self.spec_defaults:
            fill(obj["spec"], self.spec_defaults)
        self.default_more(obj, context)

    def default_more(self, obj: Json, context: Context) -> None:
        """Defaults that depend on other fields."""

    def prepare_for_create(self, obj: Json, context: Context) -> None:
        if self.initial_status is not None and not context.loading:
            obj["status"] = deepcopy(self.initial_status)
        if self.generation:
            obj["metadata"]["generation"] = 1

    def validate_create(self, obj: Json, context: Context) -> list[Cause]:
        return [*self._validate_metadata(obj, context), *self.check(obj, context)]

    def _validate_metadata(self, obj: Json, context: Context) -> list[Cause]:
        namespaced = context.resource.namespaced
        meta = obj["metadata"]
        return validate_metadata(meta, context.version, namespaced=namespaced, name=self.name_check, core=self.core)

    def check(self, obj: Json, context: Context) -> list[Cause]:
        """What is wrong with an object but for its metadata."""
        return []

    def check_update(self, new: Json, old: Json, context: Context) -> list[Cause]:
        """What may not change."""
        return []

    def prepare_for_update(self, new: Json, old: Json, context: Context) -> None:
        super().prepare_for_update(new, old, context)
        if self.generation and self.counts(new, old):
            new["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1

    def counts(self, new: Json, old: Json) -> bool:
        """Whether an update is one that the generation counts."""
        return bool(new.get("spec") != old.get("spec"))

    def validate_update(self, new: Json, old: Json, context: Context) -> list[Cause]:
        # The registry validates metadata before it asks the kind, and most kinds do it again: each cause comes twice.
        meta = validate_metadata_update(new["metadata"], old["metadata"])
        return [
            *meta,
            *self._validate_metadata(new, context),
            *self.check(new, context),
            *meta,
            *self.check_update(new, old, context),
        ]

    def validate_status_update(self, new: Json, old: Json, context: Context) -> list[Cause]:
        return [*validate_metadata_update(new["metadata"], old["metadata"]), *self.check_status(new, old, context)]

    def check_status(self, new: Json, old: Json, context: Context) -> list[Cause]:
        """What is wrong with a status."""
        return []


class Plain(Kind):
    """A kind without rules of its own: any name that can stand in a path, as roles need it."""

    name_check = staticmethod(path_segment)
