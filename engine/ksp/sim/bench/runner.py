"""Measures the core alone: no API server, no JSON, no network, and nothing beside it in the process.

What is timed is all that the core does for a pod:

    on(SetPod)                 the pod comes; all measured pods come before the first decision
    step                       it is decided
    bind_succeeded             its binding, which takes no time here, has succeeded
    on(SetPod), with a node    the watch shows it, before the next decision
    evictions_ended            if others have to go for it: they are deleted
    on(DeletePod)              the watch shows that, 10 ms of virtual time later

and, in workloads with churn, `on` for what comes and goes. What is not timed: making the objects, and the bookkeeping
here. Virtual time goes on by 0.2 ms an attempt (5,000 a second), so backoffs end as they would. A pod for which others
go is decided once more when it has backed off, and so on until it has a node or claims none.

Before: the nodes, objects and running pods come, one plain pod is decided and deleted, so that what is made once for a
cluster is there; and the pods that fit nowhere are tried.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Final

from msgspec.structs import replace as changed

from ksp.core.changes import Bind, Change, DeletePod, Evict, SetNode, SetPod
from ksp.core.questions import Ask
from ksp.core.scheduler import Scheduler, Step
from ksp.model.info import PodInfo
from ksp.model.pod import Pod
from ksp.ports import Stopwatch
from ksp.sim.bench.figures import Conditions, Figures, Run, percentile
from ksp.sim.bench.scenario import Numbered, Scenario
from ksp.sim.bench.templates import pod_template

TICK: Final = 0.0002
"""Virtual seconds that an attempt takes."""
EVICTION: Final = 0.01
"""Virtual seconds until the watch shows that an evicted pod is gone: its containers need none to end."""
TOLD_EVERY: Final = 64
MILLI: Final = 1000.0


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What the core does not have: stopwatches of the wall's and the processor's time, the most memory so far in MiB,
    what is to be done between set-up and measuring, and who is told how many pods have been decided."""

    stopwatch: Stopwatch
    processor: Stopwatch
    peak_memory: Callable[[], float]
    settle: Callable[[], None] = lambda: None
    tell: Callable[[int], None] = lambda _decided: None


@dataclass(slots=True)
class _Times:
    """Seconds of the core's work; `steps` for each attempt, among them `cold` those that found no class, `preempting`
    those that ended in a preemption."""

    steps: list[float] = field(default_factory=list)
    cold: list[float] = field(default_factory=list)
    preempting: list[float] = field(default_factory=list)
    arrival: float = 0.0
    confirmation: float = 0.0
    churn: float = 0.0

    @property
    def core(self) -> float:
        return sum(self.steps) + self.arrival + self.confirmation + self.churn


@dataclass(frozen=True, slots=True)
class _Known:
    """Counters of the equivalence classes of all profiles, and how many there are."""

    hits: int
    misses: int
    invalidations: int
    classes: int

    @staticmethod
    def of(scheduler: Scheduler) -> _Known:
        found = [cycle.classes for cycle in scheduler.cycles.values()]
        counters = [each.counters for each in found]
        return _Known(
            sum(each.hits for each in counters),
            sum(each.misses for each in counters),
            sum(each.invalidations for each in counters),
            sum(each.size()["classes"] for each in found),
        )

    def since(self, before: _Known) -> _Known:
        return replace(
            self, hits=self.hits - before.hits, misses=self.misses - before.misses,
            invalidations=self.invalidations - before.invalidations,
        )  # fmt: skip

    @property
    def hit_rate(self) -> float:
        return self.hits / max(1, self.hits + self.misses)


def measure(conditions: Conditions, scenario: Scenario, scheduler: Scheduler, around: Surroundings) -> Run:
    """Sets the scenario up on a scheduler that has nothing yet, and measures it."""
    driver = _Driver(scenario, scheduler, around)
    begun = around.stopwatch.read()
    driver.set_up()
    arriving = [each.pod() for each in reversed(scenario.measured)]
    around.settle()
    set_up = around.stopwatch.read() - begun
    known = _Known.of(scheduler)
    before = around.processor.read()
    driver.measure(arriving)
    cpu = around.processor.read() - before
    figures = _figures(driver, _Known.of(scheduler).since(known), cpu, set_up, around.peak_memory())
    there = replace(
        conditions, pods=len(scenario.measured), existing=len(scenario.running), pending=len(scenario.pending)
    )
    return Run(there, figures)


