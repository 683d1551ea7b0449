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
class ManagedResource:
    """An extended resource that an extender manages."""

    name: str = ""
    ignored: bool = False


@dataclass(frozen=True, slots=True)
class LegacyExtender:
    """An entry of `extenders`: names as in the Policy's JSON, in Python's spelling. `timeout` is in nanoseconds, 0 for
    kube-scheduler's default. `tls` is None, or has the fields of ksp.policy.extender.ExtenderTLS."""

    url_prefix: str = ""
    filter_verb: str = ""
    prioritize_verb: str = ""
    preempt_verb: str = ""
    bind_verb: str = ""
    weight: int = 0
    enable_https: bool = False
    tls: Mapping[str, Any] | None = None
    timeout: int = 0
    node_cache_capable: bool = False
    managed: tuple[ManagedResource, ...] = ()
    ignorable: bool = False


@dataclass(frozen=True, slots=True)
class LegacyPolicy:
    """A Policy. `hard_weight` is its hardPodAffinitySymmetricWeight, 0 if it has none. `ignored` is what the text
    holds and nobody reads."""

    name: str = ""
    predicates: tuple[Predicate, ...] | None = None
    priorities: tuple[Priority, ...] | None = None
    extenders: tuple[LegacyExtender, ...] = ()
    hard_weight: int = 0
    checks_all: bool = False
    ignored: tuple[Mistake, ...] = field(default=())
