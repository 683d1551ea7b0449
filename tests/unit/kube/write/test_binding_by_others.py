"""A pod is bound by somebody else, such as an extender: what came of that is found out, and nobody is asked again."""

from __future__ import annotations

from collections.abc import AsyncGenerator

import pytest
from tests.unit.kube.driving import driven
from tests.unit.kube.pod_server import PodServer, fails, pod_info
from tests.unit.kube.write.bench import WriteBench, at_work

from ksp.kube.write.patience import Patience
from ksp.kube.write.settling import DEAD_AFTER, Kind, Sent
from ksp.kube.write.writes import Bound, NotBound
from ksp.model.info import PodInfo


class Bench(WriteBench[PodServer]):
    sends: int = 0

    async def bind(self, sent: Sent, node: str = "") -> Bound | NotBound:
        """The other says this, after it has bound the pod to the node, if one is named."""

        async def send(pod: PodInfo, _: str) -> Sent:
            self.sends += 1
            self.server.pods["w/p"]["spec"]["nodeName"] = node
            return sent

        return await driven(self.timers, self.writer.bind(pod_info(), "n1", send))

    @property
    def methods(self) -> list[str]:
        return [seen.method for seen in self.server.seen]


@pytest.fixture
async def bench() -> AsyncGenerator[Bench]:
    async with at_work(Bench, PodServer(), Patience()) as bench:
        bench.server.add("p")
        yield bench


async def test_who_says_that_it_is_done_is_believed(bench: Bench) -> None:
    assert await bench.bind(Sent(Kind.DONE)) == Bound()
    assert bench.methods == []


@pytest.mark.parametrize("kind", [Kind.REFUSED, Kind.UNPROCESSED])
async def test_and_so_is_who_says_that_it_did_nothing(bench: Bench, kind: Kind) -> None:
    assert await bench.bind(Sent(kind, "no room")) == NotBound("no room")
    assert bench.methods == []


@pytest.mark.parametrize("kind", [Kind.CONFLICT, Kind.UNKNOWN])
async def test_else_the_pod_says_whether_it_is_bound(bench: Bench, kind: Kind) -> None:
    bench.server.fault("read", fails(500))
    assert await bench.bind(Sent(kind, "status 500"), "n1") == Bound()
    assert set(bench.methods) == {"GET"}
    assert await bench.bind(Sent(kind, "status 500"), "n2") == NotBound("the pod is on node n2 already", elsewhere=True)


async def test_after_another_status_one_look_is_enough(bench: Bench) -> None:
    assert await bench.bind(Sent(Kind.CONFLICT, "status 500")) == NotBound("status 500")
    assert bench.methods == ["GET"]
    assert bench.timers.now() == 0.0


@pytest.mark.parametrize("seconds", [0.5, 5.0, DEAD_AFTER])
async def test_after_silence_the_pod_is_read_twice(bench: Bench, seconds: float) -> None:
    """At once, and when the other is not expected to bind it any more: many pods may wait so, and each look counts
    against the limit of requests."""
    assert await bench.bind(Sent(Kind.UNKNOWN, "no answer", dead_after=seconds)) == NotBound("no answer")
    assert seconds <= bench.timers.now() < 1.2 * seconds
    assert bench.sends == 1
    assert bench.methods == ["GET", "GET"]
