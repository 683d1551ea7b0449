"""The loop against an API server and a cluster that bind volumes late, refuse, fail and forget, as dice decide."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from random import Random
from typing import Any

import pytest
from msgspec.structs import replace
from tests.unit.core.scheduling import default_profile, node, pod
from tests.unit.kube.timers import VirtualTimers
from tests.unit.runtime.driving import Recorder, Seen, Stopwatch

from ksp.core.changes import Change, DeletePod, SetNode, SetObject, SetPod
from ksp.core.scheduler import Scheduler
from ksp.kube.write.writes import Bound, Evicted, Failed, Gone, NotBound, Patched, VolumesWritten, Wrote
from ksp.model.claims import BIND_COMPLETED, SELECTED_NODE, is_bound
from ksp.model.decode import convert
from ksp.model.info import PodInfo
from ksp.model.pod import Pod
from ksp.model.reach import is_reached
from ksp.model.storage import PersistentVolume, PersistentVolumeClaim, StorageClass
from ksp.model.volumes import promised, reference_to
from ksp.runtime.chance import RandomDice
from ksp.runtime.loop import SchedulingLoop

NODES, PODS, CLAIMS, VOLUMES = 4, 16, 12, 5
MOST_TURNS = 4000
TOGETHER = (("c0", "c5"), ("c1",), ("c2", "c6"), ("c3",), ("c4",), ("c7", "c8"), ("c9",), ("c10",), ("c11",))
"""Claims that pods use: others that share some of them, but not all, could leave a pod without a node for good."""
HOSTNAME = "kubernetes.io/hostname"


class Weather:
    """The truth about pods, claims and volumes, and the writer of the loop. What happens is told in order, but late."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.timers = VirtualTimers()
        self.pods: dict[str, Pod] = {}
        self.place: dict[str, str] = {}
        self.claims: dict[str, PersistentVolumeClaim] = {}
        self.volumes: dict[str, PersistentVolume] = {}
        self.news: list[Change] = []
        self.tasks: list[asyncio.Task[None]] = []
        self.version = 0
        self.recorder = Recorder()
        self.loop = SchedulingLoop(
            Scheduler([default_profile()], RandomDice(seed)), self, self.recorder, Seen(),
            timers=self.timers, stopwatch=Stopwatch(0.002), limit=self.random.choice([1, 3, 100]),
        )  # fmt: skip

    # ---- what there is

    def create(self) -> None:
        """Volumes on certain nodes, claims that can have one of them or one that is made, and pods that use claims."""
        for i in range(NODES):
            self.loop.deliver(SetNode(node(f"n{i}", cpu="8", labels={HOSTNAME: f"n{i}"})))
        for name, provisioner in (("made", "example.com/x"), ("local", "kubernetes.io/no-provisioner")):
            raw = {"metadata": {"name": name}, "provisioner": provisioner, "volumeBindingMode": "WaitForFirstConsumer"}
            self.loop.deliver(SetObject("storageClasses", "", name, convert(StorageClass, raw)))
        for i in range(VOLUMES):
            self.put_volume(volume(f"v{i}", "local", f"n{i % NODES}"))
        for i in range(CLAIMS):
            self.put_claim(claim(f"c{i}", "local" if i < VOLUMES else "made"))
        for i in range(PODS):
            mounts = [
                {"name": name, "persistentVolumeClaim": {"claimName": name}} for name in TOGETHER[i % len(TOGETHER)]
            ]
            self.pods[f"p{i}"] = pod(f"p{i}", volumes=mounts)
            self.news.append(SetPod(self.pods[f"p{i}"]))

    def put_claim(self, found: PersistentVolumeClaim) -> None:
        self.version += 1
        meta = replace(found.metadata, resource_version=str(self.version))
        self.claims[meta.name] = replace(found, metadata=meta)
        self.news.append(SetObject("persistentVolumeClaims", "default", meta.name, self.claims[meta.name]))

    def put_volume(self, found: PersistentVolume) -> None:
        self.version += 1
        meta = replace(found.metadata, resource_version=str(self.version))
        self.volumes[meta.name] = replace(found, metadata=meta)
        self.news.append(SetObject("persistentVolumes", "", meta.name, self.volumes[meta.name]))

    # ---- what happens

    async def watch(self) -> None:
        """Tells the loop, in order."""
        while True:
            await self.timers.sleep(self.random.choice([0.01, 0.1, 2]))
            for _ in range(min(len(self.news), self.random.randrange(1, 6))):
                self.loop.deliver(self.news.pop(0))

    async def control(self) -> None:
        """The volume controller, a provisioner that fails at times, and others who write to claims."""
        while True:
            await self.timers.sleep(self.random.choice([0.1, 1, 5]))
            for found in list(self.claims.values()):
                if not is_bound(found) and self.random.random() < 0.5:
                    self.care_for(found)
            found = self.random.choice(list(self.claims.values()))
            if self.random.random() < 0.1:
                labels = {"seen": str(self.version)}
                self.put_claim(replace(found, metadata=replace(found.metadata, labels=labels)))

    def care_for(self, found: PersistentVolumeClaim) -> None:
        meta, promise, mine = found.metadata, reference_to(found), self.promised_to(found)
        chosen = meta.annotations.get(SELECTED_NODE)
        if not mine and chosen is not None:
            if self.random.random() < 0.3:
                self.put_claim(replace(found, metadata=replace(meta, annotations={})))
                return
            self.put_volume(promised(volume(f"of-{meta.name}", "made", chosen), promise))
            mine = [self.volumes[f"of-{meta.name}"]]
        assert len(mine) <= 1, "a claim is promised one volume"
        if mine:
            self.put_volume(replace(mine[0], status=replace(mine[0].status, phase="Bound")))
            bound = replace(meta, annotations={**meta.annotations, BIND_COMPLETED: "yes"})
            spec = replace(found.spec, volume_name=mine[0].metadata.name)
            self.put_claim(replace(found, metadata=bound, spec=spec))

    def promised_to(self, found: PersistentVolumeClaim) -> list[PersistentVolume]:
        uid = found.metadata.uid
        return [each for each in self.volumes.values() if (to := each.spec.claim_ref) and to.uid == uid]

    def delete_a_pod(self) -> None:
        name = self.random.choice(list(self.pods))
        del self.pods[name]
        self.place.pop(name, None)
        self.news.append(DeletePod(name))

    # ---- the writer

    async def bind_volumes(
        self, pod: PodInfo, node: str, static: Sequence[tuple[PersistentVolume, PersistentVolumeClaim]],
        dynamic: Sequence[PersistentVolumeClaim], wrote: Wrote,
    ) -> VolumesWritten | NotBound:  # fmt: skip
        """What has changed since it was chosen is refused, unless it says what is wanted."""
        for chosen, owner in static:
            if (mishap := await self.mishap()) is not None:
                return mishap
            now, wanted = self.volumes[chosen.metadata.name], promised(chosen, reference_to(owner))
            assert wanted.spec.claim_ref is not None
            if now.metadata.resource_version == chosen.metadata.resource_version:
                self.put_volume(wanted)
            elif now.spec.claim_ref is None or now.spec.claim_ref.uid != wanted.spec.claim_ref.uid:
                return NotBound("changed")
            wrote(chosen, self.volumes[chosen.metadata.name])
        for chosen_claim in dynamic:
            if (mishap := await self.mishap()) is not None:
                return mishap
            found, meta = self.claims[chosen_claim.metadata.name], chosen_claim.metadata
            annotations = {**meta.annotations, SELECTED_NODE: node}
            if found.metadata.resource_version == meta.resource_version:
                self.put_claim(replace(found, metadata=replace(meta, annotations=annotations)))
            elif found.metadata.annotations.get(SELECTED_NODE) != node:
                return NotBound("changed")
            wrote(chosen_claim, self.claims[meta.name])
        await self.timers.sleep(self.random.choice([0, 0.2, 3]))
        return VolumesWritten()

    async def mishap(self) -> NotBound | None:
        await self.timers.sleep(self.random.choice([0, 0, 0.1, 3]))
        what = self.random.random()
        if what < 0.1:
            raise ZeroDivisionError("a bug of the writer")
        return NotBound("away", unreached=True) if what < 0.2 else NotBound("refused") if what < 0.3 else None

    async def bind(self, pod: PodInfo, node: str) -> Bound | NotBound:
        """No pod is bound to a node before its volumes, nor where they cannot be used."""
        if (mishap := await self.mishap()) is not None:
            return mishap
        if pod.name not in self.pods:
            return NotBound("gone", gone=True)
        assert pod.name not in self.place, "bound twice"
        for name in pod.claim_names:
            assert is_bound(self.claims[name]), "bound before its volumes"
            assert is_reached(self.volumes[self.claims[name].spec.volume_name], {HOSTNAME: node}), "out of reach"
        self.place[pod.name] = node
        found = self.pods[pod.name]
        self.pods[pod.name] = replace(found, spec=replace(found.spec, node_name=node))
        self.news.append(SetPod(self.pods[pod.name]))
        return Bound()

    async def set_condition(
        self, pod: PodInfo, reason: str, message: str, nominated_node: str | None = None
    ) -> Patched:
        return Patched.SENT

    async def clear_nomination(self, pod: PodInfo) -> Patched:
        return Patched.SENT

    async def evict(self, victim: PodInfo, preemptor: PodInfo) -> Evicted | Gone | Failed:
        raise AssertionError("all pods are of one priority")


