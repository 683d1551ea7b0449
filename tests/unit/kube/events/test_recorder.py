"""Events over real HTTP: what the server gets, and what happens when it does not take it."""

from __future__ import annotations

import asyncio
import datetime as dt
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

import pytest
from aiohttp import web
from tests.unit.kube.pod_server import (
    Apply,
    Fault,
    PodServer,
    answers,
    answers_by_half,
    client_of,
    closes_after,
    closes_before,
    fails,
    pod_info,
    says,
    serving,
    status,
    when,
)
from tests.unit.kube.timers import VirtualTimers

from ksp.kube.errors import KubeError, UnreachableError
from ksp.kube.events.objects import ObjectReference
from ksp.kube.events.recorder import IN_FLIGHT, QUEUE, SWEEP, EventRecorder
from ksp.kube.events.sender import TRIES, EventNames
from ksp.kube.http.client import Client
from ksp.model.meta import ObjectMeta
from ksp.model.node import Node

START = dt.datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=dt.UTC)
START_NANOS = 1767323045000006000  # `date -u -d 2026-01-02T03:04:05 +%s`, and 6 microseconds


class Serves:
    def __init__(self, *served: str) -> None:
        self.served = set(served)
        self.after: list[set[str] | KubeError] = []
        """What the next questions find."""

    async def refresh(self) -> None:
        found = self.after.pop(0)
        if isinstance(found, KubeError):
            raise found
        self.served = found

    def serves(self, group: str, version: str, resource: str) -> bool:
        return resource == "events" and f"{group}/{version}" in self.served


class Wall:
    """The time of day that belongs to the virtual time."""

    def __init__(self, timers: VirtualTimers) -> None:
        self.timers = timers

    def wall(self) -> dt.datetime:
        return START + dt.timedelta(seconds=self.timers.now())


class Loaded:
    """Dice that always show the same."""

    def below(self, n: int) -> int:
        return n - 1


@dataclass
class Told:
    written: Counter[str] = field(default_factory=Counter)
    dropped: Counter[str] = field(default_factory=Counter)
    messages: list[str] = field(default_factory=list)
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    def event_written(self, verb: Literal["create", "patch"]) -> None:
        self.written[verb] += 1
        self.changed.set()

    def event_dropped(self, reason: str, count: int) -> None:
        self.dropped[reason] += count
        self.changed.set()

    def event_failed(self, message: str) -> None:
        self.messages.append(message)
        self.changed.set()

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(10):
            while not condition():
                self.changed.clear()
                await self.changed.wait()


@dataclass
class Bench:
    server: PodServer
    timers: VirtualTimers
    told: Told
    recorder: EventRecorder
    discovery: Serves

    async def writes(self, n: int) -> None:
        """Until the server has taken `n` requests in all."""
        await self.told.until(lambda: self.told.written.total() >= n)

    async def after_pauses(self, condition: Callable[[], bool]) -> None:
        """Lets the pauses between tries pass."""
        async with asyncio.timeout(10):
            met = asyncio.create_task(self.told.until(condition))
            while not condition():
                asleep = asyncio.create_task(self.timers.asleep(2, within=10))  # the sweep, and the one that tries
                await asyncio.wait({met, asleep}, return_when=asyncio.FIRST_COMPLETED)
                asleep.cancel()
                if not condition():
                    await self.timers.next()
            await met

    @property
    def event(self) -> dict[str, Any]:
        (found,) = self.server.events.values()
        return found


@asynccontextmanager
async def recording(*served: str, run: bool = True) -> AsyncGenerator[Bench]:
    timers, told, discovery = VirtualTimers(jitter=0.5), Told(), Serves(*served)
    async with serving(PodServer()) as server, client_of(server, timers) as client:
        recorder = _recorder(client, discovery, timers, told)
        bench = Bench(server, timers, told, recorder, discovery)
        if not run:
            yield bench
            return
        task = asyncio.create_task(recorder.run())
        try:
            await timers.asleep()
            yield bench
        finally:
            task.cancel()
            await asyncio.wait({task}, timeout=10)
            assert task.cancelled() or task.exception() is None


