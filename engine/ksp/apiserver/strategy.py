"""What a kind of object decides for itself: the interface between the flow of a request and the rules of a kind.

`handlers` runs one flow for all kinds; where kube-apiserver asks a registry's strategy, it asks a `Strategy`. The base
class is a kind without rules of its own. Objects are plain JSON dicts with `apiVersion` and `kind` of the version in
which they are stored. A hook changes the object that it is given; it never changes `old`, nor what `Objects` returns.

Order of a create:  decode, default, admit_create, (metadata: uid, name, times), prepare_for_create, validate_create,
store.
Order of an update: decode, default, (uid and resourceVersion against the stored), admit_update, (metadata kept),
prepare_for_update (or prepare_for_status_update), validate_update (or validate_status_update), store unless nothing
changed.
A patch is applied to the stored object, in the version of the path, and then goes the way of an update.
Order of a delete:  admit_delete, (preconditions), grace_period, (finalizers), store or remove.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Protocol

from ksp.apiserver.resources import Resource
from ksp.apiserver.status import ApiStatusError, Cause
from ksp.apiserver.versions import Version

Json = dict[str, Any]


class Dice(Protocol):
    """Chance: injected, so that a test can repeat a run."""

    def uid(self) -> str:
        """A random UUID in its usual form."""

    def suffix(self) -> str:
        """Five letters for generateName."""

    def shuffled(self, count: int) -> list[int]:
        """0 ... count - 1 in any order."""


class Objects(Protocol):
    """The store as a strategy sees it. A resource is named as `pods`, `leases.coordination.k8s.io`."""

    def get(self, resource: str, namespace: str, name: str) -> Json | None:
        """The stored object (never change it), None if there is none. `namespace` is empty for cluster-wide kinds."""

    def list(self, resource: str, namespace: str | None = None) -> Iterator[Json]:
        """All objects by key, of one namespace or of all."""

    def put(self, resource: str, obj: Json) -> Json:
        """Stores a new version: `obj` itself, not to be changed any more, with its resourceVersion."""

    def remove(self, resource: str, namespace: str, name: str) -> Json | None:
        """Takes the object out; gives its last form with the resourceVersion of the deletion."""


@dataclass(frozen=True, slots=True)
class User:
    """Who asks."""

    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""


@dataclass(frozen=True, slots=True)
class Context:
    """What is known about a request. `warnings` are sent as Warning headers; append to it."""

    version: Version
    resource: Resource
    now: datetime
    """In UTC."""
    user: User
    objects: Objects
    dice: Dice
    namespace: str = ""
    """Of the path; empty for cluster-wide kinds."""
    name: str = ""
    """Of the path; empty for a create."""
    subresource: str = ""
    dry_run: bool = False
    query: Mapping[str, str] = field(default_factory=dict)
    loading: bool = False
    """Objects of a file are taken as they are: status is kept, admission adds nothing that hinders."""
    warnings: list[str] = field(default_factory=list)

    def of(self, **changes: Any) -> "Context":
        return replace(self, **changes)


class DecodeError(Exception):
    """A field cannot be read: a string where a number belongs, a bad quantity or time.

    The text is what the real server says after `Pod in version "v1" cannot be handled as a Pod: ` (create, PUT: 400) or
    inside the cause of a patch (422).
    """


@dataclass(frozen=True, slots=True)
class DeleteOptions:
    """Of the body or the query of a DELETE, read."""

    grace_period: int | None = None
    propagation: str | None = None
    uid: str | None = None
    resource_version: str | None = None
    dry_run: bool = False


class Strategy:
    """A kind without rules of its own."""

    create_on_update = False
    """PUT makes what does not exist (leases, endpoints, ...)."""
    unconditional_update = True
    """PUT without resourceVersion is taken; else 422 metadata.resourceVersion: must be specified for an update."""
    default_propagation = "Background"
    """What a DELETE without propagationPolicy means: `Background` or `Orphan` (replicationcontrollers)."""
    returns_deleted = False
    """Whether a DELETE that took the object out answers the object (pods, volumes, ...) instead of a Status."""

    def decode(self, obj: Json, context: Context) -> list[str]:
        """Brings `obj` into canonical form (times in UTC, quantities canonical) and drops unknown fields.

        Gives the unknown fields in the words of `Warning` (`unknown field "spec.foo"`). Raises DecodeError.
        """
        return []

    def default(self, obj: Json, context: Context) -> None:
        """Fills in defaults, as the versioned defaulting of the API does (also on update)."""

    def admit_create(self, obj: Json, context: Context) -> None:
        """Admission that is special to the kind, after the admission of all kinds. Raises ApiStatusError."""

    def complete(self, obj: Json, context: Context) -> None:
        """In place of admission, for an object of a file: what others need of it and a manifest may leave out."""

    def admit_update(self, new: Json, old: Json, context: Context) -> None:
        """The same on an update of the object or of a subresource (see `context.subresource`)."""

    def admit_delete(self, obj: Json, context: Context) -> None:
        """The same on a delete."""

    def prepare_for_create(self, obj: Json, context: Context) -> None:
        """Resets what a client may not set (status of a pod, generation, ...) and fills in what the server sets."""

    def validate_create(self, obj: Json, context: Context) -> list[Cause]:
        """All that is wrong with it, metadata included (`validation.validate_metadata`), in the server's order."""
        return []

    def prepare_for_update(self, new: Json, old: Json, context: Context) -> None:
        """Of the main resource: keeps the status where there is a status subresource; counts the generation."""
        if "status" in context.resource.subresources:
            keep(new, old, "status")

    def validate_update(self, new: Json, old: Json, context: Context) -> list[Cause]:
        return []

    def prepare_for_status_update(self, new: Json, old: Json, context: Context) -> None:
        """Of `/status`: everything but metadata and status stays as it was."""
        for name in {*new, *old} - {"metadata", "status", "apiVersion", "kind"}:
            keep(new, old, name)

    def validate_status_update(self, new: Json, old: Json, context: Context) -> list[Cause]:
        return []

    def grace_period(self, obj: Json, wanted: int | None, context: Context) -> int | None:
        """Seconds until `obj` goes, if a DELETE asks for `wanted`; None: the kind goes at once."""
        return None

    def prepare_for_delete(self, new: Json, options: DeleteOptions, context: Context) -> bool:
        """Changes a copy of the object that is to be deleted and must stay for now (namespaces: phase Terminating).

        True if the object must stay for a reason of the kind's own (spec.finalizers of namespaces).
        """
        return False

    def may_go(self, obj: Json) -> bool:
        """Whether an object with a deletionTimestamp and no finalizers goes when it is written (else it waits)."""
        return True

    def answers_deleted(self, context: Context) -> bool:
        """`returns_deleted`, for kinds where it depends on the version."""
        return self.returns_deleted

    def update_checks_uid(self, context: Context) -> bool:
        """Whether PUT of what is gone is refused for its uid (409) before anybody finds that it is gone (404)."""
        return self.create_on_update or not context.version.gone_update_is_404

    def to_storage(self, obj: Json) -> Json:
        """From the version of the path to the stored one (events.k8s.io/v1 → v1); `obj` may be changed."""
        return obj

    def from_storage(self, obj: Json) -> Json:
        """The other way. `obj` must not be changed: make new dicts of what differs."""
        return obj


def keep(new: Json, old: Json, name: str) -> None:
    """Gives `new` the field as `old` has it, or has it not."""
    if name in old:
        new[name] = old[name]
    else:
        new.pop(name, None)


__all__ = [
    "ApiStatusError",
    "Cause",
    "Context",
    "DecodeError",
    "DeleteOptions",
    "Dice",
    "Json",
    "Objects",
    "Strategy",
    "User",
    "keep",
]
