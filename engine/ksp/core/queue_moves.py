"""Where a pod of the queue can be, what can happen to it, and where that leads."""

from __future__ import annotations

from enum import Enum
from typing import Final


class Place(Enum):
    """Where a pod is."""

    __hash__ = object.__hash__  # members are singletons; Enum's own hash is slow, and asked for with each move

    ABSENT = "absent"
    ACTIVE = "active"
    BACKOFF = "backoff"
    UNSCHEDULABLE = "unschedulable"
    IN_FLIGHT = "in flight"


class QueueEvent(Enum):
    """What can happen to a pod."""

    __hash__ = object.__hash__

    ADD = "add"
    POP = "pop"
    FAIL = "fail"
    RETRY = "retry"
    UPDATE = "update"
    DELETE = "delete"
    WAKE = "wake"
    EXPIRE = "expire"


AWAKE: Final = frozenset({Place.ACTIVE, Place.BACKOFF})

# Where an event can lead; `ksp.core.queue` tells the conditions.
TRANSITIONS: Final[dict[tuple[Place, QueueEvent], frozenset[Place]]] = {
    (Place.ABSENT, QueueEvent.ADD): frozenset({Place.ACTIVE}),
    (Place.ABSENT, QueueEvent.DELETE): frozenset({Place.ABSENT}),
    (Place.ABSENT, QueueEvent.FAIL): frozenset({Place.ABSENT}),
    (Place.ABSENT, QueueEvent.RETRY): frozenset({Place.ABSENT}),
    (Place.ACTIVE, QueueEvent.POP): frozenset({Place.IN_FLIGHT}),
    (Place.ACTIVE, QueueEvent.UPDATE): frozenset({Place.ACTIVE}),
    (Place.ACTIVE, QueueEvent.DELETE): frozenset({Place.ABSENT}),
    (Place.BACKOFF, QueueEvent.EXPIRE): frozenset({Place.ACTIVE}),
    (Place.BACKOFF, QueueEvent.UPDATE): frozenset({Place.ACTIVE, Place.BACKOFF}),
    (Place.BACKOFF, QueueEvent.DELETE): frozenset({Place.ABSENT}),
    (Place.UNSCHEDULABLE, QueueEvent.WAKE): AWAKE,
    (Place.UNSCHEDULABLE, QueueEvent.UPDATE): frozenset({Place.ACTIVE, Place.UNSCHEDULABLE}),
    (Place.UNSCHEDULABLE, QueueEvent.DELETE): frozenset({Place.ABSENT}),
    (Place.IN_FLIGHT, QueueEvent.FAIL): frozenset({Place.ACTIVE, Place.BACKOFF, Place.UNSCHEDULABLE}),
    (Place.IN_FLIGHT, QueueEvent.RETRY): AWAKE,
    (Place.IN_FLIGHT, QueueEvent.UPDATE): frozenset({Place.IN_FLIGHT}),
    (Place.IN_FLIGHT, QueueEvent.DELETE): frozenset({Place.ABSENT}),
}
