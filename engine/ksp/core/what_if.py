"""What if these pods were not there, or those were? The state is changed to see, and is as before afterwards.

    with WhatIf(state, fits) as trial:
        trial.remove(uid)          off its node
        trial.restore(uid)         back to its place there, as if it had never left
        trial.add(pod, "n1")       a pod that is nominated to a node, as if it ran there
        with trial.nested():       what is done in here is taken back at its end
            ...

Rules see such a change like any other: sums of the node change, views follow the journal. What the trial did is
undone at its end however it ends, the journal forgets it (`ksp.core.journal`), and nodes bear their old numbers
again, so that a search for victims on hundreds of nodes costs those nothing who keep something made of the state.
Those who follow meanwhile, and want to go on from there, are given to the trial: it brings them up to date before the
journal forgets.

Each operation costs what one pod costs, and what the pods on its node cost if others arrived after it. Undoing costs
what differs, not what was done on the way.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import NamedTuple, Protocol, Self

from ksp.core.errors import StateError
from ksp.core.state import ClusterState
from ksp.model.info import PodInfo


class Follower(Protocol):
    """Who keeps something made of the state."""

    def follow(self) -> object:
        """Bring it up to date."""


class _Place(NamedTuple):
    pod: PodInfo
    node: str


class _Before(NamedTuple):
    """A pod before an operation: its place, or the one from which the trial had taken it, or neither."""

    uid: str
    place: _Place | None
    taken: _Place | None


class WhatIf:
    """A trial on a state. Nothing else may change the state until its end: that is a StateError. Trials on one state do
    not overlap; what is tried within a trial goes under `nested`."""

    def __init__(self, state: ClusterState, *followers: Follower) -> None:
        self.state = state
        self._followers = followers
        self._generation: int | None = None
        self._taken: dict[str, _Place] = {}
        self._log: list[_Before] = []
        # Of nodes that lost a pod: the ranks of their pods, sorted. Who comes gets the next one.
        self._orders: dict[str, dict[str, int]] = {}
        self._generations: dict[str, int] = {}  # of the nodes that were touched, as they were

    # ---- beginning and end

    def __enter__(self) -> Self:
        self.state.begin_trial()
        self._generation = self.state.generation
        self._orders.clear()
        self._generations.clear()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        undone = False
        try:
            self._undo(0)
            for follower in self._followers:
                follower.follow()
            for name, generation in self._generations.items():
                self.state.nodes[name].generation = generation
            undone = True
        finally:
            self._generation = None
            self.state.end_trial(undone=undone)

    @contextmanager
    def nested(self) -> Iterator[None]:
        """What is done under it is taken back at its end, however it ends."""
        done = len(self._log)
        try:
            yield
        finally:
            self._undo(done)

    # ---- what is tried

    def remove(self, uid: str) -> PodInfo:
        """Take a pod off its node."""
        self._check()
        pod = self.state.pods.get(uid)
        if pod is None:
            raise StateError(f"pod {uid} is on no node")
        place = _Place(pod, pod.node.name)
        self._log.append(_Before(uid, place, None))
        self._take_off(place)
        self._taken[uid] = place
        return pod

    def restore(self, uid: str) -> PodInfo:
        """Put a pod back where this trial took it from, between the pods between which it was."""
        self._check()
        place = self._taken.get(uid)
        if place is None:
            raise StateError(f"pod {uid} was not taken off a node, or is there again")
        self._log.append(_Before(uid, None, place))
        self._put_back(place)
        del self._taken[uid]
        return place.pod

    def add(self, pod: PodInfo, node: str) -> None:
        """Put a pod that has no place on a node, where it is the last one."""
        self._check()
        if node not in self.state.nodes:
            raise StateError(f"there is no node {node}")
        if pod.uid in self._taken:
            raise StateError(f"pod {pod.uid} was taken off node {self._taken[pod.uid].node}: it can be restored")
        self._touch(node)
        self.state.add_pod(pod, node)
        self._generation = self.state.generation
        self._log.append(_Before(pod.uid, None, None))
        order = self._orders.get(node)
        if order is not None:
            order.pop(pod.uid, None)  # from an addition that was taken back
            order[pod.uid] = next(reversed(order.values()), -1) + 1

    # ---- moves

    def _check(self) -> None:
        if self._generation is None:
            raise StateError("the what-if is over, or has not begun")
        if self.state.generation != self._generation:
            raise StateError("the state was changed beside the what-if")

    def _touch(self, node: str) -> None:
        self._generations.setdefault(node, self.state.nodes[node].generation)

    def _take_off(self, place: _Place) -> None:
        self._touch(place.node)
        if place.node not in self._orders:
            self._orders[place.node] = {uid: i for i, uid in enumerate(self.state.nodes[place.node].pods)}
        self.state.remove_pod(place.pod.uid)
        self._generation = self.state.generation

    def _put_back(self, place: _Place) -> None:
        self.state.put_back(place.pod, place.node, self._orders[place.node])
        self._generation = self.state.generation

    def _undo(self, done: int) -> None:
        """Bring every pod to where it was after the first so many operations."""
        self._check()
        first = {before.uid: before for before in reversed(self._log[done:])}
        moved = [before for before in first.values() if self._place_of(before.uid) != before.place]
        for uid in (before.uid for before in moved):
            place = self._place_of(uid)
            if place is not None:
                self._take_off(place)
        for before in moved:
            if before.place is not None:
                self._put_back(before.place)
        for before in first.values():
            if before.taken is None:
                self._taken.pop(before.uid, None)
            else:
                self._taken[before.uid] = before.taken
        del self._log[done:]

    def _place_of(self, uid: str) -> _Place | None:
        pod = self.state.pods.get(uid)
        return None if pod is None else _Place(pod, pod.node.name)
