"""What tests of reloads share: a core and its loop, a policy that is vetted when the test says, and time that is the
test's."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from prometheus_client import CollectorRegistry
from tests.unit.runtime.driving import WITHIN, World

from ksp.core.probation import Terms
from ksp.kube.events.objects import EventType, ObjectReference
from ksp.model.pod import Pod
from ksp.policy.assemble import Settings
from ksp.policy.profile import Profile
from ksp.policy.texts import PolicyTexts
from ksp.runtime.reload.config_map import ConfigMapSource
from ksp.runtime.reload.metrics import ReloadMetrics
from ksp.runtime.reload.reloader import Reloader
from ksp.runtime.reload.source import SourceError
from ksp.runtime.reload.telling import Telling
from ksp.runtime.reload.verdict import ChildLimits, Trial, Verdict
from ksp.runtime.reload.watching import Found
from ksp.runtime.status import StatusBoard

ABOUT = ObjectReference(kind="ConfigMap", api_version="v1", namespace="kube-system", name="policy", uid="u")


def rules(number: int, *schedulers: str, where: str = "true") -> PolicyTexts:
    """A policy that differs from those of other numbers."""
    profiles = "".join(f'profile "{name}" uses P {{ }}\n' for name in schedulers or ("default-scheduler",))
    text = (
        f'/// Number {number}.\npredicate Where implements Where {{\n  deny "not there" when !({where})\n'
        f'  deny "no name" when node.name == ""\n}}\n\n'
        f"provider P {{ predicates {{ Where }} priorities {{ }} }}\n{profiles}"
    )
    return PolicyTexts("policy", {"a.ksp": text}, ("a.ksp",))


@dataclass
class Vetter:
    """Says of each policy what the test wants, at once or when it is let go."""

    limits: ChildLimits = field(default_factory=ChildLimits)
    verdict: Verdict = field(default_factory=lambda: Verdict(ok=True, passed=3))
    held: bool = False
    vetted: list[str] = field(default_factory=list)
    let_go: asyncio.Event = field(default_factory=asyncio.Event)
    began: asyncio.Event = field(default_factory=asyncio.Event)

    async def vet(self, trial: Trial) -> Verdict:
        self.vetted.append(trial.texts.sha256)
        self.began.set()
        if self.held:
            await self.let_go.wait()
        return self.verdict


@dataclass
class Caches:
    """What is watched, and the pods that are known."""

    why_not: str = ""
    known: list[Pod] = field(default_factory=list)

    async def watch(self, profiles: Iterable[Profile]) -> str:
        return self.why_not

    def pods(self) -> Iterator[list[Pod]]:
        yield self.known


@dataclass
class Events:
    """Remembers events as (type, reason, note)."""

    told: list[tuple[str, str, str]] = field(default_factory=list)

    def event(self, regarding: ObjectReference, type: EventType, reason: str, action: str, note: str) -> None:
        assert regarding == ABOUT
        self.told.append((type, reason, note))


class Bench:
    """A reloader and all that it meets. `first` are the texts that decide at first."""

    def __init__(self, first: PolicyTexts, terms: Terms | None = None) -> None:
        self.world = World()
        self.timers = self.world.timers
        self.scheduler = self.world.scheduler
        self.vetter, self.caches, self.events = Vetter(), Caches(), Events()
        self.board = StatusBoard(self.timers, "me")
        self.registry = CollectorRegistry()
        self.changed = asyncio.Event()
        self.board.changed = self.changed.set
        source = ConfigMapSource("policy", "kube-system")
        telling = Telling(source, self.board, ReloadMetrics(self.registry), self.events, self.timers, {})
        telling.regarding = ABOUT
        self.stands_by = False
        self.reloader = Reloader(
            self.scheduler, self.world.loop, self.caches, self.vetter, telling, self.timers,
            texts=first, settings=Settings(), terms=terms, decides=lambda: not self.stands_by,
        )  # fmt: skip

    def offer(self, texts: PolicyTexts | SourceError, *, asked: bool = False) -> None:
        def read() -> PolicyTexts:
            if isinstance(texts, SourceError):
                raise texts
            return texts

        self.reloader.offer(Found(read, asked, ABOUT))

    async def taken(self, texts: PolicyTexts | SourceError, *, asked: bool = False) -> None:
        """Offers it, and waits until something has become of it."""
        before = self.outcomes()
        self.offer(texts, asked=asked)
        await self.until(lambda: self.outcomes() != before)

    async def until(self, holds: Callable[[], bool]) -> None:
        """Time passes until it is so."""
        async with asyncio.timeout(WITHIN):
            while not holds():
                await self.timers.advance(0.1)
                await asyncio.to_thread(_nothing)  # the thread that assembles has its turn

    def outcomes(self) -> dict[str, float]:
        names = ("adopted", "unchanged", "failed", "rolled_back")
        return {name: self.metric("ksp_policy_reloads_total", outcome=name) for name in names}

    def metric(self, name: str, **labels: str) -> float:
        found = self.registry.get_sample_value(name, labels)
        assert found is not None
        return found


def _nothing() -> None:
    """In a thread."""


@asynccontextmanager
async def reloading(bench: Bench) -> AsyncIterator[Bench]:
    """Reloads and decides meanwhile."""
    tasks = [asyncio.create_task(bench.reloader.run()), asyncio.create_task(bench.world.loop.run())]
    try:
        yield bench
    finally:
        bench.world.loop.stop()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await bench.world.loop.drain(0)