class _Driver:
    """Takes the place of the watch and of the API server."""

    def __init__(self, scenario: Scenario, scheduler: Scheduler, around: Surroundings) -> None:
        self.scenario = scenario
        self.scheduler = scheduler
        self.times = _Times()
        self.placed = 0
        self._read = around.stopwatch.read
        self._tell = around.tell
        self._now = 0.0
        self._numbered: dict[str, Numbered] = {}
        self._undecided: set[str] = set()
        self._evicted: deque[tuple[float, str]] = deque()

    # ---- before

    def set_up(self) -> None:
        self._give(SetNode(node) for node in self.scenario.nodes)
        self._give(self.scenario.objects)
        self._give(SetPod(pod) for pod in self.scenario.bound())
        self._warm_up()
        self._give(SetPod(each.pod()) for each in self.scenario.pending)
        while (step := self._decided()) is not None:
            self._confirm(step)
        self.times = _Times()

    def _warm_up(self) -> None:
        """A pod like no other is decided, and goes again."""
        scheduler = next(iter(self.scheduler.cycles))
        pod = pod_template("warm-up", requests={"cpu": "1m", "memory": "1Mi"}, scheduler=scheduler).pod(0)
        self.scheduler.on(SetPod(pod), self._now)
        step = self._decided()
        if step is not None:
            self._confirm(step)
        self.scheduler.on(DeletePod(PodInfo.of(pod).uid), self._now)

    def _give(self, changes: Iterable[Change]) -> None:
        for change in changes:
            self.scheduler.on(change, self._now)

    def _decided(self) -> Step | None:
        """The next attempt. No extender has a say."""
        step = self.scheduler.step(self._now)
        assert not isinstance(step, Ask)
        return step

    # ---- measuring

    def measure(self, arriving: list[Pod]) -> None:
        """The pods come, the last first, and are taken out of the list; then they are decided."""
        while arriving:
            self._arrive(arriving.pop())
        self._numbered = {each.pod().metadata.uid: each for each in self.scenario.measured}
        self._undecided = set(self._numbered)
        churned = 0
        while self._undecided:
            decided = len(self._numbered) - len(self._undecided)
            churn = self.scenario.churn
            if churn is not None and decided >= churned * churn.every:
                self._churn(churn.step(churned))
                churned += 1
            self._step()
            if decided % TOLD_EVERY == 0:
                self._tell(decided)
        self._tell(len(self._numbered))

    def _arrive(self, pod: Pod) -> None:
        change = SetPod(pod)
        before = self._read()
        self.scheduler.on(change, self._now)
        self.times.arrival += self._read() - before

    def _churn(self, changes: Iterable[Change]) -> None:
        before = self._read()
        self._give(changes)
        self.times.churn += self._read() - before

    def _step(self) -> None:
        self._show_evicted()
        missed = self._misses()
        before = self._read()
        step = self._decided()
        taken = self._read() - before
        if step is None:
            self._wait()
            return
        self.times.steps.append(taken)
        if self._misses() > missed:
            self.times.cold.append(taken)
        if step.preempted is not None:
            self.times.preempting.append(taken)
        self._now += TICK
        self._confirm(step)
        self._evict(step)
        if self.scheduler.queue.nominations.node_of(step.pod.uid) is None:
            self._undecided.discard(step.pod.uid)

    def _misses(self) -> int:
        return sum(cycle.classes.counters.misses for cycle in self.scheduler.cycles.values())

    def _wait(self) -> None:
        due = [self._evicted[0][0]] if self._evicted else []
        next_due = self.scheduler.next_deadline(self._now)
        if next_due is not None:
            due.append(next_due)
        assert due, "a measured pod is not in the queue"
        self._now = max(self._now, min(due))

    def _confirm(self, step: Step) -> None:
        """If the pod got a node: the API takes the binding, and the watch shows the pod there."""
        bind = step.effects[0]
        if not isinstance(bind, Bind):
            return
        uid = step.pod.uid
        self.placed += uid in self._numbered
        shown = SetPod(self._bound(step.pod, bind.node))
        before = self._read()
        self.scheduler.bind_succeeded(uid, self._now)
        self.scheduler.on(shown, self._now)
        self.times.confirmation += self._read() - before

    def _evict(self, step: Step) -> None:
        """If others have to go for the pod: the API takes the deletions."""
        for effect in step.effects:
            if isinstance(effect, Evict):
                before = self._read()
                self.scheduler.evictions_ended(effect.preemptor.uid, effect.node, self._now, done=True)
                self.times.churn += self._read() - before
                self._evicted.extend((self._now + EVICTION, victim.uid) for victim in effect.victims)

    def _show_evicted(self) -> None:
        """The watch shows which pods are gone."""
        while self._evicted and self._evicted[0][0] <= self._now:
            gone = DeletePod(self._evicted.popleft()[1])
            before = self._read()
            self.scheduler.on(gone, self._now)
            self.times.churn += self._read() - before

    def _bound(self, pod: PodInfo, node: str) -> Pod:
        numbered = self._numbered.get(pod.uid)
        if numbered is not None:
            return numbered.running(node)
        return Pod(metadata=pod.metadata, spec=changed(pod.spec, node_name=node), status=pod.status)


def _figures(driver: _Driver, known: _Known, cpu: float, set_up: float, peak_memory: float) -> Figures:
    times, pods = driver.times, max(1, len(driver.scenario.measured))
    ordered = sorted(times.steps)
    p50, p90, p99 = (MILLI * percentile(ordered, share) for share in (0.5, 0.9, 0.99))
    return Figures(
        placed=driver.placed,
        attempts=len(times.steps),
        decisions_per_second=_rate(len(driver.scenario.measured), times.core),
        core_seconds=times.core,
        p50_ms=p50,
        p90_ms=p90,
        p99_ms=p99,
        max_ms=MILLI * max(times.steps, default=0.0),
        first_ms=MILLI * next(iter(times.steps), 0.0),
        cold_ms=MILLI * percentile(sorted(times.cold), 0.5),
        arrival_ms=MILLI * times.arrival / pods,
        confirmation_ms=MILLI * times.confirmation / pods,
        churn_ms=MILLI * times.churn / pods,
        hit_rate=known.hit_rate,
        hits=known.hits,
        misses=known.misses,
        invalidations=known.invalidations,
        classes=known.classes,
        cpu_seconds=cpu,
        cpu_ms_per_decision=MILLI * cpu / pods,
        setup_seconds=set_up,
        peak_memory_mib=peak_memory,
        preemptions=len(times.preempting),
        preemptions_per_second=_rate(len(times.preempting), sum(times.preempting)),
    )


def _rate(count: int, seconds: float) -> float:
    return count / seconds if seconds else 0.0
