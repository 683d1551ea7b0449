"""Tells of pods whose fields the policy does not read: each pod's user once for each field, and counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from ksp.core.changes import UNREAD_FIELD, Warn
from ksp.model.info import PodInfo
from ksp.policy.unread import Unread, UnreadBy, UnreadOfRunning

REFUSED = "refused"
WARNED = "warned"


class UnreadPods:
    """`counts` has how many pods used an unread field, by its path and by what became of them: `refused`, `warned`.

    `by` finds, for each scheduler's name, what its profile does not read; `running` what no profile reads of pods that
    run. Both are those of the policy that decides.
    """

    def __init__(self, by: Mapping[str, UnreadBy], running: UnreadOfRunning) -> None:
        self.counts: Counter[tuple[str, str]] = Counter()
        self.by = by
        self.running = running
        # By uid, what was counted of a pod; only pods that use unread fields are here.
        self._known: dict[str, set[tuple[str, str]]] = {}
        self._unsaid: list[Warn] = []

    def decided(self, pod: PodInfo, unread: Unread) -> None:
        """An attempt with the pod came upon these fields."""
        self._new(pod, unread.refused, REFUSED)
        warned = self._new(pod, unread.warned, WARNED)
        if warned:
            message = self.by[pod.scheduler_name].warning(Unread(warned=warned))
            self._unsaid.append(Warn(pod, UNREAD_FIELD, warned, message))

    def runs(self, pod: PodInfo) -> None:
        """The pod is shown on a node: what keeps newcomers away from it may not be read."""
        paths = self._new(pod, self.running.of(pod), WARNED)
        if paths:
            self._unsaid.append(Warn(pod, UNREAD_FIELD, paths, UnreadOfRunning.warning(paths)))

    def said(self) -> tuple[Warn, ...]:
        """What is to be told now; each is given once."""
        if not self._unsaid:
            return ()
        warnings, self._unsaid = tuple(self._unsaid), []
        return warnings

    def forget(self, uid: str) -> None:
        """The pod is gone."""
        if self._known.pop(uid, None) is not None:
            self._unsaid = [warning for warning in self._unsaid if warning.pod.uid != uid]

    def _new(self, pod: PodInfo, paths: Iterable[str], outcome: str) -> tuple[str, ...]:
        """Those of the paths that were not counted for the pod yet; they are now."""
        if not paths:
            return ()
        known = self._known.setdefault(pod.uid, set())
        new = tuple(path for path in paths if (path, outcome) not in known)
        known.update((path, outcome) for path in new)
        self.counts.update((path, outcome) for path in new)
        return new
