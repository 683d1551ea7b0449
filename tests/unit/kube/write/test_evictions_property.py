"""Whatever the network, the server and others do: `evict` harms no other pod, and what it says is true."""

from __future__ import annotations

from math import inf

from hypothesis import strategies as st
from tests.unit.kube.pod_server import pod_info
from tests.unit.kube.write.stories import ERRORS, FAILED_AFTER, PLAIN, Answer, Unsteady, asked, late, refused, tell

from ksp.kube.write.writes import Evicted, Failed, Gone

ANSWER = st.one_of(*map(st.just, PLAIN), late(0, 6), refused(409), refused(401, *ERRORS), FAILED_AFTER)
OTHERS = st.sampled_from(["", "", "", "deletes", "replaces", "terminates", "binds"])
PREEMPTOR = pod_info("important", "u9")


class Evictions(Unsteady):
    """One script for all requests; what is late takes effect however late it is."""

    lasts = inf

    def __init__(self, answers: list[Answer], others: list[str]) -> None:
        script = list(answers)
        super().__init__({"PATCH": script, "DELETE": script, "GET": script}, others)

    def others_act(self, act: str) -> None:
        pod = self.pods.get("w/p")
        match act:
            case "deletes":
                self.pods.clear()
            case "replaces":
                self.add("p", uid="u2", node="n1")
            case "terminates" if pod:
                pod["metadata"]["deletionTimestamp"] = "2026-01-02T03:04:05Z"
                pod["by"] = "others"
            case "binds" if pod:
                pod["spec"]["nodeName"] = "n1"


async def outcome(answers: list[Answer], others: list[str], node: str, marks: bool) -> tuple[Evictions, object]:
    server = Evictions(answers, others)
    server.add("p", node=node)
    return server, await asked(server, lambda writer: writer.evict(pod_info(), PREEMPTOR), marks_victims=marks)


def test_no_other_pod_is_harmed_and_what_is_said_of_the_victim_is_true() -> None:
    lists = st.lists(ANSWER, max_size=10), st.lists(OTHERS, max_size=10)
    tell(300, outcome, check, *lists, st.sampled_from(["", "n1"]), st.booleans())


def check(server: Evictions, verdict: object) -> None:
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
