"""What the scheduler writes to pods: bindings, why a pod has no node, and that it has to go for another's sake.

For each pod the first two happen one after another: a binding waits for a patch that is in flight and takes the place
of one that waits, so that a late `PodScheduled=False` does not come after the `True` of the binding.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from ksp.kube.http.client import Client
from ksp.kube.timers import Timers
from ksp.kube.wall_clock import SystemWallClock, WallClock
from ksp.kube.write.binding import Binder, BindingObserver, Bound, NotBound, Send
from ksp.kube.write.evictions import Evicted, EvictionObserver, Evictor, Failed, Gone
from ksp.kube.write.latest_only import LatestOnly
from ksp.kube.write.patience import Patience
from ksp.kube.write.status_patches import ConditionObserver, Patched, StatusPatches
from ksp.kube.write.volumes import VolumeOrClaim, VolumesWritten, VolumeWriter, Wrote
from ksp.model.info import PodInfo
from ksp.model.storage import PersistentVolume, PersistentVolumeClaim

__all__ = [
    "Bound", "Evicted", "Failed", "Gone", "NotBound", "Patched", "Send", "Unobserved", "VolumeOrClaim",
    "VolumesWritten",
    "WriteObserver", "Writer", "Wrote",
]  # fmt: skip


class WriteObserver(BindingObserver, ConditionObserver, EvictionObserver, Protocol):
    """Hears of writes, for the log and the metrics. Each method returns at once and raises nothing."""


class Unobserved:
    """Tells nobody."""

    def unsettled(self, pod: PodInfo, node: str, why: str) -> None: ...

    def condition(self, pod: PodInfo, outcome: Patched, why: str) -> None: ...

    def eviction(self, victim: PodInfo, outcome: Evicted | Gone | Failed) -> None: ...


class Writer:
    """All writes share `client`, and with it its rate limit; events have a client of their own."""

    def __init__(
        self, client: Client, timers: Timers, clock: WallClock | None = None, observer: WriteObserver | None = None,
        patience: Patience | None = None, *, marks_victims: bool = False,
    ) -> None:  # fmt: skip
        """`marks_victims`: whether pods are told by the condition DisruptionTarget that they are preempted."""
        observer, patience, clock = observer or Unobserved(), patience or Patience(), clock or SystemWallClock()
        self._turns = LatestOnly()
        self._binder = Binder(client, timers, observer, patience)
        self._volumes = VolumeWriter(client, timers, observer, patience)
        self._patches = StatusPatches(client, timers, clock, observer, self._turns, patience)
        self._evictor = Evictor(client, timers, clock, observer, patience, marks=marks_victims)

    async def bind(self, pod: PodInfo, node: str, send: Send | None = None) -> Bound | NotBound:
        """Bind the pod to the node; returns when it is certain whether it is there (see `ksp.kube.write.binding`). With
        `send` somebody else is asked to do that.

        A binding of a pod for which one waits already is the caller's bug and raises ValueError.
        """
        if not await self._turns.enter(pod.uid, insist=True):
            raise ValueError(f"{pod!r} has a binding that waits already")
        try:
            return await self._binder.bind(pod, node, send)
        finally:
            self._turns.leave(pod.uid)

    async def bind_volumes(
        self, pod: PodInfo, node: str, static: Sequence[tuple[PersistentVolume, PersistentVolumeClaim]],
        dynamic: Sequence[PersistentVolumeClaim], wrote: Wrote,
    ) -> VolumesWritten | NotBound:  # fmt: skip
        """Promise each volume of `static` to its claim, and have volumes made for the node for the claims of `dynamic`;
        returns when it is certain whether the API has that (see `ksp.kube.write.volumes`). `wrote` is told of each
        object that it has by then."""
        return await self._volumes.bind(pod, node, static, dynamic, wrote)

    async def set_condition(
        self, pod: PodInfo, reason: str, message: str, nominated_node: str | None = None
    ) -> Patched:
        """PodScheduled=False with a reason (Unschedulable, SchedulerError) and a message that is cut at 32 KiB.

        `nominated_node` names the node that the pod waits for, "" takes the name away, None leaves it. Nothing is sent
        where nothing changes; failures are the result and are told to the observer, never raised.
        """
        return await self._patches.set_condition(pod, reason, message, nominated_node)

    async def clear_nomination(self, pod: PodInfo) -> Patched:
        """`nominatedNodeName` names no node any more; the pod's condition stays. Else as `set_condition`."""
        return await self._patches.clear_nomination(pod)

    async def evict(self, victim: PodInfo, preemptor: PodInfo) -> Evicted | Gone | Failed:
        """Delete the victim, so that the preemptor finds room (see `ksp.kube.write.evictions`); never raises for what
        the server does."""
        return await self._evictor.evict(victim, preemptor)
