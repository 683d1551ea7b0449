"""A generation: all that depends on the policy, so that another policy is another generation.

The cluster, the queue, what is assumed, what is evicted and who is nominated belong to no policy and outlive it
(`Lasting`). What rules say of nodes, the views that they ask for, and what preemption remembers are made by a
generation and go with it, once nobody has it any more.

A generation is made beside the one that decides, in slices (`Preparation`), so that the first decisions after it is
adopted find their classes made: those of pods that wait and of pods that were decided lately. The state may change
between slices; what was made follows it as always.

Memory: of each profile, classes and memos take `classes.MOST_BYTES` (256 MiB) at most, what preemption remembers 230
MB; the views of a generation `tables.MOST_ROWS` rows (120 MB). One that rests, as it may be asked for again, keeps a
quarter of the classes, and nothing of preemption.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice, repeat
from typing import Final

from ksp.core.cycle import Cycle
from ksp.core.equivalence.classes import MOST_BYTES
from ksp.core.equivalence.present import Present
from ksp.core.evictions import Evictions
from ksp.core.extenders import Extenders
from ksp.core.pod_kinds import PodKinds
from ksp.core.preemption import Preemption
from ksp.core.prospects import Prospects
from ksp.core.queue import SchedulingQueue
from ksp.core.wake import Wake
from ksp.model.info import PodInfo
from ksp.policy.extender import Extender
from ksp.policy.profile import Profile
from ksp.policy.unread import UnreadBy, UnreadFields, UnreadOfRunning
from ksp.ports import Dice

RESTING_BYTES: Final = MOST_BYTES // 4
PREPARED: Final = 1_000
"""Of so many pods that wait classes are made beforehand."""
TOGETHER: Final = 32
"""Pods of which the classes are made already are looked at in a slice."""


@dataclass(frozen=True, slots=True)
class Lasting:
    """What outlives generations, and how these are to work. Of `present` the views are not used."""

    present: Present
    queue: SchedulingQueue
    evictions: Evictions
    dice: Dice
    unread_fields: UnreadFields
    equivalence_classes: int
    columns: bool


class Generation:
    """What decides by one policy. `cycles`, `preemptions` and `unread_by` are by the names of schedulers. `add` is to
    be called for each profile, and `close` when there is no more."""

    wake: Wake
    running: UnreadOfRunning
    prospects: Prospects
    _kinds: PodKinds

    def __init__(self, number: int, extenders: Iterable[Extender], lasting: Lasting) -> None:
        self.number = number
        self.profiles: list[Profile] = []
        self.extenders = Extenders(extenders)
        self.present = lasting.present.anew()
        self.cycles: dict[str, Cycle] = {}
        self.preemptions: dict[str, Preemption] = {}
        self.unread_by: dict[str, UnreadBy] = {}
        self._lasting = lasting

    @staticmethod
    def of(number: int, profiles: Iterable[Profile], extenders: Iterable[Extender], lasting: Lasting) -> Generation:
        """One that has prepared nothing."""
        made = Generation(number, extenders, lasting)
        for profile in profiles:
            made.add(profile)
        made.close()
        return made

    def add(self, profile: Profile) -> None:
        """Decide for the pods of the profile, too."""
        lasting, name, nominations = self._lasting, profile.scheduler_name, self._lasting.queue.nominations
        self.profiles.append(profile)
        self.unread_by[name] = UnreadBy(profile, lasting.unread_fields)
        self.cycles[name] = Cycle(
            profile, self.present, nominations.nodes, lasting.dice, self.unread_by[name],
            equivalence_classes=lasting.equivalence_classes, columns=lasting.columns,
        )  # fmt: skip
        self.preemptions[name] = Preemption(profile, self.present, nominations, lasting.dice)

    def close(self) -> None:
        """Those are all profiles."""
        lasting, queue = self._lasting, self._lasting.queue
        self.wake = Wake(self.profiles)
        self.running = UnreadOfRunning(self.profiles, lasting.unread_fields)
        self._kinds = PodKinds(self.profiles)
        self.prospects = Prospects(
            self.present.state, self.cycles, self.preemptions, queue.nominations, lasting.evictions,
            queue.sleepers.spend, self.extenders,
        )  # fmt: skip

    def kind_of(self, pod: PodInfo) -> Hashable:
        """Equal for pods that nobody who decides can tell apart. What extenders make of pods is not known."""
        if self.extenders and self.extenders.deciding(pod):
            return pod.uid
        return self._kinds.of(pod)

    def prepared(self, pod: PodInfo) -> Iterator[None]:
        """Make the class of the pod, in slices."""
        cycle = self.cycles.get(pod.scheduler_name)
        if cycle is not None:
            yield from cycle.prepared(pod)

    # ---- while another decides

    def rest(self) -> None:
        """Another generation decides now: less is remembered."""
        for cycle in self.cycles.values():
            cycle.classes.limit(RESTING_BYTES)
        for preemption in self.preemptions.values():
            preemption.forget()

    def free(self) -> None:
        """Nobody asks this generation any more: its memory is given back now, not when garbage is collected."""
        for cycle in self.cycles.values():
            cycle.classes.close()
        self.present.tables.clear()

    def resume(self) -> None:
        """As much may be remembered as before."""
        for cycle in self.cycles.values():
            cycle.classes.limit(MOST_BYTES)


class Preparation:
    """A generation on its way. `waiting` are pods that will be decided by it, `lately` some that were decided last."""

    def __init__(
        self, generation: Generation, profiles: Sequence[Profile], waiting: Iterable[PodInfo], lately: Iterable[PodInfo]
    ) -> None:
        self._generation = generation
        self._pods = [*lately, *islice(waiting, PREPARED)]
        self._slices: Iterator[None] = chain(self._parts(profiles), self._classes())
        self.ready = False

    def step(self) -> bool:
        """Do one slice, of a few milliseconds at most; True when all is done."""
        if not self.ready and next(self._slices, self) is self:
            self.ready = True
            self._pods = []
        return self.ready

    def abandon(self) -> None:
        """The generation is not wanted any more, and never ready."""
        self.ready, self._pods, self._slices = False, [], repeat(None)
        self._generation.free()

    @property
    def generation(self) -> Generation:
        """What was prepared; complete once that is ready."""
        if not self.ready:
            raise ValueError("the generation is not ready")
        return self._generation

    def _parts(self, profiles: Iterable[Profile]) -> Iterator[None]:
        for profile in profiles:
            self._generation.add(profile)
            yield
        self._generation.close()
        yield

    def _classes(self) -> Iterator[None]:
        for number, pod in enumerate(self._pods):
            yield from self._generation.prepared(pod)
            if number % TOGETHER == 0:
                yield
