"""Which events are written, and that all of them are accounted for."""

from __future__ import annotations

import datetime as dt
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ksp.kube.events.apis import APIS
from ksp.kube.events.correlator import Correlator
from ksp.kube.events.objects import ObjectReference, Occurrence, occurrence
from ksp.kube.events.series import EventApi, Series
from ksp.kube.events.similar import PREFIX
from ksp.kube.events.spam import BURST, REFILL, SpamFilter

V1, BETA, CORE = APIS
START = dt.datetime(2026, 1, 2, tzinfo=dt.UTC)


def said(note: str = "n", object: str = "p", now: float = 0.0, reason: str = "FailedScheduling") -> Occurrence:
    regarding = ObjectReference(kind="Pod", api_version="v1", namespace="w", name=object, uid=object)
    return occurrence(regarding, "s", "Warning", reason, "Scheduling", note, START + dt.timedelta(seconds=now))


@dataclass
class Bench:
    """A correlator whose writes all succeed at once, unless `take` says otherwise."""

    api: EventApi = V1
    size: int = 4096
    dropped: Counter[str] = field(default_factory=Counter)
    writes: list[tuple[float, Series, int]] = field(default_factory=list)
    now: float = 0.0

    def __post_init__(self) -> None:
        self.correlator = Correlator(self._drop, size=self.size)

    def _drop(self, reason: str, count: int) -> None:
        self.dropped[reason] += count

    def observe(self, note: str = "n", object: str = "p") -> Series | None:
        series = self.correlator.observe(said(note, object, self.now), self.api, self.now)
        return self.take(series) if series is not None else None

    def take(self, series: Series) -> Series:
        assert series.busy
        self.writes.append((self.now, series, series.count))
        self.correlator.wrote(series, series.count, self.now)
        return series

    def sweep(self, *, closing: bool = False) -> list[Series]:
        return [self.take(series) for series in self.correlator.sweep(self.now, closing=closing)]


def test_a_new_event_and_its_first_repetition_are_written_at_once_and_then_now_and_then() -> None:
    bench = Bench()
    first = bench.observe()
    assert first is not None
    bench.now = 1.0
    assert bench.observe() is first
    for bench.now in range(2, 302):
        bench.observe()
        bench.sweep()
    assert [(at, count) for at, _, count in bench.writes] == [(0.0, 1), (1.0, 2), (301.0, 302)]


def test_after_a_quiet_while_the_last_count_is_written_and_the_event_begins_anew() -> None:
    bench = Bench()
    first, *_ = [bench.observe() for _ in range(4)]
    bench.now = 361.0
    assert bench.sweep() == [first]
    assert bench.writes[-1][2] == 4
    assert bench.sweep() == []
    assert len(bench.correlator) == 0
    again = bench.observe()
    assert again is not None
    assert again is not first
    assert again.count == 1


@pytest.mark.parametrize("change", ["note", "object"])
def test_another_text_or_object_is_another_event(change: Literal["note", "object"]) -> None:
    bench = Bench()
    first = bench.observe()
    assert bench.observe(**{change: "other"}) is not first
    assert len(bench.correlator) == 2


def test_a_change_of_the_object_is_no_other_event() -> None:
    bench = Bench()
    bench.observe()
    reference = ObjectReference(kind="Pod", api_version="v1", namespace="w", name="p", uid="p", resource_version="new")
    changed = occurrence(reference, "s", "Warning", "FailedScheduling", "Scheduling", "n", START)
    series = bench.correlator.observe(changed, V1, 0.0)
    assert series is not None
    assert series.count == 2


def test_in_the_core_api_each_repetition_is_written() -> None:
    bench = Bench(CORE)
    for bench.now in range(20):
        bench.observe()
    assert [count for _, _, count in bench.writes] == list(range(1, 21))


def test_in_the_core_api_many_texts_on_one_thing_are_combined() -> None:
    bench = Bench(CORE)
    for n in range(13):
        bench.observe(f"text {n}")
    assert len({id(series) for _, series, _ in bench.writes}) == 10
    combined = bench.writes[-1][1]
    assert combined.count == 4
    assert combined.note == f"{PREFIX}text 12"
    bench.now = 601.0
    assert bench.observe("text 99") is not combined


