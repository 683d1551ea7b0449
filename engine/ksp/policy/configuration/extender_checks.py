"""What extenders of a configuration must be (validateExtenders)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from ksp.policy.extender_fields import is_insecure_with_ca, unusable
from ksp.policy.field_errors import Problem, Steps, invalid
from ksp.policy.resource_names import extended_resource_problems

AT: Final[Steps] = ("extenders",)
Value = Mapping[str, Any]


def extender_problems(extenders: Sequence[Value]) -> Iterator[Problem]:
    """What is wrong with the entries."""
    managed: set[str] = set()
    for i, given in enumerate(extenders):
        at = (*AT, i)
        yield from _entry(given, at)
        for j, resource in enumerate(given.get("managedResources", ())):
            name, where = resource.get("name", ""), (*at, "managedResources", j, "name")
            yield from extended_resource_problems(name, where)
            if name in managed:
                yield invalid(where, name, "duplicate extender managed resource name")
            managed.add(name)
    binders = sum(1 for given in extenders if given.get("bindVerb"))
    if binders > 1:
        yield invalid(AT, f"found {binders} extenders implementing bind", "only one extender can implement bind")


def _entry(given: Value, at: Steps) -> Iterator[Problem]:
    weight = given.get("weight", 0)
    if given.get("prioritizeVerb") and weight <= 0:
        yield invalid((*at, "weight"), weight, "must have a positive weight applied to it")
    yield from unusable(given, at)
    if is_insecure_with_ca(given):
        yield Problem(
            (*at, "tlsConfig", "insecure"), "Invalid value: true: certificates of a CA cannot be given with insecure"
        )
