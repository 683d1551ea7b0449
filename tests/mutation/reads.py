"""What changed of an object for the language, by the paths that rules read it by, and whether a footprint names that.

The paths follow the schema: a path that leads to what changed, step for step, with every shorter one. So a change of
one leaf of the API's object shows under each of its names: `metadata.labels["a"]` is `labels["a"]`, too, and a
container's request is a part of `requests`, `nonzeroRequests` and `spec.containers`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any, Final

from ksp.check.schema import NODE, POD, FieldInfo, fields_of
from ksp.check.types import List, Map, Struct, Type
from ksp.compile.events import EVERYTHING, OF_PODS
from ksp.compile.footprint import Footprint
from ksp.compile.zeros import zero_of
from ksp.core.node_order import BETA_REGION, BETA_ZONE, REGION, ZONE
from ksp.model.info import NodeInfo, PodInfo

Steps = tuple[str, ...]

ELEMENT: Final = "[…]"
_STEP: Final = re.compile(r'\["[^"]*"\]|\[…\]|[^.\[]+')


def steps_of(written: str) -> Steps:
    """`labels["a"]` as its steps."""
    return tuple(_STEP.findall(written))


# ---- what changed


@dataclass(slots=True)
class Changed:
    """What changed, by paths: of the pod to be placed, of nodes, of the pods on them (with `node.`), and the kinds of
    other objects. `came_or_went` are the relations whose rows are not the same as before."""

    pod: set[Steps] = field(default_factory=set)
    node: set[Steps] = field(default_factory=set)
    pods: set[Steps] = field(default_factory=set)
    objects: set[str] = field(default_factory=set)
    came_or_went: set[str] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class Picture:
    """A node as the language sees it at one time."""

    fields: Mapping[str, Any]

    @staticmethod
    def of(node: NodeInfo) -> Picture:
        values = {name: _value(node, info) for name, info in fields_of(NODE.name).items()}
        return Picture({name: dict(v) if isinstance(v, dict) else v for name, v in values.items()})


def of_nodes(old: Picture, new: Picture) -> set[Steps]:
    """The paths that lead to other values."""
    return set(_of_fields(NODE.name, old.fields, new.fields))


def of_pods(old: PodInfo, new: PodInfo) -> set[Steps]:
    """The same of pods, but for the nodes that they are on."""
    infos = {name: info for name, info in fields_of(POD.name).items() if name != "node"}
    values = [{name: _value(pod, info) for name, info in infos.items()} for pod in (old, new)]
    return set(_of_fields(POD.name, *values))


def _of_fields(struct: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[Steps]:
    infos = fields_of(struct)
    for name in old:
        if old[name] is not new[name]:
            yield from _of_values(infos[name].type, old[name], new[name], (name,))


def _value(holder: Any, info: FieldInfo) -> Any:
    for attribute in info.path:
        holder = getattr(holder, attribute)
    return holder


def _of_values(type: Type, old: Any, new: Any, at: Steps) -> Iterator[Steps]:
    if old == new:
        return
    if old is None or new is None:
        yield at  # whether it is there
        zero = zero_of(type)
        old, new = (zero if value is None else value for value in (old, new))
    match type:
        case Struct(name):
            for part, info in fields_of(name).items():
                yield from _of_values(info.type, _value(old, info), _value(new, info), (*at, part))
        case Map(_, inner):
            for key in {**old, **new}:
                if key not in old or key not in new:
                    yield (*at, f'["{key}"]')
                else:
                    yield from _of_values(inner, old[key], new[key], (*at, f'["{key}"]'))
        case List(inner):
            if len(old) != len(new):
                yield at
            zero = zero_of(inner)
            for a, b in zip_longest(old, new, fillvalue=zero):
                yield from _of_values(inner, a, b, (*at, ELEMENT))
        case _:
            if old != new:
                yield at


# ---- whether a footprint names it

Way = tuple[str, tuple[str, ...]]
"""A kind of objects, "pod" is the one that is to be placed, and the names of fields that lead into one."""

# Where the language has a shorter way to what the API says, or something that follows from it.
LONGER: Final[Mapping[str, Steps]] = {
    "labels": ("metadata", "labels"), "annotations": ("metadata", "annotations"), "name": ("metadata", "name"),
    "namespace": ("metadata", "namespace"), "terminating": ("metadata", "deletionTimestamp"),
    "allocatable": ("status", "allocatable"), "images": ("status", "images"), "podCount": ("spec",),
    "requiredAffinity": ("spec", "affinity", "podAffinity"), "preferredAffinity": ("spec", "affinity", "podAffinity"),
    "requiredAntiAffinity": ("spec", "affinity", "podAntiAffinity"), "affinityError": ("spec", "affinity"),
    "preferredAntiAffinity": ("spec", "affinity", "podAntiAffinity"), EVERYTHING: (),
    "requests": ("spec", "containers"), "nonzeroRequests": ("spec", "containers"), "hostPorts": ("spec", "containers"),
    "claimNames": ("spec", "volumes"), "requested": ("spec", "containers"), "nonzeroRequested": ("spec", "containers"),
}  # fmt: skip


def _in_the_api(steps: Steps) -> Steps:
    """The same part, as far as the way to it is one: not into lists, and to no entry that the footprint leaves open."""
    first, *rest = steps
    far = [*LONGER.get(first, (first,))]
    if first not in LONGER or first in ("labels", "annotations", "allocatable", "images"):
        far += rest
    until = far.index(ELEMENT) if ELEMENT in far else len(far)
    return tuple(step.removeprefix('["').removesuffix('"]') for step in far[:until])


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a footprint. `of` is pod, node, objects, or the relation of a view whose rows are read."""

    of: str
    steps: Steps

    def __str__(self) -> str:
        return f"{self.of}: {''.join(s if s[0] == '[' else '.' + s for s in self.steps).removeprefix('.')}"

    def ways(self) -> Iterator[Way]:
        """Where, in objects as the API has them, it comes from."""
        match self.of, self.steps[0]:
            case "objects", kind:
                yield kind, ()
            case "pod", _:
                yield "pod", _in_the_api(self.steps)
            case "pods", "node":
                yield from Part("node", self.steps[1:] or (EVERYTHING,)).ways()
            case "pods", _:
                yield "pods", _in_the_api(self.steps)
            case _, head if head in OF_PODS:
                yield "pods", _in_the_api(self.steps)
            case _:
                yield "nodes", _in_the_api(self.steps)

    def names(self, changed: Changed) -> bool:
        """It may be another after the change."""
        match self.of:
            case "objects":
                return self.steps[0] in changed.objects
            case "pod":
                return self._leads_to(changed.pod)
            case "pods":
                return self._leads_to(changed.pods)
            case _:
                return self._leads_to(changed.node)

    def _leads_to(self, paths: Iterable[Steps]) -> bool:
        return any(self._is_before(path) for path in paths)

    def _is_before(self, path: Steps) -> bool:
        if self.steps == (EVERYTHING,):
            return True
        return len(self.steps) <= len(path) and all(
            mine == theirs or (mine == ELEMENT and theirs[0] == "[")
            for mine, theirs in zip(self.steps, path, strict=False)
        )