def _recorder(client: Client, discovery: Serves, timers: VirtualTimers, told: Told) -> EventRecorder:
    return EventRecorder(
        client,
        discovery,
        timers,
        Loaded(),
        source="default-scheduler",
        host="h",
        clock=Wall(timers),
        observer=told,
    )


@pytest.fixture
async def bench() -> AsyncGenerator[Bench]:
    async with recording("events.k8s.io/v1", "events.k8s.io/v1beta1") as bench:
        yield bench


REFERENCE = {
    "kind": "Pod", "apiVersion": "v1", "namespace": "w", "name": "p", "uid": "u1", "resourceVersion": "1"
}  # fmt: skip


@pytest.mark.parametrize("version", ["v1", "v1beta1"])
async def test_an_event_of_events_k8s_io(version: str) -> None:
    async with recording(f"events.k8s.io/{version}") as bench:
        bench.recorder.scheduled(pod_info(), "n1")
        await bench.writes(1)
        (seen,) = bench.server.seen
        assert (seen.method, seen.path) == ("POST", f"/apis/events.k8s.io/{version}/namespaces/w/events")
        assert seen.body == {
            "apiVersion": f"events.k8s.io/{version}",
            "kind": "Event",
            "metadata": {"namespace": "w", "name": f"p.{START_NANOS + 999:x}"},
            "eventTime": "2026-01-02T03:04:05.000006Z",
            "reportingController": "default-scheduler",
            "reportingInstance": "default-scheduler-h",
            "action": "Binding",
            "reason": "Scheduled",
            "regarding": REFERENCE,
            "note": "Successfully assigned w/p to n1",
            "type": "Normal",
        }


@pytest.mark.parametrize(
    ("served", "said", "about"),
    [
        (("events.k8s.io/v1",), "note", "regarding"),
        (("events.k8s.io/v1beta1",), "note", "regarding"),
        ((), "message", "involvedObject"),
    ],
)
async def test_a_victim_is_told_for_whom_it_goes(served: tuple[str, ...], said: str, about: str) -> None:
    async with recording(*served) as bench:
        bench.recorder.preempted(pod_info(), pod_info("high", "u9"), "n1")
        await bench.writes(1)
        event = bench.event
    assert (event["type"], event["reason"]) == ("Normal", "Preempted")
    assert event[said] == "Preempted by pod u9 on node n1"
    assert event[about] == REFERENCE
    assert event["related"] == {"kind": "Pod", "apiVersion": "v1", "uid": "u9"}
    assert not served or event["action"] == "Preempting"


async def test_an_event_of_the_core_where_there_is_nothing_newer() -> None:
    async with recording() as bench:
        bench.recorder.failed_scheduling(pod_info(), "0/2 nodes are available.")
        await bench.writes(1)
        await bench.timers.advance(1)
        bench.recorder.failed_scheduling(pod_info(), "0/2 nodes are available.")
        await bench.writes(2)
        created, patched = bench.server.seen
        name = f"p.{START_NANOS + 999:x}"
        assert created.path == "/api/v1/namespaces/w/events"
        assert created.body == {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"namespace": "w", "name": name},
            "involvedObject": REFERENCE,
            "reason": "FailedScheduling",
            "source": {"component": "default-scheduler"},
            "firstTimestamp": "2026-01-02T03:04:05Z",
            "lastTimestamp": "2026-01-02T03:04:05Z",
            "count": 1,
            "message": "0/2 nodes are available.",
            "type": "Warning",
        }
        assert (patched.method, patched.path) == ("PATCH", f"/api/v1/namespaces/w/events/{name}")
        assert patched.body == {
            "count": 2,
            "lastTimestamp": "2026-01-02T03:04:06Z",
            "message": "0/2 nodes are available.",
        }


