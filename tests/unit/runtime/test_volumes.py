"""The loop and pods whose volumes are bound before them."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest
from tests.unit.core.scheduling import node, pod
from tests.unit.kube.timers import settle
from tests.unit.runtime.driving import World, running

from ksp.core.changes import DeleteNode, DeletePod, PodVolumes, SetNode, SetObject, SetPod
from ksp.core.errors import InternalError
from ksp.kube.write.writes import Bound, NotBound, VolumesWritten
from ksp.model.decode import convert
from ksp.model.pod import Pod
from ksp.model.storage import PersistentVolume, PersistentVolumeClaim, StorageClass
from ksp.policy.profile import DEFAULT_BIND_TIMEOUT
from ksp.runtime.observer import Binding

CLASS = {"metadata": {"name": "late"}, "provisioner": "example.com/x", "volumeBindingMode": "WaitForFirstConsumer"}
SELECTED = "volume.kubernetes.io/selected-node"
COMPLETED = "pv.kubernetes.io/bind-completed"


def claim(name: str, version: str = "1", *, volume: str = "", **annotations: str) -> SetObject:
    """The watch shows a claim; bound, if there is a volume."""
    metadata: dict[str, Any] = {
        "name": name,
        "namespace": "default",
        "uid": f"uid-{name}",
        "resourceVersion": version,
        "annotations": {SELECTED: "n1", COMPLETED: "yes"} if volume else annotations,
    }
    spec: dict[str, Any] = {
        "storageClassName": "late",
        "volumeName": volume,
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}},
    }
    value = convert(PersistentVolumeClaim, {"metadata": metadata, "spec": spec})
    return SetObject("persistentVolumeClaims", "default", name, value)


def volume(name: str, version: str = "1") -> SetObject:
    """The watch shows a volume that nobody has."""
    metadata = {"name": name, "uid": f"uid-{name}", "resourceVersion": version}
    spec = {"storageClassName": "late", "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"]}
    found = {"metadata": metadata, "spec": spec, "status": {"phase": "Available"}}
    return SetObject("persistentVolumes", "", name, convert(PersistentVolume, found))


def user(name: str, cpu: str = "1") -> Pod:
    """A pod that mounts the claim of its name."""
    return pod(name, requests={"cpu": cpu}, volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": name}}])


def world_with(*names: str, limit: int = 100, nodes: tuple[str, ...] = ("n1",)) -> World:
    """Nodes, and for each name a pod and its claim, for which a volume has to be made."""
    world = World(limit=limit)
    for name in nodes:
        world.loop.deliver(SetNode(node(name)))
    world.loop.deliver(SetObject("storageClasses", "", "late", convert(StorageClass, CLASS)))
    for name in names:
        world.loop.deliver(claim(name))
        world.loop.deliver(SetPod(user(name)))
    return world


def show_bound(world: World, name: str) -> None:
    """The cluster has made a volume, and bound the claim to it."""
    world.loop.deliver(volume(f"of-{name}"))
    world.loop.deliver(claim(name, "2", volume=f"of-{name}"))


def wanted(volumes: PodVolumes) -> tuple[list[tuple[str, str]], list[str]]:
    pairs = [(volume.metadata.name, claim.metadata.name) for volume, claim in volumes.static]
    return pairs, [claim.metadata.name for claim in volumes.dynamic]


async def test_a_pods_volumes_are_bound_before_it() -> None:
    world = world_with("a")
    async with running(world):
        await world.writer.until(lambda w: bool(w.volumes))
        await settle()
        ((name, place, volumes),) = world.writer.volumes
        assert (name, place, wanted(volumes)) == ("a", "n1", ([], ["a"]))
        assert (world.writer.binds, world.recorder.events) == ([], [])
        show_bound(world, "a")
        await world.writer.until(lambda w: w.binds == [("a", "n1")])
        await settle()
    assert world.recorder.events == [("a", "Scheduled", "n1")]
    assert world.seen.faults == []


async def test_a_volume_that_is_there_is_promised_to_the_claim() -> None:
    world = world_with()
    world.loop.deliver(volume("v1"))
    world.loop.deliver(claim("a"))
    world.loop.deliver(SetPod(user("a")))
    async with running(world):
        await world.writer.until(lambda w: bool(w.volumes))
    assert wanted(world.writer.volumes[0][2]) == ([("v1", "a")], [])


async def test_a_watch_that_is_quicker_than_the_answer() -> None:
    world = world_with("a")
    world.writer.held = True
    async with running(world):
        await world.writer.until(lambda w: bool(w.writing))
        show_bound(world, "a")
        await settle()
        assert world.writer.binds == []
        world.writer.writing["a"].set_result(VolumesWritten())
        await world.writer.until(lambda w: w.binds == [("a", "n1")])


async def test_the_time_of_the_attempt_counts_the_waiting_for_volumes() -> None:
    world = world_with("a")
    async with running(world):
        await world.writer.until(lambda w: bool(w.volumes))
        await world.timers.advance(7)
        show_bound(world, "a")
        await world.writer.until(lambda w: bool(w.binds))
        await settle()
    (binding,) = world.seen.bindings
    assert (binding.attempt, binding.began, binding.decided, binding.volumes) == (1, 0, 7, None)


async def test_a_pod_that_waits_for_volumes_takes_no_turn_from_others() -> None:
    """Only while the API server is told of them."""
    world = world_with("a", "b", limit=1)
    world.writer.held = True
    async with running(world):
        await world.writer.until(lambda w: list(w.writing) == ["a"])
        await settle()
        assert world.seen.decisions == [("a", "n1")]
        world.writer.writing["a"].set_result(VolumesWritten())
        await world.writer.until(lambda w: list(w.writing) == ["b"])
        assert len(world.loop.effects.binds) == 1
        assert world.writer.binds == []


async def test_volumes_that_are_refused_give_the_place_back_and_are_tried_again() -> None:
    world = world_with("a")
    world.writer.written = NotBound('persistentvolumeclaim "a" has changed since it was chosen')
    note = (
        'error while running "VolumeBinding" prebind plugin for pod "a": '
        'persistentvolumeclaim "a" has changed since it was chosen'
    )
    async with running(world):
        await world.writer.until(lambda w: bool(w.conditions))
        assert world.writer.conditions == [("a", "SchedulerError", note)]
        assert world.recorder.events == [("a", "FailedScheduling", note)]
        assert world.seen.failures == [("a", 'persistentvolumeclaim "a" has changed since it was chosen')]
        assert world.scheduler.state.nodes["n1"].pod_count == 0
        world.writer.written = VolumesWritten()
        await world.timers.advance(1.1)
        await world.writer.until(lambda w: len(w.volumes) == 2)
        show_bound(world, "a")
        await world.writer.until(lambda w: bool(w.binds))


async def test_what_was_written_before_a_failure_is_not_written_again() -> None:
    """Though the watch has not shown it yet."""
    world = world_with("a")
    world.writer.held = True
    async with running(world):
        await world.writer.until(lambda w: bool(w.writing))
        ((chosen, place),) = [(volumes.dynamic[0], place) for _, place, volumes in world.writer.volumes]
        written = claim("a", "2", **{SELECTED: place}).value
        assert isinstance(written, PersistentVolumeClaim)
        world.writer.wrote(chosen, written)
        world.writer.writing["a"].set_result(NotBound("refused"))
        await world.writer.until(lambda w: bool(w.conditions))
        await world.timers.advance(1.1)
        await world.writer.until(lambda w: len(w.volumes) == 2)
        assert world.writer.volumes[1][2].dynamic == (written,)


async def test_volumes_that_are_not_bound_in_time_give_the_place_back() -> None:
    world = world_with("a")
    plugin = 'error while running "VolumeBinding" prebind plugin for pod "a"'
    note = f"{plugin}: binding volumes: timed out waiting for the condition"
    async with running(world):
        await world.writer.until(lambda w: bool(w.volumes))
        await settle()
        await world.timers.advance(DEFAULT_BIND_TIMEOUT - 1)
        assert world.recorder.events == []
        await world.timers.advance(1)
        await world.writer.until(lambda w: bool(w.conditions))
        assert world.recorder.events == [("a", "FailedScheduling", note)]
        assert world.writer.conditions == [("a", "SchedulerError", note)]
        await world.timers.advance(1.1)
        await world.writer.until(lambda w: len(w.volumes) == 2)
    assert world.writer.binds == []


async def test_a_provisioner_that_fails_has_the_pod_decided_anew() -> None:
    world = world_with("a")
    async with running(world):
        await world.writer.until(lambda w: bool(w.volumes))
        world.loop.deliver(claim("a", "2", **{SELECTED: "n1"}))
        await settle()
        assert world.recorder.events == []
        world.loop.deliver(claim("a", "3"))
        await world.writer.until(lambda w: bool(w.conditions))
        ((_, reason, note),) = world.recorder.events
        assert reason == "FailedScheduling"
        assert note.endswith('selectedNode annotation reset for PVC "a"')
        await world.timers.advance(1.1)
        await world.writer.until(lambda w: len(w.volumes) == 2)


async def test_volumes_wait_for_an_api_server_that_is_away(caplog: pytest.LogCaptureFixture) -> None:
    world = world_with("a")
    world.writer.written = NotBound("no connection", unreached=True)
    with caplog.at_level(logging.WARNING):
        async with running(world):
            await world.writer.until(lambda w: len(w.volumes) == 1)
            await world.timers.asleep()
            await world.timers.advance(0.9)
            await world.writer.until(lambda w: len(w.volumes) == 2)
            await world.timers.asleep()
            world.writer.written = VolumesWritten()
            await world.timers.advance(0.9)
            await world.writer.until(lambda w: len(w.volumes) == 3)
            await settle()
            assert world.scheduler.bindings.is_waiting("a")
    assert world.recorder.events == []
    assert "cannot bind: no connection" in caplog.text


async def test_a_pod_that_goes_while_its_volumes_are_written() -> None:
    """The outcome comes late, and is nobody's error."""
    world = world_with("a", "b")
    world.writer.held = True
    async with running(world):
        await world.writer.until(lambda w: len(w.writing) == 2)
        for name in ("a", "b"):
            world.loop.deliver(DeletePod(name))
        world.writer.writing["a"].set_result(VolumesWritten())
        world.writer.writing["b"].set_result(NotBound("the claim was deleted"))
        await settle()
        show_bound(world, "a")
        await settle()
    assert (world.writer.binds, world.recorder.events, world.writer.conditions) == ([], [], [])
    assert (len(world.loop.effects.binds), len(world.scheduler.bindings), world.seen.faults) == (0, 0, [])
    assert world.scheduler.state.nodes["n1"].pod_count == 0


