"""Whatever the network, the server and others do: what `bind` says of a pod is true, and stays true."""

from __future__ import annotations

import asyncio
from typing import Any, Final

from aiohttp import web
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.kube.driving import driven
from tests.unit.kube.pod_server import Apply, PodServer, client_of, closes_before, pod_info, serving, status
from tests.unit.kube.timers import VirtualTimers

from ksp.kube.write.settling import DEAD_AFTER
from ksp.kube.write.writes import Bound, NotBound, Writer

# A server gives up on a request after this many seconds.
REQUEST_TIMEOUT: Final = 60.0
assert REQUEST_TIMEOUT < DEAD_AFTER

ERRORS: Final = (400, 403, 404, 409, 422, 500, 503, 504)

POST = st.one_of(
    st.tuples(st.just("works"), st.just(0)),
    st.tuples(st.just("lost after"), st.just(0)),
    st.tuples(st.just("lost before"), st.just(0)),
    st.tuples(st.just("late"), st.integers(0, 40)),  # applied when so many more requests have come
    st.tuples(st.just("late"), st.integers(20, 40)),
    st.tuples(st.just("refused"), st.sampled_from(ERRORS)),
    st.tuples(st.just("failed after"), st.sampled_from([500, 503, 504])),
)
READ = st.one_of(
    st.tuples(st.just("works"), st.just(0)),
    st.tuples(st.just("lost before"), st.just(0)),
    st.tuples(st.just("refused"), st.sampled_from([403, 429, 500, 503])),
)
OTHERS = st.sampled_from(["", "", "", "", "binds", "deletes", "replaces", "terminates"])


class Unsteady(PodServer):
    """Does what a script says, with bindings that take effect later, and others who act between requests."""

    def __init__(self, timers: VirtualTimers, posts: list[Any], reads: list[Any], others: list[str]) -> None:
        super().__init__()
        self.timers = timers
        self.script = {"POST": list(posts), "GET": list(reads)}
        self.others = list(others)
        self.late: list[tuple[int, float, Apply]] = []  # requests to wait for, deadline, effect
        self.bound_by_us: list[str] = []
        self.last_read = ""

    async def handle(self, request: web.Request) -> web.StreamResponse:
        self.let_others_act()
        self.let_late_ones_through(all=False)
        body = await request.json() if request.can_read_body else None
        segments = request.path.split("/")
        apply: Apply = lambda: (self.bind if request.method == "POST" else self._read)(segments, body)
        script = self.script[request.method]
        what, how = script.pop(0) if script else ("works", 0)
        match what:
            case "works":
                self.last_read = self.place() if request.method == "GET" else self.last_read
                return apply()
            case "late":
                self.late.append((how, self.timers.now() + REQUEST_TIMEOUT, apply))
            case "refused":
                return status(how, "NotFound" if how == 404 and not self.pods else "Failure", "no")
            case "lost after":
                apply()
            case "failed after":
                apply()
                return status(how, "InternalError", "etcdserver: request timed out")
        return await closes_before(request, apply)

    def bind(self, segments: list[str], body: Any) -> web.Response:
        answer = self._bind(segments, body)
        if answer.status == 201:
            self.bound_by_us.append(self.pods["w/p"]["metadata"]["uid"])
        return answer

    def let_late_ones_through(self, *, all: bool) -> None:
        waiting, self.late = self.late, []
        for requests, deadline, apply in waiting:
            if self.timers.now() > deadline:
                continue
            if requests and not all:
                self.late.append((requests - 1, deadline, apply))
            else:
                apply()

    def let_others_act(self) -> None:
        pod = self.pods.get("w/p")
        match self.others.pop(0) if self.others else "":
            case "binds" if pod and not pod["spec"].get("nodeName"):
                pod["spec"]["nodeName"] = "n9"
            case "deletes":
                self.pods.clear()
            case "replaces" if pod:
                self.add("p", uid="u2")
            case "terminates" if pod:
                pod["metadata"]["deletionTimestamp"] = "2026-01-02T03:04:05Z"

    def place(self) -> str:
        """Where the pod with our uid is; "" for nowhere, "gone" if it is no more."""
        pod = self.pods.get("w/p")
        if pod is None or pod["metadata"]["uid"] != "u1":
            return "gone"
        return str(pod["spec"].get("nodeName", ""))


async def outcome(posts: list[Any], reads: list[Any], others: list[str]) -> tuple[Unsteady, Bound | NotBound]:
    timers = VirtualTimers(jitter=0.5)
    server = Unsteady(timers, posts, reads, others)
    async with serving(server), client_of(server, timers) as client:
        server.add("p")
        verdict = await driven(timers, Writer(client, timers).bind(pod_info(), "n1"))
    return server, verdict


def test_the_verdict_is_true_and_stays_true() -> None:
    """300 stories over real sockets: on one loop, since to make one costs as much as a story."""
    with asyncio.Runner() as runner:

        @settings(max_examples=300)
        @given(st.lists(POST, min_size=2, max_size=6), st.lists(READ, max_size=8), st.lists(OTHERS, max_size=12))
        def holds(posts: list[Any], reads: list[Any], others: list[str]) -> None:
            check(*runner.run(outcome(posts, reads, others)))

        holds()


def check(server: Unsteady, verdict: Bound | NotBound) -> None:
    if isinstance(verdict, Bound):
        assert server.bound_by_us == ["u1"]
        assert server.place() in {"n1", "gone"}
        return
    assert verdict.gone or server.last_read != "gone"
    server.let_late_ones_through(all=True)
    assert server.place() in ({"gone"} if verdict.gone else {"", "n9", "gone"})