async def test_a_repeated_event_becomes_a_series(bench: Bench) -> None:
    bench.recorder.failed_scheduling(pod_info(), "no")
    await bench.writes(1)
    assert bench.server.seen[0].body["action"] == "Scheduling"
    assert "series" not in bench.server.seen[0].body
    await bench.timers.advance(1.5)
    bench.recorder.failed_scheduling(pod_info(version="2"), "no")
    await bench.writes(2)
    patched = bench.server.seen[1]
    assert (patched.method, patched.content_type) == ("PATCH", "application/strategic-merge-patch+json")
    assert patched.path == f"/apis/events.k8s.io/v1/namespaces/w/events/p.{START_NANOS + 999:x}"
    assert patched.body == {"series": {"count": 2, "lastObservedTime": "2026-01-02T03:04:06.500006Z"}}
    for _ in range(7):
        bench.recorder.failed_scheduling(pod_info(), "no")
    await bench.timers.advance(300 + SWEEP)
    await bench.writes(3)
    assert bench.event["series"]["count"] == 9
    await bench.timers.advance(400)
    bench.recorder.failed_scheduling(pod_info(), "no")
    await bench.writes(4)
    assert len(bench.server.events) == 2


async def test_an_event_of_something_in_no_namespace_is_in_default(bench: Bench) -> None:
    bench.recorder.event(Node(metadata=ObjectMeta(name="n1", uid="u")), "Warning", "R", "A", "note")
    await bench.writes(1)
    (seen,) = bench.server.seen
    assert seen.path == "/apis/events.k8s.io/v1/namespaces/default/events"
    assert seen.body["metadata"]["namespace"] == "default"
    assert seen.body["regarding"] == {"kind": "Node", "apiVersion": "v1", "name": "n1", "uid": "u"}


async def test_an_event_of_any_object(bench: Bench) -> None:
    lease = ObjectReference(kind="Lease", api_version="coordination.k8s.io/v1", namespace="kube-system", name="l")
    bench.recorder.event(lease, "Normal", "LeaderElection", "LeaderElection", "x became leader")
    await bench.writes(1)
    assert bench.server.seen[0].path == "/apis/events.k8s.io/v1/namespaces/kube-system/events"
    assert bench.event["regarding"]["kind"] == "Lease"


async def test_texts_keep_to_the_limits_of_the_api(bench: Bench) -> None:
    bench.recorder.event(pod_info(), "Normal", "R\n" * 200, "A" * 200, "é\x1b" * 2000, source="s" * 200)
    await bench.writes(1)
    body = bench.server.seen[0].body
    assert len(body["note"].encode()) <= 1024
    assert body["note"].startswith("é é ")
    assert body["note"].endswith(" ...")
    assert body["reason"].startswith("R R ")
    assert {len(body[key]) for key in ("reason", "action", "reportingController", "reportingInstance")} == {128}


async def test_an_event_that_the_server_has_forgotten_is_created_anew(bench: Bench) -> None:
    bench.recorder.failed_scheduling(pod_info(), "no")
    await bench.writes(1)
    bench.server.events.clear()
    bench.recorder.failed_scheduling(pod_info(), "no")
    await bench.writes(2)
    assert [seen.method for seen in bench.server.seen] == ["POST", "PATCH", "POST"]
    assert bench.event["series"]["count"] == 2


@pytest.mark.parametrize("faults", [[], [answers(429)]])
async def test_a_name_that_is_taken_is_not_ours(bench: Bench, faults: Sequence[Fault]) -> None:
    bench.server.fault("event", *faults)
    bench.server.events[f"p.{START_NANOS + 999:x}"] = {"of": "another"}
    bench.recorder.failed_scheduling(pod_info(), "no")
    await bench.after_pauses(lambda: bench.told.written.total() == 1)
    assert sorted(bench.server.events) == [f"p.{START_NANOS + 999:x}", f"p.{START_NANOS + 1000:x}"]


@pytest.mark.parametrize("fault", [closes_after, answers_by_half, fails(504)])
async def test_a_name_that_is_taken_after_a_lost_answer_is_ours(bench: Bench, fault: Fault) -> None:
    bench.server.fault("event", fault)
    bench.recorder.failed_scheduling(pod_info(), "no")
    await bench.after_pauses(lambda: bench.told.written.total() == 1)
    assert len(bench.server.events) == 1
    assert [seen.method for seen in bench.server.seen] == ["POST", "POST"]