@dataclass(frozen=True, slots=True)
class Named:
    """What a footprint names."""

    parts: tuple[Part, ...]
    relations: frozenset[str]

    @staticmethod
    def by(footprint: Footprint) -> Named:
        of = {"pod": footprint.pod, "node": footprint.node, "objects": footprint.objects}
        parts = [Part(name, steps_of(written)) for name, paths in of.items() for written in paths]
        parts += [Part(view.relation, steps_of(written)) for view in footprint.views for written in view.rows]
        relations = {view.relation for view in footprint.views}
        if any(view.ordered for view in footprint.views):  # the order of nodes goes by their zones
            parts += [Part("nodes", ("labels", f'["{key}"]')) for key in (ZONE, REGION, BETA_ZONE, BETA_REGION)]
            relations.add("nodes")
        return Named(tuple(dict.fromkeys(parts)), frozenset(relations))

    def of(self, changed: Changed) -> list[Part]:
        """The parts that may be others after the change; for views whose rows came or went a part without steps."""
        rows = [Part(relation, ()) for relation in sorted(self.relations & changed.came_or_went)]
        return [*(part for part in self.parts if part.names(changed)), *rows]

    def ways(self) -> list[Way]:
        """Where changes may matter."""
        return sorted({way for part in self.parts for way in part.ways()})
