"""What a pod's claims get is written once, or not, over real HTTP, whatever the server and the network do."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from typing import Any

import pytest
from aiohttp import web
from tests.unit.kube.driving import driven
from tests.unit.kube.pod_server import (
    NESTED,
    Apply,
    Fault,
    answers,
    answers_by_half,
    closes_after,
    closes_before,
    fails,
    pod_info,
    says,
    when,
)
from tests.unit.kube.volume_server import CLAIM, VOLUME, VolumeServer
from tests.unit.kube.write.bench import WriteBench, at_work, unheard

from ksp.kube.write.patience import Patience
from ksp.kube.write.settling import DEAD_AFTER, MOST_SENT
from ksp.kube.write.writes import NotBound, VolumeOrClaim, VolumesWritten
from ksp.model.decode import convert
from ksp.model.storage import PersistentVolume, PersistentVolumeClaim

OTHER = "/api/v1/persistentvolumes/v2"
CHANGED = NotBound('persistentvolume "v1" has changed since it was chosen')


class Bench(WriteBench[VolumeServer]):
    """A server with a volume and a claim, which a watch has shown as they are at the start."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.written: list[tuple[str, str, str]] = []
        self.volume = self.seen_volume(self.server.put(VOLUME, "uv"))
        self.claim = self.seen_claim(self.server.put(CLAIM, "uc"))

    def wrote(self, chosen: VolumeOrClaim, stored: VolumeOrClaim) -> None:
        """Its name, and its versions before and after."""
        before, after = chosen.metadata, stored.metadata
        self.written.append((before.name, before.resource_version, after.resource_version))

    async def bind(
        self, node: str, static: Sequence[tuple[PersistentVolume, PersistentVolumeClaim]],
        dynamic: Sequence[PersistentVolumeClaim] = (),
    ) -> VolumesWritten | NotBound:  # fmt: skip
        return await self.writer.bind_volumes(pod_info(), node, static, dynamic, self.wrote)

    def seen_volume(self, found: dict[str, Any]) -> PersistentVolume:
        return convert(PersistentVolume, found)

    def seen_claim(self, found: dict[str, Any]) -> PersistentVolumeClaim:
        meta = found["metadata"] | {"namespace": "w"}
        return convert(PersistentVolumeClaim, found | {"metadata": meta})

    async def promise(self) -> VolumesWritten | NotBound:
        """The volume to the claim."""
        return await driven(self.timers, self.bind("n1", [(self.volume, self.claim)]))

    async def select(self, node: str = "n1") -> VolumesWritten | NotBound:
        """A volume is to be made for the claim on the node."""
        return await driven(self.timers, self.bind(node, [], [self.claim]))

    @property
    def promised(self) -> str:
        """The claim that the volume names."""
        found = self.server.objects[VOLUME]["spec"].get("claimRef") or {}
        return str(found.get("name", ""))

    @property
    def selected(self) -> str:
        found = self.server.objects[CLAIM]["metadata"].get("annotations") or {}
        return str(found.get("volume.kubernetes.io/selected-node", ""))


@pytest.fixture
async def bench() -> AsyncGenerator[Bench]:
    async with at_work(Bench, VolumeServer(), Patience(patch=0.3)) as bench:
        yield bench


async def test_a_volume_is_promised_to_a_claim(bench: Bench) -> None:
    assert await bench.promise() == VolumesWritten()
    (seen,) = bench.server.seen
    assert (seen.method, seen.path, seen.content_type) == ("PATCH", VOLUME, "application/merge-patch+json")
    assert seen.body == {
        "metadata": {
            "uid": "uv",
            "resourceVersion": bench.volume.metadata.resource_version,
            "annotations": {"pv.kubernetes.io/bound-by-controller": "yes"},
        },
        "spec": {
            "claimRef": {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "namespace": "w",
                "name": "c1",
                "uid": "uc",
                "resourceVersion": bench.claim.metadata.resource_version,
            }
        },
    }
    assert bench.told.unsettled_ == []
    version = bench.server.objects[VOLUME]["metadata"]["resourceVersion"]
    assert bench.written == [("v1", bench.volume.metadata.resource_version, version)]


async def test_a_volume_is_to_be_made_for_the_node(bench: Bench) -> None:
    assert await bench.select("n7") == VolumesWritten()
    (seen,) = bench.server.seen
    assert (seen.method, seen.path, seen.content_type) == ("PATCH", CLAIM, "application/merge-patch+json")
    version = bench.claim.metadata.resource_version
    annotations = {"volume.kubernetes.io/selected-node": "n7"}
    assert seen.body == {"metadata": {"uid": "uc", "resourceVersion": version, "annotations": annotations}}


