"""Whatever the network, the server and others do: what is said of a volume is true, and is written once at most."""

from __future__ import annotations

import asyncio
from typing import Any, Final

from aiohttp import web
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.kube.driving import driven
from tests.unit.kube.pod_server import Apply, client_of, closes_before, pod_info, serving, status
from tests.unit.kube.timers import VirtualTimers
from tests.unit.kube.volume_server import CLAIM, VOLUME, VolumeServer

from ksp.kube.write.settling import DEAD_AFTER
from ksp.kube.write.writes import NotBound, VolumeOrClaim, VolumesWritten, Writer
from ksp.model.decode import convert
from ksp.model.storage import PersistentVolume, PersistentVolumeClaim

# A server gives up on a request after this many seconds.
REQUEST_TIMEOUT: Final = 60.0
assert REQUEST_TIMEOUT < DEAD_AFTER

ERRORS: Final = (400, 403, 404, 409, 422, 500, 503, 504)
PATCH = st.one_of(
    st.sampled_from([("works", 0), ("lost after", 0), ("lost before", 0)]),
    st.tuples(st.just("late"), st.integers(0, 40)),  # applied when so many more requests have come
    st.tuples(st.just("refused"), st.sampled_from(ERRORS)),
    st.tuples(st.just("failed after"), st.sampled_from([500, 503, 504])),
)
READ = st.one_of(
    st.sampled_from([("works", 0), ("lost before", 0)]),
    st.tuples(st.just("refused"), st.sampled_from([403, 429, 500, 503])),
)
OTHERS = st.sampled_from(["", "", "", "", "shares", "takes", "resets", "labels", "deletes", "replaces"])
OURS: Final = {"namespace": "w", "name": "c1", "uid": "uc"}


class Unsteady(VolumeServer):
    """Does what a script says, with writes that take effect later, and others who act between requests. `said` tells
    whether the volume was ever promised to our claim, `by_us` how many of our requests took effect."""

    def __init__(self, timers: VirtualTimers, patches: list[Any], reads: list[Any], others: list[str]) -> None:
        super().__init__()
        self.timers = timers
        self.script = {"PATCH": list(patches), "GET": list(reads)}
        self.others = list(others)
        self.late: list[tuple[int, float, Apply]] = []  # requests to wait for, deadline, effect
        self.by_us = 0
        self.said = False

    async def handle(self, request: web.Request) -> web.StreamResponse:
        self.let_others_act()
        self.let_late_ones_through(all=False)
        body = await request.json() if request.can_read_body else None
        segments = request.path.split("/")
        apply: Apply = lambda: (self.write if request.method == "PATCH" else self._look)(segments, body)
        script = self.script[request.method]
        what, how = script.pop(0) if script else ("works", 0)
        match what:
            case "works":
                return apply()
            case "late":
                self.late.append((how, self.timers.now() + REQUEST_TIMEOUT, apply))
            case "refused":
                return status(how, "NotFound" if how == 404 and not self.objects else "Failure", "no")
            case "lost after":
                apply()
            case "failed after":
                apply()
                return status(how, "InternalError", "etcdserver: request timed out")
        return await closes_before(request, apply)

    def write(self, segments: list[str], body: Any) -> web.Response:
        answer = self._change(segments, body)
        self.by_us += answer.status == 200
        self.said |= answer.status == 200
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
        if VOLUME not in self.objects:
            return
        match self.others.pop(0) if self.others else "":
            case "shares":  # a pod with the same claim
                self.alter(VOLUME, {"spec": {"claimRef": OURS}})
                self.said = True
            case "takes":
                self.alter(VOLUME, {"spec": {"claimRef": OURS | {"name": "c9", "uid": "u9"}}})
            case "resets":
                self.alter(VOLUME, {"spec": {"claimRef": None}})
            case "labels":
                self.alter(VOLUME, {"metadata": {"labels": {"a": str(self.version)}}})
            case "deletes":
                self.objects.clear()
            case "replaces":
                self.put(VOLUME, "another")


async def outcome(
    patches: list[Any], reads: list[Any], others: list[str]
) -> tuple[Unsteady, VolumesWritten | NotBound, list[VolumeOrClaim]]:
    timers = VirtualTimers(jitter=0.5)
    server = Unsteady(timers, patches, reads, others)
    told: list[VolumeOrClaim] = []
    async with serving(server), client_of(server, timers) as client:
        volume = convert(PersistentVolume, server.put(VOLUME, "uv"))
        claim = convert(PersistentVolumeClaim, {"metadata": server.put(CLAIM, "uc")["metadata"] | {"namespace": "w"}})
        write = Writer(client, timers).bind_volumes(
            pod_info(), "n1", [(volume, claim)], [], lambda _, stored: told.append(stored)
        )
        verdict = await driven(timers, write)
    return server, verdict, told


def test_what_is_said_of_a_volume_is_true_and_stays_true() -> None:
    """120 stories over real sockets: on one loop, since to make one costs as much as a story."""
    with asyncio.Runner() as runner:

        @settings(max_examples=120)
        @given(st.lists(PATCH, min_size=2, max_size=6), st.lists(READ, max_size=8), st.lists(OTHERS, max_size=12))
        def holds(patches: list[Any], reads: list[Any], others: list[str]) -> None:
            check(*runner.run(outcome(patches, reads, others)))

        holds()


def check(server: Unsteady, verdict: VolumesWritten | NotBound, told: list[VolumeOrClaim]) -> None:
    before = server.by_us
    server.let_late_ones_through(all=True)
    assert server.by_us <= 1
    if isinstance(verdict, NotBound):
        assert server.by_us == before  # nothing comes after it was said
        assert told == []
        return
    assert server.said
    (stored,) = told
    assert isinstance(stored, PersistentVolume)
    assert stored.metadata.uid == "uv"
    assert stored.spec.claim_ref is not None
    assert stored.spec.claim_ref.uid == "uc"
