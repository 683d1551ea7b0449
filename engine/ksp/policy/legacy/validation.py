"""What kube-scheduler asks of a legacy Policy before it looks at any name, in its order and words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from ksp.policy.extender_fields import is_insecure_with_ca, unusable
from ksp.policy.field_errors import Steps
from ksp.policy.legacy.mistakes import Mistake, mistake, quoted
from ksp.policy.legacy.model import (
    CapacityRatio,
    LabelPreference,
    LegacyPolicy,
    Priority,
    PriorityArgument,
    ServiceAntiAffinity,
)
from ksp.policy.resource_names import extended_resource_errors

TOO_HEAVY: Final = (2**63 - 1) // 10
"""The first weight that kube-scheduler refuses."""
HARDEST: Final = 100
Value = Mapping[str, Any]
_KINDS: Final[dict[type[PriorityArgument], str]] = {
    LabelPreference: "LabelPreference",
    ServiceAntiAffinity: "ServiceAntiAffinity",
    CapacityRatio: "RequestedToCapacityRatio",
}


def validation_mistakes(policy: LegacyPolicy) -> Iterator[Mistake]:
    first: dict[str, Priority] = {}
    for i, priority in enumerate(policy.priorities or ()):
        yield from _priority_mistakes(priority, ("priorities", i), first)
    yield from _extender_mistakes(policy.extenders)
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


def _extender_mistakes(extenders: Sequence[Value]) -> Iterator[Mistake]:
    """What kube-scheduler does not accept, in its order."""
    binders: list[int] = []
    seen: set[str] = set()
    for i, extender in enumerate(extenders):
        steps: Steps = ("extenders", i)
        if extender.get("prioritizeVerb") and extender.get("weight", 0) <= 0:
            url = extender.get("urlPrefix", "")
            said = f"Priority for extender {url} should have a positive weight applied to it"
            yield mistake(said, (*steps, "weight"))
        if is_insecure_with_ca(extender):
            said = "specifying a root certificates file with the insecure flag is not allowed"
            yield mistake(said, (*steps, "tlsConfig", "insecure"))
        if extender.get("bindVerb"):
            binders.append(i)
        for j, resource in enumerate(extender.get("managedResources", ())):
            name, where = resource.get("name", ""), (*steps, "managedResources", j, "name")
            for said in extended_resource_errors(name):
                yield mistake(said, where)
            if name in seen:
                yield mistake(f"Duplicate extender managed resource name {name}", where)
            seen.add(name)
    if len(binders) > 1:
        said = f"Only one extender can implement bind, found {len(binders)}"
        yield mistake(said, ("extenders", binders[1], "bindVerb"))


def extender_warnings(extenders: Sequence[Value]) -> Iterator[Mistake]:
    """What kube-scheduler starts with."""
    for i, extender in enumerate(extenders):
        for problem in unusable(extender, ("extenders", i)):
            yield mistake(problem.text, problem.steps)
