"""What becomes of a pod that is placed: assumed here, bound through the API, confirmed by a watch, or none of that.

A pod that the scheduler has decided on is *assumed*: it counts on its node from that moment, long before the API
server says so. Its states, as in kube-scheduler's cache:

                 assume              finish_binding
      ABSENT ---------------> ASSUMED ---------------> BOUND
      ^  | ^                   |   |                   |  |
      |  | |  forget, remove   |   | confirm   confirm |  |
      |  | +-------------------+   +--------+  +-------+  |
      |  |              confirm             v  v          |
      |  +--------------------------------> ADDED         |
      |                 remove                |           |
      +---------------------------------------+           |
      |             remove, expire, unshown               |
      +---------------------------------------------------+

- ABSENT: not placed, as far as is known here. ASSUMED: decided, the binding is under way. BOUND: the API accepted
  the binding, no watch has shown it yet. ADDED: the watch has shown it; this is how the cluster is.
- `confirm` comes from the watch and is the truth: told again it is an update, and a node other than the assumed
  one wins.
- `forget` and `finish_binding` are outcomes of a binding, and outcomes can be late: for a pod that was deleted or
  confirmed meanwhile they change nothing. `remove` too may come twice.
- BOUND expires only if a `ttl` is given. kube-scheduler 1.19 has 30 s, and over-commits nodes when a watch lags
  longer than that; later versions never expire, as is the default here.
- BOUND ends, too, if a list of all pods that was asked for after the binding had ended does not confirm it: the API
  server has lost it, as when it was restored from a backup.

What assumptions there are: identity is the uid. Names are unique at any time, so a pod that comes under the name
of another proves that the other is gone: it is removed first. A pod's node may not exist, or vanish and come back;
that changes what is visible (`ksp.core.state`), not the pod's state here.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from itertools import takewhile
from typing import Final

from ksp.core.errors import IllegalMoveError
from ksp.core.state import ClusterState
from ksp.model.info import PodInfo


class CachePhase(Enum):
    """Where a pod stands between decision and confirmation."""

    __hash__ = object.__hash__  # members are singletons; Enum's own hash is slow, and asked for with each move

    ABSENT = "absent"
    ASSUMED = "assumed"
    BOUND = "bound"
    ADDED = "added"


class CacheEvent(Enum):
    """What can happen to a pod."""

    __hash__ = object.__hash__

    ASSUME = "assume"
    FINISH_BINDING = "finish binding"
    FORGET = "forget"
    CONFIRM = "confirm"
    UPDATE = "update"
    REMOVE = "remove"
    EXPIRE = "expire"
    UNSHOWN = "unshown"


TRANSITIONS: Final[dict[tuple[CachePhase, CacheEvent], CachePhase]] = {
    (CachePhase.ABSENT, CacheEvent.ASSUME): CachePhase.ASSUMED,
    (CachePhase.ABSENT, CacheEvent.FINISH_BINDING): CachePhase.ABSENT,
    (CachePhase.ABSENT, CacheEvent.FORGET): CachePhase.ABSENT,
    (CachePhase.ABSENT, CacheEvent.CONFIRM): CachePhase.ADDED,
    (CachePhase.ABSENT, CacheEvent.REMOVE): CachePhase.ABSENT,
    (CachePhase.ASSUMED, CacheEvent.FINISH_BINDING): CachePhase.BOUND,
    (CachePhase.ASSUMED, CacheEvent.FORGET): CachePhase.ABSENT,
    (CachePhase.ASSUMED, CacheEvent.CONFIRM): CachePhase.ADDED,
    (CachePhase.ASSUMED, CacheEvent.UPDATE): CachePhase.ASSUMED,
    (CachePhase.ASSUMED, CacheEvent.REMOVE): CachePhase.ABSENT,
    (CachePhase.BOUND, CacheEvent.CONFIRM): CachePhase.ADDED,
    (CachePhase.BOUND, CacheEvent.UPDATE): CachePhase.BOUND,
    (CachePhase.BOUND, CacheEvent.REMOVE): CachePhase.ABSENT,
    (CachePhase.BOUND, CacheEvent.EXPIRE): CachePhase.ABSENT,
    (CachePhase.BOUND, CacheEvent.UNSHOWN): CachePhase.ABSENT,
    (CachePhase.ADDED, CacheEvent.FINISH_BINDING): CachePhase.ADDED,
    (CachePhase.ADDED, CacheEvent.FORGET): CachePhase.ADDED,
    (CachePhase.ADDED, CacheEvent.CONFIRM): CachePhase.ADDED,
    (CachePhase.ADDED, CacheEvent.UPDATE): CachePhase.ADDED,
    (CachePhase.ADDED, CacheEvent.REMOVE): CachePhase.ABSENT,
}


@dataclass(slots=True)
class _Placed:
    """A pod that is not ABSENT."""

    info: PodInfo
    node_name: str
    phase: CachePhase


class SchedulerCache:
    """The placed pods of a `ClusterState`, which it alone adds, updates and removes.

    `ttl` is how many seconds after the end of its binding an assumed pod waits to be confirmed; None is for ever. Times
    are those of the caller's clock, and never go back.
    """

    def __init__(self, state: ClusterState, ttl: float | None = None) -> None:
        if ttl is not None and ttl <= 0:
            raise ValueError(f"the time to live of an assumed pod must be positive, not {ttl}")
        self.state = state
        self.ttl = ttl
        self._placed: dict[str, _Placed] = {}
        self._uid_of: dict[tuple[str, str], str] = {}
        self._assumed: dict[str, _Placed] = {}
        # When the bindings of BOUND pods ended, in that order.
        self._ended: OrderedDict[str, float] = OrderedDict()

    # ---- questions

    def phase(self, uid: str) -> CachePhase:
        placed = self._placed.get(uid)
        return CachePhase.ABSENT if placed is None else placed.phase

    def is_assumed(self, uid: str) -> bool:
        """Whether the pod is placed by decision only: no watch has shown it."""
        return self.phase(uid) in {CachePhase.ASSUMED, CachePhase.BOUND}

    def get(self, uid: str) -> PodInfo | None:
        """The placed pod as last heard of; None if it is absent."""
        placed = self._placed.get(uid)
        return None if placed is None else placed.info

    def node_name_of(self, uid: str) -> str | None:
        """The node that the pod is placed on, which may not exist; None if it is absent."""
        placed = self._placed.get(uid)
        return None if placed is None else placed.node_name

    def namesake(self, info: PodInfo) -> str | None:
        """The uid of another placed pod of the same name, which must be gone by now."""
        uid = self._uid_of.get((info.namespace, info.name))
        return None if uid == info.uid else uid

    def assumed(self) -> list[PodInfo]:
        """The pods that wait for confirmation, in the order in which they were assumed."""
        return [placed.info for placed in self._assumed.values()]

    @property
    def assumed_count(self) -> int:
        return len(self._assumed)

    def next_deadline(self) -> float | None:
        """When the next assumed pod expires; None if none will."""
        first = next(iter(self._ended.values()), None)
        return None if first is None or self.ttl is None else first + self.ttl

    def __contains__(self, uid: object) -> bool:
        return uid in self._placed

    def __len__(self) -> int:
        return len(self._placed)

    # ---- decisions and their outcomes

    def assume(self, info: PodInfo, node_name: str) -> None:
        """Count the pod on the node from now on."""
        phase = self._next(info.uid, CacheEvent.ASSUME)
        self._enter(info, node_name, phase)

    def finish_binding(self, uid: str, now: float) -> None:
        """The API accepted the binding."""
        phase = self._next(uid, CacheEvent.FINISH_BINDING)
        if phase is CachePhase.BOUND:
            self._placed[uid].phase = phase
            self._ended[uid] = now

    def forget(self, uid: str) -> PodInfo | None:
        """The binding failed: the pod if it no longer counts; None if that is not for this outcome to say."""
        phase = self._next(uid, CacheEvent.FORGET)
        return self._leave(uid) if phase is CachePhase.ABSENT else None

    def expire(self, now: float) -> list[PodInfo]:
        """Give up the pods whose confirmation is overdue: those whose deadline is `now` or earlier."""
        ttl = self.ttl
        if ttl is None:
            return []
        return self._give_up(takewhile(lambda uid: self._ended[uid] + ttl <= now, self._ended), CacheEvent.EXPIRE)

    def unshown(self, began: float) -> list[PodInfo]:
        """Give up the pods whose binding had ended before that time, when a list of all pods was asked for: whatever it
        has was told, and confirmed none of them."""
        return self._give_up(takewhile(lambda uid: self._ended[uid] < began, self._ended), CacheEvent.UNSHOWN)

    def _give_up(self, uids: Iterable[str], event: CacheEvent) -> list[PodInfo]:
        due = list(uids)
        for uid in due:
            self._next(uid, event)
        return [pod for uid in due if (pod := self._leave(uid)) is not None]

    # ---- what the watch says

    def confirm(self, info: PodInfo, node_name: str) -> None:
        """The pod runs on that node, whatever was thought of it before."""
        phase = self._next(info.uid, CacheEvent.CONFIRM)
        placed = self._placed.get(info.uid)
        if placed is None or placed.node_name != node_name:
            self._enter(info, node_name, phase)
        else:
            self._ended.pop(info.uid, None)
            self._assumed.pop(info.uid, None)
            self._replace(placed, info)
            placed.phase = phase

    def update(self, info: PodInfo) -> None:
        """The pod changed, on the node where it is placed. An assumed pod stays assumed."""
        self._next(info.uid, CacheEvent.UPDATE)
        self._replace(self._placed[info.uid], info)

    def remove(self, uid: str) -> PodInfo | None:
        """The pod is deleted, or has ended; the pod as last heard of, None if it was absent."""
        self._next(uid, CacheEvent.REMOVE)
        return self._leave(uid)

    # ---- moves

    def _next(self, uid: str, event: CacheEvent) -> CachePhase:
        """The phase that the event leads to."""
        phase = self.phase(uid)
        following = TRANSITIONS.get((phase, event))
        if following is None:
            raise IllegalMoveError("cache", f"pod {uid}", phase.value, event.value)
        return following

    def _enter(self, info: PodInfo, node_name: str, phase: CachePhase) -> None:
        self.remove(info.uid)  # it may be elsewhere
        self._remove_namesake(info)
        self.state.add_pod(info, node_name)
        placed = self._placed[info.uid] = _Placed(info, node_name, phase)
        if phase is CachePhase.ASSUMED:
            self._assumed[info.uid] = placed
        self._uid_of[info.namespace, info.name] = info.uid

    def _replace(self, placed: _Placed, info: PodInfo) -> None:
        old = placed.info
        if (old.namespace, old.name) == (info.namespace, info.name):
            self.state.update_pod(info)
        else:  # the API does not do that; but nothing breaks
            self._remove_namesake(info)
            self.state.remove_pod(info.uid)
            self.state.add_pod(info, placed.node_name)
            del self._uid_of[old.namespace, old.name]
            self._uid_of[info.namespace, info.name] = info.uid
        placed.info = info

    def _remove_namesake(self, info: PodInfo) -> None:
        namesake = self.namesake(info)
        if namesake is not None:
            self.remove(namesake)

    def _leave(self, uid: str) -> PodInfo | None:
        placed = self._placed.pop(uid, None)
        if placed is None:
            return None
        self._ended.pop(uid, None)
        self._assumed.pop(uid, None)
        del self._uid_of[placed.info.namespace, placed.info.name]
        return self.state.remove_pod(uid)
