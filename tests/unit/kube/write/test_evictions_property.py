"""Whatever the network, the server and others do: `evict` harms no other pod, and what it says is true."""

from __future__ import annotations

import asyncio
from typing import Any, Final

from aiohttp import web
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.kube.driving import driven
from tests.unit.kube.pod_server import Apply, PodServer, client_of, closes_before, pod_info, serving, status
from tests.unit.kube.timers import VirtualTimers

from ksp.kube.write.writes import Evicted, Failed, Gone, Writer

ERRORS: Final = (400, 401, 403, 404, 409, 422, 500, 503, 504)

ANSWER = st.one_of(
    st.just(("works", 0)),
    st.just(("lost after", 0)),
    st.just(("lost before", 0)),
    st.tuples(st.just("late"), st.integers(0, 6)),  # applied when so many more requests have come
    st.just(("refused", 409)),
    st.tuples(st.just("refused"), st.sampled_from(ERRORS)),
    st.tuples(st.just("failed after"), st.sampled_from([500, 503, 504])),
)
OTHERS = st.sampled_from(["", "", "", "deletes", "replaces", "terminates", "binds"])
PREEMPTOR = pod_info("important", "u9")


class Unsteady(PodServer):
    """Does what a script says, with requests that take effect later, and others who act between requests."""

    def __init__(self, answers: list[Any], others: list[str]) -> None:
        super().__init__()
        self.script = list(answers)
        self.others = list(others)
        self.late: list[tuple[int, Apply]] = []

    async def handle(self, request: web.Request) -> web.StreamResponse:
        self.let_others_act()
        self.let_late_ones_through()
        body = await request.json() if request.can_read_body else None
        kind = {"PATCH": self._status, "DELETE": self._delete, "GET": self._read}[request.method]
        apply: Apply = lambda: kind(request.path.split("/"), body)
        what, how = self.script.pop(0) if self.script else ("works", 0)
        match what:
            case "works":
                return apply()
            case "late":
                self.late.append((how, apply))
            case "refused":
                return status(how, "NotFound" if how == 404 and not self.pods else "Failure", "no")
            case "lost after":
                apply()
            case "failed after":
                apply()
                return status(how, "InternalError", "etcdserver: request timed out")
        return await closes_before(request, apply)

    def let_late_ones_through(self, *, all: bool = False) -> None:
        waiting, self.late = self.late, []
        for requests, apply in waiting:
            if requests and not all:
                self.late.append((requests - 1, apply))
            else:
                apply()

    def let_others_act(self) -> None:
        pod = self.pods.get("w/p")
        match self.others.pop(0) if self.others else "":
            case "deletes":
                self.pods.clear()
            case "replaces":
                self.add("p", uid="u2", node="n1")
            case "terminates" if pod:
                pod["metadata"]["deletionTimestamp"] = "2026-01-02T03:04:05Z"
                pod["by"] = "others"
            case "binds" if pod:
                pod["spec"]["nodeName"] = "n1"


async def outcome(answers: list[Any], others: list[str], *, node: str, marks: bool) -> tuple[Unsteady, object]:
    timers = VirtualTimers(jitter=0.5)
    server = Unsteady(answers, others)
    async with serving(server), client_of(server, timers) as client:
        server.add("p", node=node)
        writer = Writer(client, timers, marks_victims=marks)
        return server, await driven(timers, writer.evict(pod_info(), PREEMPTOR))


def test_no_other_pod_is_harmed_and_what_is_said_of_the_victim_is_true() -> None:
    """300 stories over real sockets, on one loop."""
    with asyncio.Runner() as runner:

        @settings(max_examples=300)
        @given(st.lists(ANSWER, max_size=10), st.lists(OTHERS, max_size=10), st.sampled_from(["", "n1"]), st.booleans())
        def holds(answers: list[Any], others: list[str], node: str, marks: bool) -> None:
            check(*runner.run(outcome(answers, others, node=node, marks=marks)))

        holds()


def check(server: Unsteady, verdict: object) -> None:
    assert isinstance(verdict, Evicted | Gone | Failed)
    pod = server.pods.get("w/p")
    is_victim = pod is not None and pod["metadata"]["uid"] == "u1"
    if not isinstance(verdict, Failed) and is_victim:
        assert pod is not None
        assert "deletionTimestamp" in pod["metadata"]
    server.let_late_ones_through(all=True)
    if pod is not None and not is_victim and "by" not in pod:
        assert "deletionTimestamp" not in pod["metadata"]
        assert pod["status"] == {}
