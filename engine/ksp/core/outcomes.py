"""What becomes of decisions: of bindings, of volumes, of evictions, and of pods that lose what they were given.

Each of them can free something, and then others are told; or ask for something, which stands in `effects` until the
driver takes it. Outcomes can be late: for a pod that is not as it was they change nothing.
"""

from __future__ import annotations

from collections.abc import Container, Iterable

from ksp.core.bindings import Bindings, Ended, prebind_error
from ksp.core.cache import SchedulerCache
from ksp.core.changes import PROFILE_REMOVED, SCHEDULER_ERROR, ClearNomination, Effect, Report, Warn
from ksp.core.evictions import Evictions
from ksp.core.queue import Place, QueuedPod, SchedulingQueue
from ksp.core.wake import ROOM, Wake, cause_of, pod_gone
from ksp.model.info import PodInfo


class Outcomes:
    """Takes outcomes in. `effects` are those that follow from them, for the driver. `wake` and `ours`, the names of the
    schedulers whose pods are to be scheduled, are those of the policy that decides."""

    def __init__(
        self, cache: SchedulerCache, queue: SchedulingQueue, bindings: Bindings, evictions: Evictions, wake: Wake,
        ours: Container[str],
    ) -> None:  # fmt: skip
        self.cache = cache
        self.queue = queue
        self.bindings = bindings
        self.evictions = evictions
        self.wake = wake
        self.ours = ours
        self.effects: list[Effect] = []

    # ---- for others

    def move(self, events: frozenset[str], now: float) -> None:
        """Something happened that may help pods that wait."""
        if events:
            self.queue.move(lambda rules: self.wake.may_help(rules, events), now, cause_of(events))

    def release(self, uid: str, claim: str | None, now: float) -> None:
        """If the pod was nominated to a node, and is not any more nor has its place there, others may take it."""
        if claim is not None and claim not in (self.queue.nominations.node_of(uid), self.cache.node_name_of(uid)):
            self.move(ROOM, now)

    def leave(self, pod: PodInfo) -> None:
        """No profile decides for the pod any more: it waits here no longer, and claims no node."""
        self.evictions.give_up(pod.uid)
        if self.queue.nominations.node_of(pod.uid) or self.queue.nominations.said(pod):
            self.effects.append(ClearNomination(pod))
        self.queue.delete(pod.uid)
        said = f'the policy has no profile "{pod.scheduler_name}" any more: the pod waits until one decides for it'
        self.effects.append(Warn(pod, PROFILE_REMOVED, (), said))

    def _try_again(self, queued: QueuedPod, now: float) -> None:
        """What the pod was given it does not have after all."""
        if queued.info.scheduler_name in self.ours:
            self.queue.retry(queued, now)
        else:
            self.leave(queued.info)

    # ---- bindings

    def bind_succeeded(self, uid: str, now: float) -> None:
        """The pod is bound; the watch will show it."""
        self.cache.finish_binding(uid, now)
        self.move(self.bindings.end(uid), now)

    def bind_failed(self, uid: str, now: float) -> None:
        """The pod is not bound: it leaves the node, and is tried again after its backoff. If it went away and came back
        meanwhile, it waits for another attempt already."""
        forgotten = self.cache.forget(uid)
        if forgotten is not None:
            self.move(pod_gone(forgotten) | self.bindings.end(uid), now)
        queued = self.queue.get(uid)
        if queued is not None and queued.place is Place.IN_FLIGHT:
            self._try_again(queued, now)

    def volumes_written(self, uid: str, now: float) -> None:
        """The API was asked to bind the pod's claims; once the watch shows that they are bound, there is a Bind."""
        self.waited(self.bindings.volumes_written(uid, now), now)

    def waited(self, ended: Ended, now: float) -> None:
        """Pods whose claims are bound are bound next; those whose claims cannot be have to find another place."""
        self.effects += ended.bound
        for pod, error in ended.failed:
            self.bind_failed(pod.uid, now)
            self.effects.append(Report(pod, SCHEDULER_ERROR, prebind_error(pod, f"binding volumes: {error}")))

    # ---- places that are given up

    def expire(self, now: float) -> None:
        """What has waited too long: for its claims, or, bound, for a watch to show it."""
        self.waited(self.bindings.timed_out(now), now)
        self._give_back(self.cache.expire(now), now)

    def relisted(self, began: float, now: float) -> None:
        """A list of all pods that was asked for at `began` has been told. Pods whose binding had ended before, and that
        have no node there, are not bound."""
        self._give_back(self.cache.unshown(began), now)

    def _give_back(self, pods: Iterable[PodInfo], now: float) -> None:
        """These pods have no place after all, and are tried again."""
        for pod in pods:
            queued = self.queue.get(pod.uid)
            if queued is not None:
                self._try_again(queued, now)
            self.move(pod_gone(pod), now)

    # ---- nominations

    def evictions_ended(self, uid: str, node: str, now: float, *, done: bool) -> None:
        """The pods that had to go from the node for that pod's sake are deleted; or, if not `done`, some are not: then
        it claims that node no longer, and is tried again. What it has on another node by now stays."""
        if done:
            return
        if self.evictions.node_of(uid) == node:
            self.evictions.give_up(uid)
            self.queue.activate(uid, now)
        if self.queue.nominations.node_of(uid) == node:
            self.lose_node(uid, now)

    def lose_node(self, uid: str, now: float) -> None:
        """A pod that waits loses its claim on a node, if it has one, and is tried again."""
        claim, queued = self.queue.nominations.node_of(uid), self.queue.get(uid)
        if claim is None or queued is None:
            return
        self.queue.withdraw_nomination(queued.info)
        self.effects.append(ClearNomination(queued.info))
        self.release(uid, claim, now)
        self.queue.activate(uid, now)
