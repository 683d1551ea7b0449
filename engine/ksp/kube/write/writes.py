"""What the scheduler writes to pods: bindings, and why a pod has no node.

For each pod these happen one after another: a binding waits for a patch that is in flight and takes the place of one
that waits, so that a late `PodScheduled=False` does not come after the `True` of the binding.
"""

from __future__ import annotations

from typing import Protocol

from ksp.kube.http.client import Client
from ksp.kube.timers import Timers
from ksp.kube.wall_clock import SystemWallClock, WallClock
from ksp.kube.write.binding import Binder, BindingObserver, Bound, NotBound
from ksp.kube.write.latest_only import LatestOnly
from ksp.kube.write.patience import Patience
from ksp.kube.write.status_patches import ConditionObserver, Patched, StatusPatches
from ksp.model.info import PodInfo

__all__ = ["Bound", "NotBound", "Patched", "Unobserved", "WriteObserver", "Writer"]


class WriteObserver(BindingObserver, ConditionObserver, Protocol):
    """Hears of writes, for the log and the metrics. Each method returns at once and raises nothing."""


class Unobserved:
    """Tells nobody."""

    def unsettled(self, pod: PodInfo, node: str, why: str) -> None: ...

    def condition(self, pod: PodInfo, outcome: Patched, why: str) -> None: ...


class Writer:
    """All writes share `client`, and with it its rate limit; events have a client of their own."""

    def __init__(
        self, client: Client, timers: Timers, clock: WallClock | None = None, observer: WriteObserver | None = None,
        patience: Patience | None = None,
    ) -> None:  # fmt: skip
        observer, patience = observer or Unobserved(), patience or Patience()
        self._turns = LatestOnly()
        self._binder = Binder(client, timers, observer, patience)
        self._patches = StatusPatches(client, timers, clock or SystemWallClock(), observer, self._turns, patience)

    async def bind(self, pod: PodInfo, node: str) -> Bound | NotBound:
        """Bind the pod to the node; returns when it is certain whether it is there (see `ksp.kube.write.binding`).

        A binding of a pod for which one waits already is the caller's bug and raises ValueError.
        """
        if not await self._turns.enter(pod.uid, insist=True):
            raise ValueError(f"{pod!r} has a binding that waits already")
        try:
            return await self._binder.bind(pod, node)
        finally:
            self._turns.leave(pod.uid)

    async def set_condition(
        self, pod: PodInfo, reason: str, message: str, nominated_node: str | None = None
    ) -> Patched:
        """PodScheduled=False with a reason (Unschedulable, SchedulerError) and a message that is cut at 32 KiB.

        `nominated_node` names the node that the pod waits for, "" takes the name away, None leaves it. Nothing is sent
        where nothing changes; failures are the result and are told to the observer, never raised.
        """
        return await self._patches.set_condition(pod, reason, message, nominated_node)
