"""What kube-scheduler asks of a legacy Policy before it looks at any name, in its order and words."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ksp.policy.legacy.extenders import extender_mistakes
from ksp.policy.legacy.mistakes import Mistake, Steps, mistake
from ksp.policy.legacy.model import (
    CapacityRatio,
    LabelPreference,
    LegacyPolicy,
    Priority,
    PriorityArgument,
    ServiceAntiAffinity,
)
from ksp.policy.legacy.words import quoted

TOO_HEAVY: Final = (2**63 - 1) // 10
"""The first weight that kube-scheduler refuses."""
HARDEST: Final = 100
_KINDS: Final[dict[type[PriorityArgument], str]] = {
    LabelPreference: "LabelPreference",
    ServiceAntiAffinity: "ServiceAntiAffinity",
    CapacityRatio: "RequestedToCapacityRatio",
}


def validation_mistakes(policy: LegacyPolicy) -> Iterator[Mistake]:
    first: dict[str, Priority] = {}
    for i, priority in enumerate(policy.priorities or ()):
        yield from _priority_mistakes(priority, ("priorities", i), first)
    yield from extender_mistakes(policy.extenders)
    if not 0 <= policy.hard_weight <= HARDEST:
        name = "hardPodAffinitySymmetricWeight"
        yield mistake(f"{name}: Invalid value: {policy.hard_weight}: not in valid range [0-{HARDEST}]", (name,))


def _priority_mistakes(priority: Priority, steps: Steps, first: dict[str, Priority]) -> Iterator[Mistake]:
    """`first` holds the priorities with arguments so far, by the kind of those."""
    if not 0 < priority.weight < TOO_HEAVY:
        said = f"Priority {priority.name} should have a positive weight applied to it or it has overflown"
        yield mistake(said, (*steps, "weight"))
    if priority.arguments is None:
        return
    if not priority.arguments:
        yield mistake(f"No priority arguments set for priority {priority.name}", (*steps, "argument"))
        return
    kind = _KINDS[type(priority.arguments[0])]
    other = first.get(kind)
    if other is not None and kind == "RequestedToCapacityRatio":
        said = f'Priority {quoted(priority.name)} redeclares custom priority "{kind}", from:{quoted(other.name)}'
        yield mistake(said, steps)
    elif other is not None and other.weight != priority.weight:
        said = f"{kind}  priority {quoted(priority.name)} has a different weight with {quoted(other.name)}"
        yield mistake(said, (*steps, "weight"))
    else:
        first[kind] = priority