def test_combined_texts_are_cut_at_the_limit() -> None:
    bench = Bench(CORE)
    for n in range(10):
        bench.observe(f"{n}" + "x" * 2000)
    assert len(bench.writes[-1][1].note.encode()) == 1024


def test_elsewhere_each_text_stands_for_itself() -> None:
    bench = Bench(V1)
    for n in range(20):
        bench.observe(f"text {n}")
    assert len({id(series) for _, series, _ in bench.writes}) == 20


def test_a_flood_about_one_object_is_held_back_and_others_are_not() -> None:
    bench = Bench()
    for n in range(100):
        bench.observe(f"text {n}")
    assert len(bench.writes) == BURST
    assert bench.observe("text", object="q") is not None
    bench.now = 361.0
    bench.sweep()
    assert bench.dropped == {"spam": 100 - BURST - 1}  # one token has come
    assert bench.observe("new") is None
    bench.now = 2 * REFILL
    assert len(bench.sweep()) == 1


def test_what_a_flood_holds_back_comes_with_the_next_token_if_it_goes_on() -> None:
    bench = Bench()
    for n in range(BURST + 1):
        bench.observe(f"text {n}")
    bench.now = 290.0
    assert bench.observe(f"text {BURST}") is None
    bench.now = 300.0
    (series,) = bench.sweep()
    assert series.note == f"text {BURST}"
    assert series.count == 2


def test_more_series_than_there_is_room_for() -> None:
    bench = Bench(size=10)
    for n in range(30):
        bench.observe(object=f"p{n}")
    assert len(bench.correlator) == 10
    assert not bench.dropped  # all were written
    for _ in range(3):
        bench.observe(object="p29")
    for n in range(10):
        bench.observe(object=f"q{n}")
    assert bench.dropped == {"evicted": 2}


def test_what_is_being_written_is_not_evicted() -> None:
    bench = Bench(size=2)
    busy = bench.correlator.observe(said("busy"), V1, 0.0)
    assert busy is not None
    for n in range(5):
        bench.observe(object=f"p{n}")
    bench.correlator.wrote(busy, 1, 0.0)
    assert bench.correlator.observe(said("busy"), V1, 0.0) is busy


def test_after_a_failure_the_next_one_is_a_new_event() -> None:
    bench = Bench()
    series = bench.correlator.observe(said(), V1, 0.0)
    assert series is not None
    assert bench.correlator.observe(said(), V1, 0.0) is None
    bench.correlator.failed(series, "rejected")
    assert bench.dropped == {"rejected": 2}
    again = bench.correlator.observe(said(), V1, 0.0)
    assert again is not None
    assert again is not series
    assert not again.exists


def test_repetitions_while_it_is_written_are_written_later() -> None:
    bench = Bench()
    series = bench.correlator.observe(said(), V1, 0.0)
    assert series is not None
    for _ in range(3):
        bench.correlator.observe(said(), V1, 0.0)
    bench.correlator.wrote(series, 1, 0.0)
    assert bench.sweep() == [series]
    assert bench.writes[-1][2] == 4


def test_closing_takes_what_is_not_due_yet() -> None:
    bench = Bench()
    for _ in range(5):
        bench.observe()
    assert bench.sweep() == []
    assert len(bench.sweep(closing=True)) == 1
    for n in range(100):
        bench.observe(f"text {n}")
    bench.correlator.abandon("shutdown")
    assert bench.dropped == {"shutdown": 100 - (BURST - 3)}
    assert len(bench.correlator) == 0


def test_a_bucket_that_was_forgotten_is_full() -> None:
    spam = SpamFilter(burst=1, refill=10.0, objects=1)
    assert spam.admits("a", 0.0)
    assert not spam.admits("a", 9.9)
    assert spam.admits("a", 10.0)
    assert spam.admits("b", 10.0)
    assert spam.admits("a", 10.0)


# ---- any sequence of events