async def test_a_pod_that_comes_back_while_its_volumes_are_written_waits_for_that() -> None:
    world = world_with("a")
    world.writer.held = True
    async with running(world):
        await world.writer.until(lambda w: bool(w.writing))
        world.loop.deliver(DeletePod("a"))
        world.loop.deliver(SetPod(user("a")))
        await settle()
        assert len(world.writer.volumes) == 1
        world.writer.writing["a"].set_result(NotBound("conflict"))
        await world.timers.advance(3)
        await world.writer.until(lambda w: len(w.volumes) == 2)
    assert world.seen.faults == []


async def test_a_pod_that_goes_while_it_waits_for_volumes_gives_its_place_back() -> None:
    world = world_with("a")
    async with running(world):
        await world.writer.until(lambda w: bool(w.volumes))
        await settle()
        world.loop.deliver(SetPod(pod("b", requests={"cpu": "4"})))
        await world.writer.until(lambda w: [name for name, _, _ in w.conditions] == ["b"])
        world.loop.deliver(DeletePod("a"))
        await world.timers.advance(1.1)
        await world.writer.until(lambda w: w.binds == [("b", "n1")])
        show_bound(world, "a")
        await settle()
    assert world.writer.binds == [("b", "n1")]


async def test_a_pod_that_goes_as_its_volumes_are_bound_is_not_bound() -> None:
    """The core has asked for the binding, and the loop has not had its turn yet."""
    world = world_with("a")
    async with running(world):
        await world.writer.until(lambda w: bool(w.volumes))
        await settle()
        show_bound(world, "a")
        world.loop.deliver(DeletePod("a"))
        await settle()
    assert (world.writer.binds, world.recorder.events, world.seen.faults) == ([], [], [])