async def test_what_happened_meanwhile_is_patched_after_a_lost_answer(bench: Bench) -> None:
    bench.server.fault("event", closes_after)
    bench.recorder.failed_scheduling(pod_info(), "no")
    await bench.timers.asleep(2)
    bench.recorder.failed_scheduling(pod_info(), "no")
    await bench.after_pauses(lambda: bench.told.written.total() == 1)
    assert bench.event["series"]["count"] == 2
    assert [seen.method for seen in bench.server.seen] == ["POST", "POST", "PATCH"]


async def test_a_name_is_ours_only_as_long_as_the_server_keeps_it(bench: Bench) -> None:
    """Created, but the answer is lost; found there; forgotten by the server; taken by another."""
    taken = answers(409, "AlreadyExists")
    bench.server.fault("event", closes_after, taken, taken)
    bench.server.fault("series", answers(404, "NotFound"))
    bench.recorder.failed_scheduling(pod_info(), "no")
    await bench.timers.asleep(2)
    bench.recorder.failed_scheduling(pod_info(), "no")
    await bench.after_pauses(lambda: bench.told.written.total() == 1)
    assert [seen.method for seen in bench.server.seen] == ["POST", "POST", "PATCH", "POST", "POST"]
    names = [seen.body["metadata"]["name"] for seen in bench.server.sent("event")]
    assert names[0] == names[1] == names[2] != names[3]


@pytest.mark.parametrize("faults", [[closes_before] * 3, [answers(503), answers(502), answers(504)]])
async def test_what_cannot_be_sent_is_sent_again_after_a_pause(bench: Bench, faults: Sequence[Fault]) -> None:
    bench.server.fault("event", *faults)
    bench.recorder.failed_scheduling(pod_info(), "no")
    await bench.after_pauses(lambda: bench.told.written.total() == 1)
    assert len(bench.server.seen) == 4
    assert bench.timers.slept.count(10.0) >= 2
    assert not bench.told.dropped


@pytest.mark.parametrize(("said", "waited"), [("2", 10.0), ("20", 20.0), ("86400", 60.0)])
async def test_an_overloaded_server_is_left_alone_for_as_long_as_it_says(
    bench: Bench, said: str, waited: float
) -> None:
    async def later(request: web.Request, apply: Apply) -> web.StreamResponse:
        response = await answers(429)(request, apply)
        response.headers["Retry-After"] = said
        return response

    bench.server.fault("event", later)
    bench.recorder.failed_scheduling(pod_info(), "no")
    await bench.timers.asleep(2)
    assert bench.timers.slept == [SWEEP, waited]


async def test_an_event_is_given_up_after_so_many_tries(bench: Bench) -> None:
    bench.server.fault("event", *[closes_before] * TRIES)
    bench.recorder.failed_scheduling(pod_info(), "no")
    await bench.after_pauses(lambda: bench.told.dropped.total() == 1)
    assert bench.told.dropped == {"unreachable": 1}
    assert len(bench.server.seen) == TRIES
    bench.recorder.failed_scheduling(pod_info(), "no")
    await bench.writes(1)


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        (answers(422, "Invalid", "bad note"), "422 Invalid: bad note"),
        (answers(500, "InternalError", "webhook"), "500 InternalError: webhook"),
        (
            answers(403, "Forbidden", 'User "x" cannot create resource "events" in API group "events.k8s.io"'),
            (
                '403 Forbidden: User "x" cannot create resource "events" in API group "events.k8s.io"; add to the '
                'ClusterRole: apiGroups: ["events.k8s.io"], resources: ["events"], verbs: ["create"]'
            ),
        ),
    ],
)
async def test_what_the_server_rejects_is_dropped_and_said(bench: Bench, fault: Fault, message: str) -> None:
    bench.server.fault("event", fault)
    bench.recorder.failed_scheduling(pod_info(), "no")
    await bench.told.until(lambda: bool(bench.told.dropped))
    assert bench.told.dropped == {"rejected": 1}
    assert bench.told.messages == [message]
    bench.recorder.failed_scheduling(pod_info(), "no")
    await bench.writes(1)


