"""Whatever the network, the server and others do: what `bind` says of a pod is true, and stays true."""

from __future__ import annotations

from typing import Any

from aiohttp import web
from hypothesis import strategies as st
from tests.unit.kube.pod_server import pod_info
from tests.unit.kube.write.stories import ERRORS, FAILED_AFTER, PLAIN, Answer, Unsteady, asked, late, refused, tell

from ksp.kube.write.writes import Bound, NotBound

POST = st.one_of(*map(st.just, PLAIN), late(0, 40), late(20, 40), refused(*ERRORS), FAILED_AFTER)
READ = st.one_of(st.just(("works", 0)), st.just(("lost before", 0)), refused(403, 429, 500, 503))
OTHERS = st.sampled_from(["", "", "", "", "binds", "deletes", "replaces", "terminates"])


class Bindings(Unsteady):
    """Knows which pods our requests bound, and where the last answer to a read said that ours is."""

    def __init__(self, posts: list[Answer], reads: list[Answer], others: list[str]) -> None:
        super().__init__({"POST": list(posts), "GET": list(reads)}, others)
        self.bound_by_us: list[str] = []
        self.last_read = ""

    def _bind(self, segments: list[str], body: Any) -> web.Response:
        answer = super()._bind(segments, body)
        if answer.status == 201:
            self.bound_by_us.append(self.pods["w/p"]["metadata"]["uid"])
        return answer

    def _read(self, segments: list[str], body: Any) -> web.Response:
        self.last_read = self.place()
        return super()._read(segments, body)

    def others_act(self, act: str) -> None:
        pod = self.pods.get("w/p")
        match act:
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


async def outcome(posts: list[Answer], reads: list[Answer], others: list[str]) -> tuple[Bindings, Bound | NotBound]:
    server = Bindings(posts, reads, others)
    server.add("p")
    return server, await asked(server, lambda writer: writer.bind(pod_info(), "n1"))


def test_the_verdict_is_true_and_stays_true() -> None:
    lists = st.lists(POST, min_size=2, max_size=6), st.lists(READ, max_size=8), st.lists(OTHERS, max_size=12)
    tell(300, outcome, check, *lists)


def check(server: Bindings, verdict: Bound | NotBound) -> None:
    if isinstance(verdict, Bound):
        assert server.bound_by_us == ["u1"]
        assert server.place() in {"n1", "gone"}
        return
    assert verdict.gone or server.last_read != "gone"
    server.let_late_ones_through(all=True)
    assert server.place() in ({"gone"} if verdict.gone else {"", "n9", "gone"})
