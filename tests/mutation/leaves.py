"""Changes of one leaf of an object as the API writes it: another value that is plausible in its place.

Plausible is what stands in the same place in recorded objects, and what is next to the value that is there: a larger or
smaller number or quantity, the other bool, nothing. Places of list elements are one (`[…]`), entries of maps each have
their own, so that a label `zone` becomes another zone.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, Final

from ksp.model.quantity import QuantityError, milli_value

Step = str | int
Path = tuple[Step, ...]
Place = tuple[str, ...]

ELEMENT: Final = "[…]"
REMOVED: Final = object()
RESOURCES: Final = frozenset({"requests", "limits", "capacity", "allocatable", "allocatedResources", "overhead"})
# Texts of which the API knows only some: those that no recorded object may bear, too.
WORDS: Final[Mapping[str, tuple[str, ...]]] = {
    "operator": ("In", "NotIn", "Exists", "DoesNotExist", "Equal", "Gt", "Lt"),
    "effect": ("NoSchedule", "PreferNoSchedule", "NoExecute", ""),
    "protocol": ("TCP", "UDP", "SCTP"),
    "type": ("Ready", "MemoryPressure", "DiskPressure", "PIDPressure", "NetworkUnavailable"),
    "status": ("True", "False", "Unknown"),
    "phase": ("Running", "Pending", "Succeeded", "Failed", "Available", "Bound", "Released"),
    "whenUnsatisfiable": ("DoNotSchedule", "ScheduleAnyway"),
    "volumeBindingMode": ("Immediate", "WaitForFirstConsumer"),
    "deletionTimestamp": ("2020-01-01T00:00:00Z",),
}
MOST_OF_A_PLACE: Final = 60
ALL_THAT_IS_HERE: Final = 0.1
ANOTHER_FIELD: Final = 0.25  # one that is not here
# How often a walk goes to a field, where others count 1: rules read more of some than of others.
INTEREST: Final[Mapping[str, float]] = {
    "metadata": 0.7, "spec": 2.0, "labels": 4.0, "annotations": 1.5, "ownerReferences": 1.5, "name": 0.3, "uid": 0.2,
    "namespace": 0.5, "apiVersion": 0.0, "kind": 0.3, "resourceVersion": 0.0, "generation": 0.0, "capacity": 0.3,
    "creationTimestamp": 0.0, "volumes": 2.0, "affinity": 2.0,
    "generateName": 0.0, "limits": 0.3, "finalizers": 0.1, "template": 0.0,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Change:
    """What stands at `path` becomes `value`; REMOVED takes an entry or element away, an index at the end adds one."""

    path: Path
    value: Any

    def made_in(self, whole: Any) -> Any:
        """The object with the change; what was there is not touched."""
        return _changed(whole, self.path, self.value)

    def __str__(self) -> str:
        written = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in self.path)
        return f"{written} -> {'nothing' if self.value is REMOVED else json.dumps(self.value)}"


def _changed(whole: Any, path: Path, value: Any) -> Any:
    step, *rest = path
    inside = whole[step] if rest else None
    new = _changed(inside, tuple(rest), value) if rest else value
    copy: Any = dict(whole) if isinstance(whole, dict) else list(whole)
    if new is REMOVED:
        copy.pop(step, None) if isinstance(copy, dict) else copy.pop(step)
    elif isinstance(copy, list) and step == len(copy):
        copy.append(new)
    else:
        copy[step] = new
    return copy


class Values:
    """What stands where in some objects."""

    def __init__(self) -> None:
        self._at: dict[Place, dict[str, Any]] = defaultdict(dict)
        self._keys: dict[Place, dict[str, None]] = defaultdict(dict)

    def learn(self, kind: str, objects: Iterable[Any]) -> None:
        for each in objects:
            self._learn((kind,), each)

    def _learn(self, place: Place, value: Any) -> None:
        known = self._at[place]
        if len(known) < MOST_OF_A_PLACE:
            known.setdefault(json.dumps(value, sort_keys=True), value)
        if isinstance(value, dict):
            for key, inner in value.items():
                self._keys[place][key] = None
                self._learn((*place, key), inner)
        elif isinstance(value, list):
            for inner in value:
                self._learn((*place, ELEMENT), inner)

    def at(self, place: Place) -> list[Any]:
        return list(self._at[place].values()) if place in self._at else []

    def keys(self, place: Place) -> list[str]:
        return list(self._keys[place]) if place in self._keys else []


class Changer:
    """Finds changes. `near` are the values of the case at hand, `far` those of all cases."""

    def __init__(self, dice: Random, near: Values, far: Values) -> None:
        self.dice, self.near, self.far = dice, near, far

    def change(self, kind: str, whole: Mapping[str, Any], towards: Sequence[str] = ()) -> Change | None:
        """A change of one leaf, or of a list, map or struct as one; None if the walk ended where nothing else is. The
        walk starts along the fields that it is to go `towards`."""
        value: Any = whole
        path: Path = ()
        place: Place = (kind,)
        given = list(towards)
        while True:
            step = given.pop(0) if given and isinstance(value, dict) else self._step(place, value)
            if step is None:
                return self._other(path, place, value)
            path, place = (*path, step), (*place, step if isinstance(step, str) else ELEMENT)
            known = step in value if isinstance(value, dict) else step < len(value)  # type: ignore[operator]
            if not known:
                found = self._found(place)
                return Change(path, self.dice.choice(found)) if found else None
            value = value[step]

    def _step(self, place: Place, value: Any) -> Step | None:
        """One further down, mostly to what is there; None from a leaf, and now and then for all that is here."""
        if len(place) > 1 and self.dice.random() < ALL_THAT_IS_HERE:
            return None
        if isinstance(value, dict):
            absent = [key for key in self._keys(place) if key not in value]
            keys = absent if absent and (not value or self.dice.random() < ANOTHER_FIELD) else sorted(value)
            weights = [INTEREST.get(key, 1.0) for key in keys]
            return self.dice.choices(keys, weights)[0] if any(weights) else None
        if isinstance(value, list):
            return self.dice.randint(0, len(value))
        return None

    def _keys(self, place: Place) -> list[str]:
        return self.far.keys(place) + (["deletionTimestamp"] if place[-1] == "metadata" else [])

    def _other(self, path: Path, place: Place, value: Any) -> Change | None:
        if not path:
            return None
        kind = self.dice.random()
        others = [REMOVED] if kind < 0.25 else self._next_to(place, value) if kind < 0.5 else []
        found = [o for o in others or self._found(place) if o is REMOVED or (o != value and _are_alike(o, value))]
        return Change(path, self.dice.choice(found)) if found else None

    def _found(self, place: Place) -> list[Any]:
        """What else stands in this place: in the case itself, or elsewhere."""
        words = list(WORDS.get(place[-1], ()))
        values = self.near.at(place) if self.dice.random() < 0.5 else self.far.at(place)
        return [*words, *(values or self.far.at(place))]

    def _next_to(self, place: Place, value: Any) -> list[Any]:
        """What is near a value of its type."""
        match value:
            case bool():
                return [not value]
            case str() | int() if len(place) > 1 and place[-2] in RESOURCES:
                return _amounts(value)
            case int():
                return [value + 1, value - 1, 0, 100]
            case str():
                return ["other", "", f"{value}x"]
        return []


def _are_alike(one: Any, other: Any) -> bool:
    """Both are structs, or lists, or neither."""
    return other is None or all(isinstance(one, kind) == isinstance(other, kind) for kind in (dict, list))


def _amounts(quantity: str | int) -> list[str]:
    try:
        milli = milli_value(quantity)
    except QuantityError:
        return ["1"]
    return [f"{milli * 8}m", f"{milli + 1000}m", f"{milli // 8}m", "0"]