async def test_an_answer_that_is_no_event_is_as_good(bench: Bench) -> None:
    """Nothing of it is read."""
    bench.server.fault("event", says("", 200))
    bench.recorder.failed_scheduling(pod_info(), "no")
    await bench.writes(1)


async def test_the_queue_is_bounded_and_nobody_waits_for_it(bench: Bench) -> None:
    release, arrived = asyncio.Event(), asyncio.Event()
    bench.server.fault("event", *[when(release, arrived)] * IN_FLIGHT)
    for n in range(IN_FLIGHT):
        bench.recorder.scheduled(pod_info(f"first{n}"), "n1")
    await bench.server.received(IN_FLIGHT)
    for n in range(QUEUE + 50):
        bench.recorder.scheduled(pod_info(f"p{n}"), "n1")
    assert bench.told.dropped == {"queue_full": 50}
    release.set()
    await bench.writes(IN_FLIGHT + QUEUE)
    assert bench.server.most_in_flight == IN_FLIGHT


async def test_a_flood_about_one_pod_makes_few_requests(bench: Bench) -> None:
    for n in range(1000):
        bench.recorder.failed_scheduling(pod_info(), f"0/{n} nodes")
    await bench.writes(25)
    await bench.timers.advance(361 + SWEEP)
    await bench.told.until(lambda: bench.told.dropped.total() + bench.told.written.total() == 1000)
    assert bench.told.dropped == {"spam": 974}
    assert len(bench.server.seen) == 26


async def test_the_api_is_asked_for_each_time() -> None:
    async with recording() as bench:
        bench.recorder.failed_scheduling(pod_info(), "no")
        await bench.writes(1)
        bench.discovery.served.add("events.k8s.io/v1")
        bench.recorder.failed_scheduling(pod_info(), "no")
        await bench.writes(2)
        assert [seen.path.rsplit("/", 3)[0] for seen in bench.server.seen] == ["/api/v1", "/apis/events.k8s.io/v1"]


@pytest.mark.parametrize(
    "gone",
    [answers(404, "NotFound", "the server could not find the requested resource"), says("404 page not found\n", 404)],
)
async def test_an_api_that_is_served_no_more_is_found_out_and_another_one_used(gone: Fault) -> None:
    async with recording("events.k8s.io/v1") as bench:
        bench.discovery.after = [UnreachableError("no"), set()]
        bench.server.fault("event", gone)
        bench.recorder.failed_scheduling(pod_info(), "no")
        await bench.told.until(lambda: bool(bench.told.dropped))
        assert bench.told.dropped == {"rejected": 1}
        assert bench.told.messages[0].startswith("events of events.k8s.io/v1 are not served")
        await bench.timers.advance(SWEEP)
        assert bench.told.messages[1] == "cannot find out in which version events are served: no"
        await bench.timers.advance(SWEEP)
        bench.recorder.failed_scheduling(pod_info(), "no")
        await bench.writes(1)
        assert bench.server.seen[-1].path.startswith("/api/v1/namespaces/")
        await bench.timers.advance(10 * SWEEP)
        assert bench.discovery.after == []  # and nobody asks any more


async def test_a_namespace_that_is_gone_says_nothing_of_the_api(bench: Bench) -> None:
    async def gone(_request: web.Request, _apply: Apply) -> web.StreamResponse:
        return status(404, "NotFound", 'namespaces "default" not found', {"name": "default", "kind": "namespaces"})

    bench.server.fault("event", gone)
    bench.recorder.failed_scheduling(pod_info(), "no")
    await bench.told.until(lambda: bool(bench.told.dropped))
    await bench.timers.advance(2 * SWEEP)  # an API that is looked for would find the list of answers empty
    assert bench.told.messages == ['404 NotFound: namespaces "default" not found']


async def test_closing_writes_what_there_is_and_ends_the_run() -> None:
    async with recording("events.k8s.io/v1", run=False) as bench:
        running = asyncio.create_task(bench.recorder.run())
        await bench.timers.asleep()
        for _ in range(2):
            bench.recorder.failed_scheduling(pod_info(), "no")
        await bench.writes(1)
        for _ in range(5):
            bench.recorder.failed_scheduling(pod_info(), "no")
            bench.recorder.scheduled(pod_info("q", "u2"), "n1")
        async with asyncio.timeout(10):
            await bench.recorder.close(5.0)
            await running
        assert {event["regarding"]["name"]: event["series"]["count"] for event in bench.server.events.values()} == {
            "p": 7,
            "q": 5,
        }
        bench.recorder.failed_scheduling(pod_info(), "late")
        assert bench.told.dropped == {"shutdown": 1}


