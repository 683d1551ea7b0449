"""A legacy Policy as values. What is absent and what is empty differ: None and () for lists."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ksp.policy.legacy.mistakes import Mistake


@dataclass(frozen=True, slots=True)
class ServiceAffinity:
    """Pods of a Service stay where these labels of nodes agree."""

    labels: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class LabelsPresence:
    """Nodes must have these labels, or must have none of them."""

    labels: tuple[str, ...] = ()
    presence: bool = False


@dataclass(frozen=True, slots=True)
class ServiceAntiAffinity:
    """Pods of a Service spread over the values of this label."""

    label: str = ""


@dataclass(frozen=True, slots=True)
class LabelPreference:
    """Nodes that have this label are better, or those that lack it."""

    label: str = ""
    presence: bool = False


@dataclass(frozen=True, slots=True)
class CapacityRatio:
    """requestedToCapacityRatioArguments: points (utilization, score), and resources with their weights."""

    shape: tuple[tuple[int, int], ...] = ()
    resources: tuple[tuple[str, int], ...] = ()


PredicateArgument = ServiceAffinity | LabelsPresence
PriorityArgument = ServiceAntiAffinity | LabelPreference | CapacityRatio


@dataclass(frozen=True, slots=True)
class Predicate:
    """An entry of `predicates`. `arguments` is None without `argument`; kube-scheduler wants one in it, no more and no
    fewer."""

    name: str
    arguments: tuple[PredicateArgument, ...] | None = None


@dataclass(frozen=True, slots=True)
class Priority:
    """An entry of `priorities`."""

    name: str
    weight: int = 0
    arguments: tuple[PriorityArgument, ...] | None = None


@dataclass(frozen=True, slots=True)
class LegacyPolicy:
    """A Policy. `extenders` have their fields as ksp.policy.extender_fields has them. `hard_weight` is its
    hardPodAffinitySymmetricWeight, 0 if it has none. `ignored` is what the text holds and nobody reads."""

    name: str = ""
    predicates: tuple[Predicate, ...] | None = None
    priorities: tuple[Priority, ...] | None = None
    extenders: tuple[Mapping[str, Any], ...] = ()
    hard_weight: int = 0
    checks_all: bool = False
    ignored: tuple[Mistake, ...] = field(default=())
