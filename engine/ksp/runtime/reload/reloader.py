"""Takes changes of the policy through all stages, one at a time; the newest texts win.

    found ─▶ vet, in a child ─▶ assemble, in a thread ─▶ caches of new kinds ─▶ prepare, in slices ─▶ adopt

On any error the last good policy stays. Texts that failed are not tried again until they are others, or somebody asks
(SIGHUP); texts that were taken back, not even then. Those that lacked a cache are tried whenever they are found again:
the right to watch may have been given meanwhile.

The thread's work and the decisions take turns, since Python runs one thread at a time; the turns are made short while
it works (`SWITCH`). What is prepared is prepared on the event loop, a slice at a time, while decisions go on.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Final, Protocol, TypeVar

from ksp.core.changes import Change, SetPod
from ksp.core.probation import Standing, Terms
from ksp.core.scheduler import Adopted, Scheduler
from ksp.kube.timers import Timers
from ksp.model.info import DEFAULT_SCHEDULER
from ksp.model.pod import Pod
from ksp.policy.assemble import Policy, Settings, assemble
from ksp.policy.errors import PolicyError
from ksp.policy.profile import Profile
from ksp.policy.texts import PolicyTexts
from ksp.runtime.log import entry
from ksp.runtime.reload.source import SourceError
from ksp.runtime.reload.telling import Telling
from ksp.runtime.reload.thread import in_thread
from ksp.runtime.reload.verdict import ChildLimits, Trial, Verdict, bounded
from ksp.runtime.reload.watching import Found

_log = logging.getLogger(__name__)

DEBOUNCE: Final = 0.3
"""Seconds without another change before one is taken up."""
PATIENCE: Final = 2.0
"""Seconds after which it is taken up whatever comes."""
SWITCH: Final = 0.0005
"""Seconds for which a thread may go on while another wants to; 0.005 by default."""
LOOK: Final = 0.5
"""Seconds between two looks at how a policy does on probation."""
CACHES: Final = "caches"
GENERATIONS: Final = 200
"""Of so many it is remembered what they were made of."""

T = TypeVar("T")


class Loop(Protocol):
    """`ksp.runtime.loop.SchedulingLoop`: has something done between two decisions, and takes changes in."""

    async def between(self, act: Callable[[], T]) -> T: ...

    def deliver(self, change: Change) -> None: ...


class Vetter(Protocol):
    """`ksp.runtime.reload.child.Child`."""

    @property
    def limits(self) -> ChildLimits: ...

    async def vet(self, trial: Trial) -> Verdict: ...


class Caches(Protocol):
    """What the scheduler watches."""

    async def watch(self, profiles: Iterable[Profile]) -> str:
        """Returns when everything is known that these read; why it is not, after a while, "" if it is."""
        ...

    def pods(self) -> Iterable[list[Pod]]:
        """All that are known, as they are when asked for, in lists of a few."""
        ...


class _FailedError(Exception):
    """A stage says no."""

    def __init__(self, stage: str, message: str) -> None:
        super().__init__(message)
        self.stage = stage


class Reloader:
    """Reloads what is found. `texts` are those that decide now, None for the shipped rules; `settings` never change.
    With `terms` new policies are on probation."""

    def __init__(
        self, scheduler: Scheduler, loop: Loop, caches: Caches, vetter: Vetter, telling: Telling, timers: Timers, *,
        texts: PolicyTexts | None, settings: Settings, terms: Terms | None, decides: Callable[[], bool] = lambda: True,
    ) -> None:  # fmt: skip
        """`decides`: whether pods are decided for; a scheduler that stands by proves nothing of a policy."""
        self._scheduler = scheduler
        self._loop = loop
        self._caches = caches
        self._vetter = vetter
        self._telling = telling
        self._timers = timers
        self._settings = settings
        self._terms = terms
        self._decides = decides
        self._texts = {scheduler.generation.number: "" if texts is None else texts.sha256}
        self._failed = ""
        self._taken_back = ""
        self._found: Found | None = None
        self._more = asyncio.Event()

    def offer(self, found: Found) -> None:
        """This is what the source has now. What was offered before and not taken up yet is forgotten."""
        asked = found.asked or (self._found is not None and self._found.asked)
        self._found = Found(found.read, asked, found.regarding)
        self._more.set()

    async def run(self) -> None:
        """Reloads until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._judge_forever())
            while True:
                await self._more.wait()
                await self._calm()
                self._more.clear()
                found, self._found = self._found, None
                if found is not None:
                    await self._take(found)

    async def _calm(self) -> None:
        """Returns when nothing has come for a moment."""
        began = self._timers.now()
        while self._timers.now() - began < PATIENCE:
            self._more.clear()
            await self._timers.sleep(DEBOUNCE)
            if not self._more.is_set():
                return

    # ---- one change

    async def _take(self, found: Found) -> None:
        if found.regarding is not None:
            self._telling.regarding = found.regarding
        try:
            texts = found.read()
        except SourceError as error:
            self._fail("read", _rendered(error), "", asked=found.asked)
            return
        except Exception as error:  # noqa: BLE001 - as below
            self._tell_of_fault(error, "")
            return
        if texts.sha256 == self._running():
            self._failed = ""
            if found.asked or self._telling.board.status.failure is not None:
                self._telling.unchanged()
        elif texts.sha256 == self._taken_back:
            self._telling.not_again("it was taken back, and has not changed since")
        elif texts.sha256 == self._failed and not found.asked:
            self._telling.not_again("it has failed, and has not changed since")
        else:
            await self._try(texts)

    async def _try(self, texts: PolicyTexts) -> None:
        try:
            await self._reload(texts)
        except _FailedError as error:
            self._fail(error.stage, str(error), texts.sha256, asked=True)
        except Exception as error:  # noqa: BLE001 - it is told of, and must not end the scheduler
            self._tell_of_fault(error, texts.sha256)

    def _tell_of_fault(self, error: Exception, texts: str) -> None:
        _log.error(entry("a fault of ksp while the policy is reloaded"), exc_info=error)
        self._fail("internal error", f"{type(error).__name__}: {error}", texts, asked=True)

    def _fail(self, stage: str, message: str, texts: str, *, asked: bool) -> None:
        """What fails as it failed before is said again only if somebody asked."""
        same = texts or f"{stage}: {message}"
        if asked or same != self._failed:
            self._telling.failed(stage, message, texts)
        self._failed = "" if stage == CACHES else same

    async def _reload(self, texts: PolicyTexts) -> None:
        with self._measured("vet"):
            verdict = await self._vetter.vet(Trial(texts, self._settings, self._vetter.limits))
        if not verdict.ok:
            raise _FailedError(verdict.stage, verdict.message)
        with self._measured("assemble"), _short_turns():
            policy = await in_thread(partial(_assembled, texts, self._settings))
        with self._measured(CACHES):
            why = await self._caches.watch(policy.profiles)
        if why:
            raise _FailedError(CACHES, why)
        adopted = await self._adopt(policy, texts)
        self._failed = self._taken_back = ""
        self._telling.adopted(self._scheduler.generation.number, policy, verdict.passed, len(adopted.left))
        await self._tell_of_pods(adopted)

    async def _adopt(self, policy: Policy, texts: PolicyTexts) -> Adopted:
        """From now on the policy decides."""
        scheduler = self._scheduler
        preparation = scheduler.prepare(policy.profiles, policy.extenders)

        def adopt() -> Adopted:
            adopted = scheduler.adopt(preparation.generation, self._timers.now(), self._terms)
            self._remember(texts.sha256)
            return adopted

        try:
            with self._measured("prepare"):
                while not preparation.step():  # noqa: ASYNC110 - it works, and lets decisions have their turn
                    await asyncio.sleep(0)
            with self._measured("adopt"):
                return await self._loop.between(adopt)
        except BaseException:
            preparation.abandon()
            raise

    async def _tell_of_pods(self, adopted: Adopted) -> None:
        """Pods that named a scheduler which nobody was, and somebody is now."""
        if not adopted.came:
            return
        for pods in self._caches.pods():
            for pod in pods:
                if (pod.spec.scheduler_name or DEFAULT_SCHEDULER) in adopted.came:
                    self._loop.deliver(SetPod(pod))
            await asyncio.sleep(0)

    @contextlib.contextmanager
    def _measured(self, stage: str) -> Iterator[None]:
        began = self._timers.now()
        try:
            yield
        finally:
            self._telling.metrics.stage(stage, self._timers.now() - began)

    # ---- probation

    async def _judge_forever(self) -> None:
        try:
            while True:
                await self._timers.sleep(LOOK)
                if self._decides():
                    await self.judge()
                elif self._scheduler.probation is not None:
                    self._scheduler.probation.starts_at(self._timers.now())
        except Exception:  # noqa: BLE001 - it is told of, and must not end the scheduler
            _log.exception(entry("a fault of ksp: from now on no policy goes back by itself"))

    async def judge(self) -> None:
        """Goes back to the policy before if the new one denies too much."""
        if self._scheduler.probation is not None:
            adopted = await self._loop.between(self._judged)
            if adopted is not None:
                await self._tell_of_pods(adopted)

    def _judged(self) -> Adopted | None:
        """What going back has changed; None where that is not to be done."""
        probation, now = self._scheduler.probation, self._timers.now()
        if probation is None:
            return None
        found = probation.verdict(now)
        match found.standing:
            case Standing.PENDING:
                return None
            case Standing.PASSED:
                self._scheduler.end_probation()
                return None
        to, self._taken_back = probation.before.number, self._running()
        adopted = self._scheduler.go_back(now)
        number = self._remember(self._texts.get(to, ""))
        why = f"it denied {found.denied} of {found.pods} pods which the policy before would have placed"
        self._telling.rolled_back(number, to, why, self._taken_back)
        return adopted

    # ---- generations

    def _running(self) -> str:
        """The hash of the texts of what decides."""
        return self._texts.get(self._scheduler.generation.number, "")

    def _remember(self, texts: str) -> int:
        """That what decides is made of these texts; its number."""
        number = self._scheduler.generation.number
        self._texts[number] = texts
        if len(self._texts) > GENERATIONS:
            del self._texts[min(self._texts)]
        return number


def _assembled(texts: PolicyTexts, settings: Settings) -> Policy:
    """In the thread. The child has found no error, so an error here is told of as it is."""
    try:
        return assemble(texts, settings)
    except PolicyError as error:
        raise _FailedError("assemble", bounded(error.rendered())) from error


@contextlib.contextmanager
def _short_turns() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(min(before, SWITCH))
    try:
        yield
    finally:
        sys.setswitchinterval(before)


def _rendered(error: SourceError) -> str:
    return bounded(PolicyError(error.diagnostics, error.messages).rendered())