async def test_closing_writes_what_was_repeated_while_it_was_written() -> None:
    async with recording("events.k8s.io/v1", run=False) as bench:
        release, arrived = asyncio.Event(), asyncio.Event()
        bench.server.fault("event", when(release, arrived))
        running = asyncio.create_task(bench.recorder.run())
        await bench.timers.asleep()
        bench.recorder.failed_scheduling(pod_info(), "no")
        async with asyncio.timeout(10):
            await arrived.wait()
            for _ in range(3):
                bench.recorder.failed_scheduling(pod_info(), "no")
            closing = asyncio.create_task(bench.recorder.close(5.0))
            await bench.timers.asleep(2)
            release.set()
            await closing
            await running
        assert bench.event["series"]["count"] == 4
        assert not bench.told.dropped


async def test_closing_ends_when_the_run_is_cancelled_meanwhile() -> None:
    async with recording("events.k8s.io/v1", run=False) as bench:
        bench.server.fault("event", *[when(asyncio.Event())] * IN_FLIGHT)
        running = asyncio.create_task(bench.recorder.run())
        await bench.timers.asleep()
        for n in range(IN_FLIGHT + 2):
            bench.recorder.scheduled(pod_info(f"p{n}"), "n1")
        async with asyncio.timeout(10):
            await bench.server.received(IN_FLIGHT)
            closing = asyncio.create_task(bench.recorder.close(5.0))
            await bench.timers.asleep(2)
            running.cancel()
            await closing
        assert bench.told.dropped == {"shutdown": IN_FLIGHT + 2}


async def test_closing_does_not_wait_longer_than_it_is_told() -> None:
    async with recording("events.k8s.io/v1", run=False) as bench:
        arrived = asyncio.Event()
        bench.server.fault("event", when(asyncio.Event(), arrived))
        running = asyncio.create_task(bench.recorder.run())
        await bench.timers.asleep()
        bench.recorder.failed_scheduling(pod_info(), "no")
        async with asyncio.timeout(10):
            await arrived.wait()
            closing = asyncio.create_task(bench.recorder.close(5.0))
            await bench.timers.asleep(2)
            await bench.timers.advance(4.9)
            assert not closing.done()
            await bench.timers.advance(0.2)
            await closing
            await running
        assert bench.told.dropped == {"shutdown": 1}


async def test_closing_without_a_run_drops_all() -> None:
    async with recording("events.k8s.io/v1", run=False) as bench:
        bench.recorder.failed_scheduling(pod_info(), "no")
        async with asyncio.timeout(10):
            await bench.recorder.close(5.0)
        assert bench.told.dropped == {"shutdown": 1}
        assert bench.server.seen == []


async def test_closing_after_the_run_was_cancelled_does_not_wait() -> None:
    async with recording("events.k8s.io/v1", run=False) as bench:
        running = asyncio.create_task(bench.recorder.run())
        await bench.timers.asleep()
        bench.recorder.failed_scheduling(pod_info(), "no")
        running.cancel()
        async with asyncio.timeout(10):
            await asyncio.wait([running])
            assert running.cancelled()
            await bench.recorder.close(5.0)
        assert bench.told.dropped == {"shutdown": 1}


def test_names_fit_and_never_repeat() -> None:
    names = EventNames(Loaded())
    assert names.name("p", START) == f"p.{START_NANOS + 999:x}"
    assert names.name("p", START) == f"p.{START_NANOS + 1000:x}"
    assert names.name("p", START - dt.timedelta(days=1)) == f"p.{START_NANOS + 1001:x}"
    long = names.name("x" * 235 + "." * 18, START)
    assert len(long) <= 253
    assert ".." not in long
    assert len(names.name("x" * 253, START)) == 253
