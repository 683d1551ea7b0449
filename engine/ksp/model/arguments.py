"""Values that rules take as parameters: the types of kube-scheduler's plugin arguments."""

from __future__ import annotations

import msgspec

from ksp.model.meta import Int


class ResourceSpec(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """A resource and how much it counts."""

    name: str = ""
    weight: Int = 0


class UtilizationShapePoint(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """A point of the function from utilization (percent) to score (0 to 10)."""

    utilization: Int = 0
    score: Int = 0


class RequestedToCapacityRatioParam(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """The curve of the strategy RequestedToCapacityRatio."""

    shape: tuple[UtilizationShapePoint, ...] = ()


class ScoringStrategy(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """How NodeResourcesFit scores: LeastAllocated, MostAllocated or RequestedToCapacityRatio."""

    type: str = ""
    resources: tuple[ResourceSpec, ...] = ()
    requested_to_capacity_ratio: RequestedToCapacityRatioParam | None = None