async def test_volumes_come_before_claims_and_the_first_that_fails_ends_it(bench: Bench) -> None:
    second = bench.seen_volume(bench.server.put(OTHER, "uo"))
    third = bench.seen_claim(bench.server.put(f"{CLAIM}x", "ux"))
    pairs = [(bench.volume, bench.claim), (second, third)]
    write = bench.bind("n1", pairs, [bench.claim])
    bench.server.fault("change", lambda _, apply: _done(apply), answers(403, "Forbidden", "no"))
    assert await driven(bench.timers, write) == NotBound('persistentvolume "v2": 403 Forbidden: no')
    assert [seen.path for seen in bench.server.seen] == [VOLUME, OTHER]
    assert [name for name, _, _ in bench.written] == ["v1"]
    bench.server.seen.clear()
    bench.volume = bench.seen_volume(bench.server.objects[VOLUME])
    again = bench.bind("n1", [(bench.volume, bench.claim), (second, third)], [bench.claim])
    assert await driven(bench.timers, again) == VolumesWritten()
    assert [seen.path for seen in bench.server.seen] == [OTHER, CLAIM]


async def _done(apply: Apply) -> web.StreamResponse:
    return apply()


async def test_what_says_so_already_is_not_written(bench: Bench) -> None:
    reference = {"namespace": "w", "name": "c1", "uid": "uc"}
    bench.volume = bench.seen_volume(bench.server.put(VOLUME, "uv", claimRef=reference))
    bench.server.alter(CLAIM, {"metadata": {"annotations": {"volume.kubernetes.io/selected-node": "n1"}}})
    bench.claim = bench.seen_claim(bench.server.objects[CLAIM])
    assert await bench.promise() == VolumesWritten()
    assert await bench.select("n1") == VolumesWritten()
    assert bench.server.seen == []
    assert await bench.select("n2") == VolumesWritten()
    assert bench.selected == "n2"


async def test_a_volume_that_its_owner_promised_is_not_marked_as_the_controllers(bench: Bench) -> None:
    bench.volume = bench.seen_volume(bench.server.put(VOLUME, "uv", claimRef={"namespace": "w", "name": "c1"}))
    assert await bench.promise() == VolumesWritten()
    assert "annotations" not in bench.server.seen[0].body["metadata"]
    assert bench.server.objects[VOLUME]["spec"]["claimRef"]["uid"] == "uc"


@pytest.mark.parametrize(
    "fault",
    [
        closes_after,
        answers_by_half,
        fails(500),
        fails(503),
        fails(504),
        says("<html>", 200, done=True),
        says("{}", 200, done=True),
        says('{"metadata": {}, "spec": {}}', 200, done=True),
    ],
)
async def test_a_lost_answer_is_settled_by_reading_the_object(bench: Bench, fault: Fault) -> None:
    bench.server.fault("change", fault, fault)
    assert await bench.promise() == VolumesWritten()
    assert await bench.select() == VolumesWritten()
    assert [seen.method for seen in bench.server.seen] == ["PATCH", "GET"] * 2
    assert (bench.promised, bench.selected) == ("c1", "n1")
    assert len(bench.told.unsettled_) == 2
    versions = [bench.server.objects[path]["metadata"]["resourceVersion"] for path in (VOLUME, CLAIM)]
    assert [(name, after) for name, _, after in bench.written] == [("v1", versions[0]), ("c1", versions[1])]


@pytest.mark.parametrize("fault", [closes_before, answers(500), answers(502), answers(404), says("{}", 200), NESTED])
async def test_a_request_that_was_not_carried_out_is_sent_again_as_it_was(bench: Bench, fault: Fault) -> None:
    bench.server.fault("change", fault)
    assert await bench.promise() == VolumesWritten()
    first, again = bench.server.sent("change")
    assert first == again
    assert bench.promised == "c1"


async def test_a_request_that_is_late_and_its_repetition_take_effect_once(bench: Bench) -> None:
    """The client gives up, the object is read as it was, and then both requests come through."""
    release, both = asyncio.Event(), asyncio.Event()

    async def after_the_late_one(request: web.Request, apply: Apply) -> web.StreamResponse:
        release.set()
        await both.wait()
        return apply()

    async def late(request: web.Request, apply: Apply) -> web.StreamResponse:
        await release.wait()
        response = apply()
        both.set()
        return response

    bench.server.fault("change", late, after_the_late_one)
    async with asyncio.timeout(10):
        assert await bench.promise() == VolumesWritten()
    assert [seen.method for seen in bench.server.seen] == ["PATCH", "GET", "PATCH", "GET"]
    assert bench.promised == "c1"


async def test_a_conflict_with_a_pod_that_has_the_same_claim_is_none(bench: Bench) -> None:
    """It has written just this, and our watch does not show it yet."""
    assert await bench.promise() == VolumesWritten()
    assert await bench.select() == VolumesWritten()
    assert await bench.promise() == VolumesWritten()
    assert await bench.select() == VolumesWritten()
    assert [seen.method for seen in bench.server.seen[2:]] == ["PATCH", "GET"] * 2


async def test_a_volume_that_another_claim_got_meanwhile(bench: Bench) -> None:
    bench.server.alter(VOLUME, {"spec": {"claimRef": {"namespace": "w", "name": "c9", "uid": "u9"}}})
    assert await bench.promise() == CHANGED
    assert bench.promised == "c9"


