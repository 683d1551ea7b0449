"""What can be told of the scheduler's work, to metrics and to whoever wants to show progress."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from ksp.core.changes import PodVolumes
from ksp.core.scheduler import Step
from ksp.model.info import PodInfo
from ksp.policy.extender import Extender


@dataclass(frozen=True, slots=True)
class Binding:
    """A binding on its way: of the pod, by the `extender` if there is one, or, if there are `volumes`, of these before
    it. Times are those of the loop's
    clock: when the pod was first seen waiting, when the attempt began, when it was known that this can be bound."""

    pod: PodInfo
    node: str
    attempt: int
    first_added: float
    began: float
    decided: float
    volumes: PodVolumes | None = None
    extender: Extender | None = None


class Observer(Protocol):
    """Is told of things as they happen, on the event loop. It must be quick and must not raise."""

    def decided(self, step: Step, seconds: float) -> None:
        """An attempt was decided, within that time."""
        ...

    def bound(self, binding: Binding, now: float) -> None:
        """The API server has the binding."""
        ...

    def not_bound(self, binding: Binding, message: str, now: float) -> None:
        """The pod could not be bound, and is tried again unless it is gone."""
        ...

    def wait_failed(self, pod: PodInfo, message: str) -> None:
        """The pod's volumes were asked for, and were not bound in time, or cannot be; it is tried again."""
        ...

    def fault(self, where: str, pod: PodInfo | None) -> None:
        """A fault of ksp itself was caught; `pod` is whom it concerned, if that is known."""
        ...


class Observers:
    """Several in the place of one."""

    def __init__(self, observers: Sequence[Observer] = ()) -> None:
        self._all = tuple(observers)

    def decided(self, step: Step, seconds: float) -> None:
        for each in self._all:
            each.decided(step, seconds)

    def bound(self, binding: Binding, now: float) -> None:
        for each in self._all:
            each.bound(binding, now)

    def not_bound(self, binding: Binding, message: str, now: float) -> None:
        for each in self._all:
            each.not_bound(binding, message, now)

    def wait_failed(self, pod: PodInfo, message: str) -> None:
        for each in self._all:
            each.wait_failed(pod, message)

    def fault(self, where: str, pod: PodInfo | None) -> None:
        for each in self._all:
            each.fault(where, pod)