def claim(name: str, of: str) -> PersistentVolumeClaim:
    spec = {"storageClassName": of, "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    metadata = {"name": name, "namespace": "default", "uid": f"uid-{name}"}
    return convert(PersistentVolumeClaim, {"metadata": metadata, "spec": spec})


def volume(name: str, of: str, on: str) -> PersistentVolume:
    term = {"matchExpressions": [{"key": HOSTNAME, "operator": "In", "values": [on]}]}
    spec: dict[str, Any] = {"storageClassName": of, "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"]}
    spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": [term]}}
    found = {"metadata": {"name": name, "uid": f"uid-{name}"}, "spec": spec, "status": {"phase": "Available"}}
    return convert(PersistentVolume, found)


@pytest.mark.parametrize("seed", range(12))
async def test_pods_are_bound_after_their_volumes_and_where_these_can_be_used(seed: int) -> None:
    weather = Weather(seed)
    weather.create()
    async with asyncio.timeout(20):
        running = asyncio.create_task(weather.loop.run())
        others = [asyncio.create_task(each) for each in (weather.watch(), weather.control())]
        for turn in range(MOST_TURNS):
            await weather.timers.next()
            if turn in (40, 60, 80):
                weather.delete_a_pod()
            if turn > 80 and weather.place.keys() == weather.pods.keys() and not weather.loop.effects.binds:
                break
        for each in others:
            each.cancel()
        for change in weather.news:
            weather.loop.deliver(change)
        weather.loop.stop()
        await weather.timers.advance(1)
        await asyncio.gather(running, *others, return_exceptions=True)
    scheduler = weather.loop.scheduler
    assert weather.place.keys() == weather.pods.keys()
    assert (len(scheduler.queue), len(scheduler.bindings), len(weather.loop.effects.binds)) == (0, 0, 0)
    assert scheduler.cache_size() == {"nodes": NODES, "pods": len(weather.pods), "assumed_pods": 0}
    volumes, claims = (scheduler.state.objects[kind] for kind in ("persistentVolumes", "persistentVolumeClaims"))
    assert {name: (each.spec, each.status) for name, each in volumes.items()} == {
        name: (each.spec, each.status) for name, each in weather.volumes.items()
    }
    assert {name: (each.spec, each.metadata.annotations) for name, each in claims["default"].items()} == {
        name: (each.spec, each.metadata.annotations) for name, each in weather.claims.items()
    }