EVENT = st.tuples(st.just("event"), st.integers(0, 2), st.integers(0, 40), st.sampled_from(["v1", "core"]))
PASS = st.tuples(st.sampled_from(["pass", "jump"]), st.sampled_from([0.1, 5.0, 60.0, 299.0, 301.0, 400.0, 4000.0]))
FLOOD = st.tuples(st.just("flood"), st.integers(0, 2), st.integers(1, 60))
ANSWER = st.tuples(st.just("answer"), st.sampled_from(["ok", "ok", "ok", "rejected", "unreachable"]))
CLOSE = st.just(("sweep", True))
STEPS = st.lists(EVENT | PASS | FLOOD | ANSWER | CLOSE | st.just(("sweep", False)), max_size=80)


class Machine:
    """A correlator and a writer that is as slow as the steps say."""

    def __init__(self, size: int) -> None:
        self.now = 0.0
        self.observed = 0
        self.dropped: Counter[str] = Counter()
        self.known: dict[int, tuple[Series, int]] = {}  # what the server has, for each Event
        self.taken: list[tuple[Series, int]] = []  # on their way, with the count that was sent
        self.times: defaultdict[str, list[float]] = defaultdict(list)
        self.correlator = Correlator(self.drop, size=size)

    def drop(self, reason: str, count: int) -> None:
        assert count > 0
        self.dropped[reason] += count

    def event(self, object: int, note: int, api: EventApi) -> None:
        self.observed += 1
        series = self.correlator.observe(said(f"n{note}", f"o{object}", self.now), api, self.now)
        if series is not None:
            self.take(series)

    def take(self, series: Series) -> None:
        assert all(series is not other for other, _ in self.taken), "one event is written twice at once"
        self.taken.append((series, series.count))
        self.times[series.said.regarding.name].append(self.now)

    def sweep(self, *, closing: bool) -> None:
        for series in self.correlator.sweep(self.now, closing=closing):
            self.take(series)

    def answer(self, outcome: str) -> None:
        series, count = self.taken.pop(0)
        if outcome == "ok":
            self.known[id(series)] = (series, count)
            self.correlator.wrote(series, count, self.now)
        else:
            self.correlator.failed(series, outcome)

    def step(self, step: tuple[object, ...]) -> None:
        match step:
            case ("event", int(object), int(note), str(api)):
                self.event(object, note, V1 if api == "v1" else CORE)
            case ("flood", int(object), int(count)):
                for note in range(count):
                    self.event(object, note, V1)
            case ("pass", float(seconds)):
                self.now += seconds
                self.sweep(closing=False)
            case ("jump", float(seconds)):
                self.now += seconds
            case ("sweep", bool(closing)):
                self.sweep(closing=closing)
            case ("answer", str(outcome)) if self.taken:
                self.answer(outcome)

    def finish(self) -> None:
        while self.taken:
            self.answer("ok")
        self.correlator.abandon("shutdown")


@given(STEPS, st.sampled_from([200, 4096]))
def test_any_events_are_accounted_for(steps: list[tuple[object, ...]], size: int) -> None:
    machine = Machine(size)
    for step in steps:
        machine.step(step)
    machine.finish()
    written = sum(count for _, count in machine.known.values())
    assert written + machine.dropped.total() == machine.observed


@given(STEPS)
def test_any_events_make_few_requests(steps: list[tuple[object, ...]]) -> None:
    """For each object 25 and one every five minutes, however many events there are and however the writes go."""
    machine = Machine(4096)
    for step in steps:
        machine.step(step)
    machine.finish()
    for times in machine.times.values():
        for first in range(len(times)):
            for last in range(first, len(times)):
                assert last - first + 1 <= BURST + (times[last] - times[first]) / REFILL + 1e-6


@given(STEPS, st.integers(0, 2), st.integers(0, 40))
def test_after_any_events_none_is_lost_for_ever(steps: list[tuple[object, ...]], object: int, note: int) -> None:
    """After a pause every event is written again as soon as it happens."""
    machine = Machine(4096)
    for step in steps:
        machine.step(step)
    while machine.taken:
        machine.answer("ok")
    for _ in range(BURST * 4):
        machine.now += REFILL
        machine.sweep(closing=False)
        while machine.taken:
            machine.answer("ok")
    assert len(machine.correlator) == 0
    machine.event(object, note, V1)
    ((series, _),) = machine.taken
    assert series.said.note == f"n{note}"
