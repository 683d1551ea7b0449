"""Who comes before whom, and who must not be disturbed: priorities and disruption budgets."""

from __future__ import annotations

import msgspec

from ksp.model.meta import Int, LabelSelector, ObjectMeta
from ksp.model.quantity import Quantity


class PodDisruptionBudgetSpec(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """The pods that a budget protects, as in policy/v1: by an empty selector all of its namespace, by none no pod. In
    v1beta1 an empty selector protects none: it is decoded as None. How many have to be there, or may be missing, is a
    number or a part of a hundred, such as `50%`; the scheduler does not look at it, but at the status."""

    selector: LabelSelector | None = None
    min_available: Quantity | None = None
    max_unavailable: Quantity | None = None


class PodDisruptionBudgetStatus(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """`disrupted_pods`: when each pod, by name, was evicted; those are not to be counted again."""

    disruptions_allowed: Int = 0
    disrupted_pods: dict[str, str] = msgspec.field(default_factory=dict)


class PodDisruptionBudget(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """How many of some pods may be disturbed at a time."""

    metadata: ObjectMeta = ObjectMeta()
    spec: PodDisruptionBudgetSpec = PodDisruptionBudgetSpec()
    status: PodDisruptionBudgetStatus = PodDisruptionBudgetStatus()


def as_in_v1(budget: PodDisruptionBudget, api_version: str) -> PodDisruptionBudget:
    """A budget that was written in another version of the API, as policy/v1 says the same."""
    if api_version != "policy/v1beta1" or budget.spec.selector != LabelSelector():
        return budget
    return msgspec.structs.replace(budget, spec=msgspec.structs.replace(budget.spec, selector=None))


class PriorityClass(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """A name for a priority."""

    metadata: ObjectMeta = ObjectMeta()
    value: Int = 0
    global_default: bool = False
    preemption_policy: str | None = None
