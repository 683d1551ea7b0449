"""Pods that have a node, from the decision until their binding is known to have ended.

    begin ──▶ no claim is open ─────────────────────────▶ Bind
          └─▶ BindVolumes ──▶ `volumes_written` ──▶ waits ──▶ Bind, once the watch shows its claims bound
                                                        └───▶ an error: `timeout` seconds are over, for instance

The pod and what its claims get are assumed from the first moment. `end` is told that it is over, whatever the phase.
What the API has of it by then stays, and of all else nothing is left. Outcomes can be late: for a pod that is not here
they change nothing.

Sources: Reserve, PreBind and Unreserve of kube-scheduler's plugin VolumeBinding. It asks every second whether the
claims are bound; here what the watch shows is looked at as it comes.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, TypeVar

from ksp.core.cache import SchedulerCache
from ksp.core.changes import Bind, BindVolumes, PodVolumes
from ksp.core.lazy_heap import LazyHeap
from ksp.core.volume_binder import Progress, VolumeBinder
from ksp.model.info import PodInfo
from ksp.model.storage import PersistentVolume
from ksp.policy.extender import Extender

TIMED_OUT: Final = "timed out waiting for the condition"

Claim = tuple[str, str]
"""Namespace and name."""
K = TypeVar("K")


@dataclass(slots=True)
class _Open:
    """A pod whose claims are being bound. `deadline` is there once the API has been told."""

    pod: PodInfo
    node: str
    timeout: float
    claims: tuple[Claim, ...]
    extender: Extender | None
    deadline: float | None = None


@dataclass(slots=True)
class Ended:
    """What has come of waiting: pods that can be bound now, and pods for which it failed, with the error."""

    bound: list[Bind] = field(default_factory=list)
    failed: list[tuple[PodInfo, str]] = field(default_factory=list)


class Bindings:
    """The pods of `cache` that are assumed, and their volumes."""

    def __init__(self, cache: SchedulerCache, volumes: VolumeBinder) -> None:
        self.cache = cache
        self.volumes = volumes
        self._open: dict[str, _Open] = {}
        self._by_claim: dict[Claim, set[str]] = {}
        self._by_node: dict[str, set[str]] = {}
        self._deadlines: LazyHeap[_Open] = LazyHeap()

    def __len__(self) -> int:
        """How many pods wait for their claims, or for the API to be told of these."""
        return len(self._open)

    def is_waiting(self, uid: str) -> bool:
        """Whether all that is left is to wait: the API was asked to bind the pod's claims."""
        found = self._open.get(uid)
        return found is not None and found.deadline is not None

    def begin(
        self, pod: PodInfo, node: str, volumes: PodVolumes, timeout: float, extender: Extender | None = None
    ) -> Bind | BindVolumes:
        """Assume the pod on the node, with its volumes; what is to be done next. `timeout` are the seconds in which its
        claims have to be bound once that was asked for. The `extender` is to bind it, if there is one."""
        self.cache.assume(pod, node)
        if not volumes:
            return Bind(pod, node, extender)
        self.volumes.assume(pod, node, volumes)
        claims = tuple((pod.namespace, name) for name in pod.claim_names)
        self._put(_Open(pod, node, timeout, claims, extender))
        return BindVolumes(pod, node, volumes)

    def volumes_written(self, uid: str, now: float) -> Ended:
        """The API was asked to bind the pod's claims."""
        found = self._open.get(uid)
        if found is None:
            return Ended()
        found.deadline = now + found.timeout
        self._deadlines.put(uid, found, (found.deadline,))
        return self._looked_at((uid,))

    def claim_changed(self, namespace: str, name: str) -> Ended:
        """The watch shows another claim of that name, or none."""
        return self._looked_at(self._by_claim.get((namespace, name), ()))

    def volume_changed(self, *versions: PersistentVolume | None) -> Ended:
        """The watch shows another volume, or none: these are the versions before and after."""
        named = [version.spec.claim_ref for version in versions if version is not None]
        claims = {(to.namespace, to.name) for to in named if to is not None}
        return self._looked_at({uid for claim in claims for uid in self._by_claim.get(claim, ())})

    def node_changed(self, name: str) -> Ended:
        """The watch shows another node of that name, or none."""
        return self._looked_at(self._by_node.get(name, ()))

    def timed_out(self, now: float) -> Ended:
        """Pods that have waited too long."""
        ended = Ended()
        while (first := self._deadlines.first()) is not None and first[0][0] <= now:
            self._close(first[1].pod.uid)
            ended.failed.append((first[1].pod, TIMED_OUT))
        return ended

    def next_deadline(self) -> float | None:
        """When the next pod has waited too long; None if none will."""
        first = self._deadlines.first()
        return None if first is None else first[0][0]

    def end(self, uid: str) -> frozenset[str]:
        """The pod is bound, or will not be: what was assumed for its claims, and is not there, is undone. The events
        that this is: none if we have bound it, as its claims were bound before. If somebody else has bound it while
        they are open, what was assumed for it is of no use."""
        self._close(uid)
        return self.volumes.revert(uid)

    # ---- moves

    def _looked_at(self, uids: Iterable[str]) -> Ended:
        """Those of the pods whose waiting is over."""
        ended = Ended()
        for uid in sorted(uids):
            found = self._open[uid]
            if found.deadline is None:  # the API's versions mean nothing before it was told
                continue
            progress = self.volumes.progress(uid)
            if progress is Progress.WAITING:
                continue
            self._close(uid)
            if progress is Progress.BOUND:
                ended.bound.append(Bind(found.pod, found.node, found.extender))
            else:
                ended.failed.append((found.pod, progress))
        return ended

    def _put(self, entry: _Open) -> None:
        uid = entry.pod.uid
        self._open[uid] = entry
        self._by_node.setdefault(entry.node, set()).add(uid)
        for claim in entry.claims:
            self._by_claim.setdefault(claim, set()).add(uid)

    def _close(self, uid: str) -> None:
        """Wait no more."""
        entry = self._open.pop(uid, None)
        if entry is None:
            return
        self._deadlines.discard(uid)
        _take_out(self._by_node, entry.node, uid)
        for claim in set(entry.claims):
            _take_out(self._by_claim, claim, uid)


def _take_out(index: dict[K, set[str]], key: K, uid: str) -> None:
    index[key].discard(uid)
    if not index[key]:
        del index[key]


def prebind_error(pod: PodInfo, why: str) -> str:
    """kube-scheduler's words for a pod whose volumes could not be bound."""
    return f'error while running "VolumeBinding" prebind plugin for pod "{pod.name}": {why}'