async def test_a_node_that_goes_while_volumes_are_made_for_it() -> None:
    world = world_with("a")
    async with running(world):
        await world.writer.until(lambda w: bool(w.volumes))
        await settle()
        world.loop.deliver(DeleteNode("n1"))
        await world.writer.until(lambda w: bool(w.conditions))
        ((_, _, note),) = world.recorder.events
        assert note.endswith('node "n1" not found')
        assert world.seen.failures == [("a", note)]


async def test_a_fault_with_another_pod_leaves_those_that_wait_for_volumes_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = world_with("a")
    async with running(world):
        await world.writer.until(lambda w: bool(w.volumes))
        await settle()
        monkeypatch.setattr(world.scheduler.cycles["default-scheduler"], "decide", _broken)
        world.loop.deliver(SetPod(pod("b")))
        await settle()
        assert world.seen.faults == [("deciding", "b")]
        show_bound(world, "a")
        await world.writer.until(lambda w: w.binds == [("a", "n1")])


async def test_a_fault_before_the_volumes_are_written_takes_the_pod_back(monkeypatch: pytest.MonkeyPatch) -> None:
    world = world_with("a")
    with monkeypatch.context() as patch:
        patch.setattr(world.seen, "decided", _broken)
        async with running(world):
            await world.timers.asleep()
            await settle()
            assert world.seen.faults == [("deciding", "a")]
            patch.undo()
            await world.timers.advance(1.1)
            await world.writer.until(lambda w: bool(w.volumes))