async def test_a_volume_that_was_changed_meanwhile_is_decided_about_anew(bench: Bench) -> None:
    bench.server.alter(VOLUME, {"metadata": {"labels": {"a": "b"}}})
    assert await bench.promise() == CHANGED
    bench.server.alter(CLAIM, {"metadata": {"annotations": {"volume.kubernetes.io/selected-node": "n9"}}})
    assert await bench.select() == NotBound('persistentvolumeclaim "c1" has changed since it was chosen')
    assert (bench.promised, bench.selected) == ("", "n9")


async def test_after_a_lost_request_a_change_by_another_proves_that_it_is_void(bench: Bench) -> None:
    async def changed(request: web.Request, apply: Apply) -> web.StreamResponse:
        bench.server.alter(VOLUME, {"metadata": {"labels": {"a": "b"}}})
        return await closes_before(request, apply)

    bench.server.fault("change", changed)
    assert await bench.promise() == CHANGED
    assert bench.timers.now() == 0  # it need not be waited for


async def test_volumes_and_claims_that_are_gone(bench: Bench) -> None:
    bench.server.objects.clear()
    assert await bench.promise() == NotBound('persistentvolume "v1": "v1" not found')
    assert await bench.select() == NotBound('persistentvolumeclaim "c1": "c1" not found')
    bench.server.fault("change", closes_before)
    assert await bench.select() == NotBound('persistentvolumeclaim "c1" was deleted')


async def test_a_claim_of_the_same_name_is_not_taken_for_ours(bench: Bench) -> None:
    bench.server.put(CLAIM, "another")
    assert await bench.select() == NotBound('persistentvolumeclaim "c1" was deleted, and another has its name')
    assert bench.selected == ""


async def test_without_a_version_the_uid_still_tells_objects_apart(bench: Bench) -> None:
    bench.server.put(CLAIM, "another")
    meta = {"name": "c1", "namespace": "w", "uid": "uc"}
    bench.claim = convert(PersistentVolumeClaim, {"metadata": meta})
    verdict = await bench.select()
    assert verdict == NotBound('persistentvolumeclaim "c1": 422 Invalid: metadata.uid: field is immutable')
    assert bench.selected == ""


async def test_without_the_right_the_message_names_the_rule(bench: Bench) -> None:
    denial = 'User "x" cannot patch resource "persistentvolumes" in API group "" at the cluster scope'
    bench.server.fault("change", answers(403, "Forbidden", denial))
    rule = 'apiGroups: [""], resources: ["persistentvolumes"], verbs: ["patch"]'
    assert await bench.promise() == NotBound(
        f'persistentvolume "v1": 403 Forbidden: {denial}; add to the ClusterRole: {rule}'
    )


@pytest.mark.parametrize("code", [400, 422])
async def test_what_the_server_calls_wrong_is_not_repeated(bench: Bench, code: int) -> None:
    bench.server.fault("change", answers(code, "Invalid", "spec.claimRef: Required value"))
    assert await bench.promise() == NotBound(f'persistentvolume "v1": {code} Invalid: spec.claimRef: Required value')
    assert len(bench.server.seen) == 1


async def test_a_conflict_that_nothing_explains_is_the_servers_last_word(bench: Bench) -> None:
    bench.server.fault("change", answers(409, "Conflict", "a webhook says no"))
    assert await bench.promise() == NotBound('persistentvolume "v1": a webhook says no')
    assert [seen.method for seen in bench.server.seen] == ["PATCH", "GET"]


async def test_nobody_listens() -> None:
    """Nothing was processed, so nothing has to be settled."""
    async with unheard(Bench, VolumeServer()) as bench:
        verdict = await bench.select()
    assert isinstance(verdict, NotBound)
    assert verdict.unreached
    assert not verdict.gone


async def test_while_the_server_is_away_the_read_is_repeated_for_as_long_as_it_takes(bench: Bench) -> None:
    away: list[Fault] = [answers(500), closes_before, says("<html>", 200), NESTED, answers(404), answers(403)] * 10
    bench.server.fault("change", closes_after)
    bench.server.fault("look", *away)
    assert await bench.promise() == VolumesWritten()
    assert len(bench.server.sent("look")) == len(away) + 1
    assert len(bench.server.sent("change")) == 1


async def test_a_server_that_never_carries_it_out_is_given_up_when_its_requests_are_dead(bench: Bench) -> None:
    bench.server.fault("change", *[answers(500, "InternalError", "failed calling webhook")] * 20)
    verdict = await bench.promise()
    assert isinstance(verdict, NotBound)
    assert "failed calling webhook" in verdict.message
    assert len(bench.server.sent("change")) == MOST_SENT
    assert bench.timers.now() >= DEAD_AFTER


async def test_waiting_for_the_server_can_be_cancelled(bench: Bench) -> None:
    arrived = asyncio.Event()
    bench.server.fault("change", closes_after)
    bench.server.fault("look", when(asyncio.Event(), arrived))
    task = asyncio.create_task(bench.bind("n1", [(bench.volume, bench.claim)]))
    async with asyncio.timeout(10):
        await arrived.wait()
        task.cancel()
        await asyncio.wait([task])
    assert task.cancelled()
