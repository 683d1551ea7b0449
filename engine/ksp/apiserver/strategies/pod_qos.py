"""The quality of service class of a pod."""

from typing import Final, Literal

from ksp.apiserver.codec.quantities import parse
from ksp.apiserver.strategy import Json

Class = Literal["Guaranteed", "Burstable", "BestEffort"]
_COUNTED: Final = ("cpu", "memory")


def class_of(spec: Json) -> Class:
    """Guaranteed: each container limits cpu and memory to what it asks for. BestEffort: none asks for either."""
    containers = [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]
    amounts = [_amounts(container.get("resources") or {}) for container in containers]
    if not any(requests or limits for requests, limits in amounts):
        return "BestEffort"
    guaranteed = all(set(limits) == set(_COUNTED) and requests == limits for requests, limits in amounts)
    return "Guaranteed" if guaranteed else "Burstable"


def _amounts(resources: Json) -> tuple[Json, Json]:
    requests, limits = (_counted(resources.get(name) or {}) for name in ("requests", "limits"))
    return requests, limits


def _counted(amounts: Json) -> Json:
    """Cpu and memory, where they are more than 0."""
    read = {name: parse(amounts[name])[0] for name in _COUNTED if name in amounts}
    return {name: value for name, value in read.items() if value > 0}