def _broken(*_: object) -> None:
    raise InternalError("a bug")


async def test_a_fault_with_one_of_several_pods_whose_volumes_are_bound_leaves_the_others_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = world_with("a", "b")
    start = world.loop.effects.binds.start

    def broken_for_a(binding: Binding) -> None:
        if binding.pod.name == "a":
            raise InternalError("a bug")
        start(binding)

    async with running(world):
        await world.writer.until(lambda w: len(w.volumes) == 2)
        await settle()
        monkeypatch.setattr(world.loop.effects.binds, "start", broken_for_a)
        show_bound(world, "a")
        show_bound(world, "b")
        await world.writer.until(lambda w: w.binds == [("b", "n1")])
    assert world.seen.faults == [("deciding", "a")]


async def test_a_fault_while_volumes_are_written_counts_as_not_bound() -> None:
    world = world_with("a")
    world.writer.written = ValueError("a bug")
    async with running(world):
        await world.writer.until(lambda w: bool(w.conditions))
        assert world.seen.faults == [("binding", "a")]
        assert world.scheduler.state.nodes["n1"].pod_count == 0


async def test_stopping_lets_volumes_be_written_and_binds_nobody_else(caplog: pytest.LogCaptureFixture) -> None:
    world = world_with("a", "b", "c")
    world.writer.held = True
    loop = asyncio.create_task(world.loop.run())
    await world.writer.until(lambda w: len(w.writing) == 3)
    world.writer.writing["c"].set_result(VolumesWritten())
    await settle()
    world.loop.stop()
    await loop
    draining = asyncio.create_task(world.loop.drain(20))
    await settle()
    world.writer.writing["a"].set_result(VolumesWritten())
    await settle()
    assert not draining.done()
    await world.timers.advance(20)
    assert await draining == 1
    show_bound(world, "a")
    assert world.writer.binds == []
    assert "pod=default/b" in caplog.text


async def test_after_the_volumes_a_binding_can_fail_like_any_other() -> None:
    world = world_with("a")
    world.writer.outcome = NotBound("no")
    async with running(world):
        await world.writer.until(lambda w: bool(w.volumes))
        show_bound(world, "a")
        await world.writer.until(lambda w: bool(w.conditions))
        assert world.recorder.events == [("a", "FailedScheduling", "Binding rejected: no")]
        world.writer.outcome = Bound()
        await world.timers.advance(1.1)
        await world.writer.until(lambda w: len(w.binds) == 2)
    assert len(world.writer.volumes) == 1  # they are bound already
