"""What plugins refuse of the arguments that a legacy Policy comes to, in their words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from ksp.policy.field_errors import Steps
from ksp.policy.legacy.mistakes import Mistake, listed, mistake, quoted
from ksp.policy.legacy.model import CapacityRatio
from ksp.policy.legacy.names import CAPACITY_RATIO, GENERAL, NODE_LABEL, PREDICATES
from ksp.policy.legacy.naming import Label, Named

FULL: Final = 100
BEST: Final = 10


def plugin_mistakes(named: Named, scheduler_name: str) -> Iterator[Mistake]:
    """Those of arguments first, then plugins that stand twice at an extension point."""
    profile = f"initializing profiles: creating profile for scheduler name {scheduler_name}: "
    started = f"{profile}error initializing plugin "
    labels = named.labels
    for present, absent in ((labels.present, labels.absent), (labels.preferred, labels.avoided)):
        for said, steps in _conflict(present, absent):
            yield mistake(f'{started}"{NODE_LABEL}": {said}', steps)
    if CAPACITY_RATIO in named.priorities:
        ratio, at = named.ratio or (CapacityRatio(), named.priorities[CAPACITY_RATIO][1])
        for said, steps in (*_shape_mistakes(ratio, at), *_resource_mistakes(ratio, at)):
            yield mistake(f'{started}"{CAPACITY_RATIO}": {said}', steps)
    for plugin, point, steps in _twice(named):
        yield mistake(f'{profile}plugin "{plugin}" already registered as "{point}"', steps)


def _conflict(present: Sequence[Label], absent: Sequence[Label]) -> Iterator[tuple[str, Steps]]:
    """The first label that is in both lists."""
    wanted = [label for label, _ in present]
    unwanted = [label for label, _ in absent]
    for label, steps in absent:
        if label in wanted:
            lists = f"the present({listed(wanted)}) and absent({listed(unwanted)}) label list"
            yield f"detecting at least one label (e.g., {quoted(label)}) that exist in both {lists}", steps
            return


def _shape_mistakes(ratio: CapacityRatio, at: Steps) -> Iterator[tuple[str, Steps]]:
    points = ratio.shape
    if not points:
        yield "at least one point must be specified", (*at, "shape")
    for i in range(1, len(points)):
        before, after = points[i - 1][0], points[i][0]
        if before >= after:
            said = f"utilization values must be sorted. Utilization[{i - 1}]=={before} >= Utilization[{i}]=={after}"
            yield said, (*at, "shape", i, "utilization")
    for i, (utilization, score) in enumerate(points):
        for name, value, most in (("utilization", utilization, FULL), ("score", score, BEST)):
            if not 0 <= value <= most:
                bound = "less than 0" if value < 0 else f"greater than {most}"
                said = f"{name} values must not be {bound}. {name.capitalize()}[{i}]=={value}"
                yield said, (*at, "shape", i, name)


def _resource_mistakes(ratio: CapacityRatio, at: Steps) -> Iterator[tuple[str, Steps]]:
    for i, (name, weight) in enumerate(ratio.resources):
        if weight < 1:
            yield f"resource {name} weight {weight} must not be less than 1", (*at, "resources", i, "weight")


def _twice(named: Named) -> Iterator[tuple[str, str, Steps]]:
    """GeneralPredicates beside one of those that it is made of: plugin, kind of plugin, place."""
    if GENERAL not in named.predicates:
        return
    told: set[str] = set()
    for point, kind in (("preFilter", "PreFilterPlugin"), ("filter", "FilterPlugin")):
        general = PREDICATES[GENERAL].get(point, ())
        for name, points in PREDICATES.items():
            if name == GENERAL or name not in named.predicates:
                continue
            for plugin in points.get(point, ()):
                if plugin in general and plugin not in told:
                    told.add(plugin)
                    yield plugin, kind, named.predicates[name]
