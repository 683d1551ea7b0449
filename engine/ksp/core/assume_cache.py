"""Objects of one kind as the API has them, and what is assumed of some of them on top.

    set / remove        the watch: the API has this version, or none
    assume              a pod in flight will see to it that the object has a part; rules see that it has it
    release             the pod will not

The cluster's state always shows the API's version with the assumed part laid over it, and nothing else. Several pods
may *hold* one part: it is there until the last of them releases it. It ends, too, with the version that shows it, with
one that has something else in its place, and with the object: identity is the uid, so one that was deleted and made
anew under the same name has no part in what was assumed of the old one.

kube-scheduler's assume cache differs: there the next version from the API, whatever it shows, takes the place of what
was assumed, so that a label that somebody puts on a volume frees it for a second claim while it is being promised to
the first; and when one pod gives up, what another pod assumes of the same object goes with it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, Generic, Protocol, TypeVar

from ksp.core.errors import StateError
from ksp.core.state import NAMESPACED_KINDS, ClusterState
from ksp.core.wake import object_differs, object_event
from ksp.model.meta import ObjectMeta

Events = frozenset[str]
NO_EVENTS: Final[Events] = frozenset()

Key = tuple[str, str]
"""Namespace, "" where the kind has none, and name."""


class HasMetadata(Protocol):
    """Any object of the API."""

    @property
    def metadata(self) -> ObjectMeta: ...


T = TypeVar("T", bound=HasMetadata)


class Part(Protocol[T]):
    """What is assumed of an object. Equal parts are one and the same."""

    def over(self, obj: T) -> T:
        """The object with the part."""

    def is_settled_by(self, obj: T) -> bool:
        """Whether this version has the part, or something else in its place."""


P = TypeVar("P", bound=Part[Any])


@dataclass(slots=True)
class _Assumed(Generic[P]):
    """A part of the object with that uid, and who holds it."""

    part: P
    uid: str
    holders: set[str]


class AssumeCache(Generic[T, P]):
    """The objects of `kind`, which it alone puts into the state from now on; those that stand there already are the
    API's. Holders are pods, by uid."""

    def __init__(self, state: ClusterState, kind: str) -> None:
        self.state = state
        self.kind = kind
        self._api: dict[Key, T] = dict(_objects(state, kind))
        self._assumed: dict[Key, _Assumed[P]] = {}
        self._held: dict[str, set[Key]] = {}

    # ---- questions

    def api(self, key: Key) -> T | None:
        """The API's version, without anything that is assumed; None if there is no such object."""
        return self._api.get(key)

    def known(self, key: Key) -> T:
        """The API's version of an object that the state shows."""
        return self._api[key]

    def is_held(self, key: Key, holder: str) -> bool:
        """Whether a part of the object is assumed for that pod, among others."""
        return key in self._held.get(holder, ())

    def assumed(self) -> Iterator[tuple[Key, P]]:
        """All parts that are assumed."""
        return ((key, assumed.part) for key, assumed in self._assumed.items())

    # ---- from the watch

    def set(self, key: Key, obj: T) -> Events:
        """The API has this version. The events that it is to those who see the state: none if they see no difference,
        as when the API shows what was assumed."""
        self._api[key] = obj
        assumed = self._assumed.get(key)
        if assumed is not None and (assumed.uid != obj.metadata.uid or assumed.part.is_settled_by(obj)):
            self._forget(key)
        return self._show(key)

    def remove(self, key: Key) -> Events:
        """The API has no such object any more."""
        if self._api.pop(key, None) is None:
            return NO_EVENTS
        self._forget(key)
        self.state.remove_object(self.kind, *key)
        return frozenset({object_event(self.kind, "Delete")})

    # ---- from pods

    def assume(self, key: Key, part: P, holder: str) -> None:
        """The object is to get that part for the pod's sake. If the API's version settles it, there is nothing to
        assume. Raises StateError if there is no such object, or another part of it is assumed."""
        obj, assumed = self._api.get(key), self._assumed.get(key)
        if obj is None:
            raise StateError(f"nothing can be assumed of {_written(key)} among {self.kind}: there is none")
        if part.is_settled_by(obj):
            return
        if assumed is None:
            assumed = self._assumed[key] = _Assumed(part, obj.metadata.uid, set())
        elif assumed.part != part:
            raise StateError(f"of {_written(key)} among {self.kind} {assumed.part} is assumed, and now {part}")
        assumed.holders.add(holder)
        self._held.setdefault(holder, set()).add(key)
        self._show(key)

    def release(self, holder: str) -> Events:
        """The pod holds nothing any more; what nobody else holds is undone. The events that this is."""
        events = NO_EVENTS
        for key in sorted(self._held.pop(holder, ())):
            assumed = self._assumed[key]
            assumed.holders.discard(holder)
            if not assumed.holders:
                del self._assumed[key]
                events |= self._show(key)
        return events

    def undo(self, key: Key) -> Events:
        """What is assumed of the object is not, whoever holds it."""
        self._forget(key)
        return self._show(key)

    def _forget(self, key: Key) -> None:
        assumed = self._assumed.pop(key, None)
        for holder in () if assumed is None else assumed.holders:
            self._held[holder].discard(key)
            if not self._held[holder]:
                del self._held[holder]

    def _show(self, key: Key) -> Events:
        """Bring the state up to date for a known object. Versions alone are no difference there."""
        obj, assumed = self._api[key], self._assumed.get(key)
        if assumed is not None:
            obj = assumed.part.over(obj)
        shown = self._shown(key)
        if shown is not None and not object_differs(shown, obj):
            return NO_EVENTS
        self.state.set_object(self.kind, *key, obj)
        return frozenset({object_event(self.kind, "Add" if shown is None else "Update")})

    def _shown(self, key: Key) -> T | None:
        namespace, name = key
        objects = self.state.objects[self.kind]
        found: T | None = (objects.get(namespace, {}) if self.kind in NAMESPACED_KINDS else objects).get(name)
        return found


def _objects(state: ClusterState, kind: str) -> Iterator[tuple[Key, Any]]:
    objects = state.objects[kind]
    by_namespace = objects if kind in NAMESPACED_KINDS else {"": objects}
    return (((namespace, name), obj) for namespace, named in by_namespace.items() for name, obj in named.items())


def _written(key: Key) -> str:
    return "/".join(filter(None, key))
