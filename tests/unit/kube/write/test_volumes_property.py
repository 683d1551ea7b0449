"""Whatever the network, the server and others do: what is said of a volume is true, and is written once at most."""

from __future__ import annotations

from typing import Any, Final

from aiohttp import web
from hypothesis import strategies as st
from tests.unit.kube.pod_server import pod_info
from tests.unit.kube.volume_server import CLAIM, VOLUME, VolumeServer
from tests.unit.kube.write.stories import ERRORS, FAILED_AFTER, PLAIN, Answer, Unsteady, asked, late, refused, tell

from ksp.kube.write.writes import NotBound, VolumeOrClaim, VolumesWritten
from ksp.model.decode import convert
from ksp.model.storage import PersistentVolume, PersistentVolumeClaim

PATCH = st.one_of(st.sampled_from(PLAIN), late(0, 40), refused(*ERRORS), FAILED_AFTER)
READ = st.one_of(st.sampled_from([("works", 0), ("lost before", 0)]), refused(403, 429, 500, 503))
OTHERS = st.sampled_from(["", "", "", "", "shares", "takes", "resets", "labels", "deletes", "replaces"])
OURS: Final = {"namespace": "w", "name": "c1", "uid": "uc"}


class Promises(Unsteady, VolumeServer):
    """`said` tells whether the volume was ever promised to our claim, `by_us` how many of our requests took effect."""

    def __init__(self, patches: list[Answer], reads: list[Answer], others: list[str]) -> None:
        super().__init__({"PATCH": list(patches), "GET": list(reads)}, others)
        self.by_us = 0
        self.said = False

    def _change(self, segments: list[str], body: Any) -> web.Response:
        answer = super()._change(segments, body)
        self.by_us += answer.status == 200
        self.said |= answer.status == 200
        return answer

    def is_empty(self) -> bool:
        return not self.objects

    def others_act(self, act: str) -> None:
        if VOLUME not in self.objects:
            return
        match act:
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
    patches: list[Answer], reads: list[Answer], others: list[str]
) -> tuple[Promises, VolumesWritten | NotBound, list[VolumeOrClaim]]:
    server = Promises(patches, reads, others)
    told: list[VolumeOrClaim] = []
    volume = convert(PersistentVolume, server.put(VOLUME, "uv"))
    claim = convert(PersistentVolumeClaim, {"metadata": server.put(CLAIM, "uc")["metadata"] | {"namespace": "w"}})
    verdict = await asked(
        server,
        lambda writer: writer.bind_volumes(
            pod_info(), "n1", [(volume, claim)], [], lambda _, stored: told.append(stored)
        ),
    )
    return server, verdict, told


def test_what_is_said_of_a_volume_is_true_and_stays_true() -> None:
    lists = st.lists(PATCH, min_size=2, max_size=6), st.lists(READ, max_size=8), st.lists(OTHERS, max_size=12)
    tell(120, outcome, check, *lists)


def check(server: Promises, verdict: VolumesWritten | NotBound, told: list[VolumeOrClaim]) -> None:
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
