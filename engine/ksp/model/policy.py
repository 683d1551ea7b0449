"""Who comes before whom, and who must not be disturbed: priorities and disruption budgets."""

from __future__ import annotations

import msgspec

from ksp.model.meta import Int, LabelSelector, ObjectMeta


class PodDisruptionBudgetSpec(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """The pods that a budget protects; no selector, or an empty one, protects none here."""

    selector: LabelSelector | None = None


class PodDisruptionBudgetStatus(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """`disrupted_pods`: when each pod, by name, was evicted; those are not to be counted again."""

    disruptions_allowed: Int = 0
    disrupted_pods: dict[str, str] = msgspec.field(default_factory=dict)


class PodDisruptionBudget(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """How many of some pods may be disturbed at a time."""

    metadata: ObjectMeta = ObjectMeta()
    spec: PodDisruptionBudgetSpec = PodDisruptionBudgetSpec()
    status: PodDisruptionBudgetStatus = PodDisruptionBudgetStatus()


class PriorityClass(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """A name for a priority."""

    metadata: ObjectMeta = ObjectMeta()
    value: Int = 0
    global_default: bool = False
    preemption_policy: str | None = None
