"""What an informer knows: objects by key, and by what indexes say of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Generic, Protocol, TypeVar

from ksp.kube.watch.resources import Object

T = TypeVar("T", bound=Object)
T_co = TypeVar("T_co", bound=Object, covariant=True)

# The values under which an object is found.
Index = Callable[[T], Iterable[str]]


class Lister(Protocol[T_co]):
    """Read access to what an informer knows. Each list is the caller's own; its order says nothing."""

    def get(self, key: str) -> T_co | None:
        """By `namespace/name`, or `name` for what is in no namespace."""
        ...

    def list(self) -> Sequence[T_co]: ...

    def by_index(self, name: str, value: str) -> Sequence[T_co]:
        """The objects that the index has under the value. KeyError for an index that was not added."""
        ...

    def __len__(self) -> int: ...


class Indexer(Generic[T]):
    """The store of an informer; only the informer writes."""

    def __init__(self) -> None:
        self._objects: dict[str, T] = {}
        self._functions: dict[str, Index[T]] = {}
        self._indexes: dict[str, dict[str, dict[str, T]]] = {}

    def add_index(self, name: str, function: Index[T]) -> None:
        """From now on objects are found by the values that the function gives. ValueError for a name taken."""
        if name in self._functions:
            raise ValueError(f"there is an index {name} already")
        self._functions[name] = function
        self._indexes[name] = {}
        for key, value in self._objects.items():
            self._enter(name, key, value)

    def get(self, key: str) -> T | None:
        return self._objects.get(key)

    def list(self) -> Sequence[T]:
        return [*self._objects.values()]

    def by_index(self, name: str, value: str) -> Sequence[T]:
        return [*self._indexes[name].get(value, {}).values()]

    def keys(self) -> Iterable[str]:
        return self._objects.keys()

    def __len__(self) -> int:
        return len(self._objects)

    def set(self, key: str, value: T) -> None:
        """Adds the object or puts it in the place of the one that has its key."""
        self._leave(key)
        self._objects[key] = value
        for name in self._functions:
            self._enter(name, key, value)

    def remove(self, key: str) -> None:
        """Takes an object out; nothing happens if there is none."""
        self._leave(key)
        self._objects.pop(key, None)

    def _enter(self, name: str, key: str, value: T) -> None:
        for term in self._functions[name](value):
            self._indexes[name].setdefault(term, {})[key] = value

    def _leave(self, key: str) -> None:
        value = self._objects.get(key)
        if value is None:
            return
        for name, function in self._functions.items():
            for term in function(value):
                entries = self._indexes[name].get(term, {})
                entries.pop(key, None)
                if not entries:
                    self._indexes[name].pop(term, None)


def by_namespace(value: Object) -> Iterable[str]:
    """An index: the object's namespace."""
    return (value.metadata.namespace,)
