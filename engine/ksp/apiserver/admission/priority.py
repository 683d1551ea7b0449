"""The Priority admission: from the class of a pod to its number, and one default class for all."""

from typing import Final

from ksp.apiserver.status import ApiStatusError, forbidden
from ksp.apiserver.strategy import Context, Json

CLASSES: Final = "priorityclasses.scheduling.k8s.io"


def admit_priority(pod: Json, context: Context) -> None:
    """Sets priority, preemptionPolicy, and the default class's name. Raises 403 if the pod says otherwise."""
    spec = pod["spec"]
    name = spec.get("priorityClassName", "")
    found = context.objects.get(CLASSES, "", name) if name else default_class(context)
    if name and found is None:
        if context.loading:
            return
        raise _forbidden(pod, f"no PriorityClass with name {name} was found")
    if found is not None:
        spec["priorityClassName"] = found["metadata"]["name"]
    _agree(pod, found, context)


def _agree(pod: Json, found: Json | None, context: Context) -> None:
    spec = pod["spec"]
    value = (found or {}).get("value", 0)
    policy = "PreemptLowerPriority" if found is None else found.get("preemptionPolicy")
    why = "must not be provided in pod spec; priority admission controller computed"
    if spec.get("priority", value) != value and not context.loading:
        text = f"the integer value of priority ({spec['priority']}) {why} {value} from the given PriorityClass name"
        raise _forbidden(pod, text)
    if policy is not None and spec.get("preemptionPolicy", policy) != policy and not context.loading:
        given = spec["preemptionPolicy"]
        text = f"the string value of PreemptionPolicy ({given}) {why} {policy} from the given PriorityClass name"
        raise _forbidden(pod, text)
    spec.setdefault("priority", value)
    if policy is not None:
        spec.setdefault("preemptionPolicy", policy)


def default_class(context: Context) -> Json | None:
    """The class of pods that name none: of several, the least."""
    found = [each for each in context.objects.list(CLASSES) if each.get("globalDefault")]
    return min(found, key=lambda each: each.get("value", 0), default=None)


def _forbidden(pod: Json, why: str) -> ApiStatusError:
    meta = pod["metadata"]
    return forbidden("", "pods", meta.get("name") or meta.get("generateName", ""), why)
