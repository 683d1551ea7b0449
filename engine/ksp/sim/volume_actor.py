"""Plays, over the API, what a cluster does for volumes: their controller, a provisioner, what makes and ends claims.

- A volume that nobody has is Available. One that names a claim is bound to it: both sides name each other, then the
  claim says that this is complete, and both say so in their phases.
- A claim whose class does not wait for a pod gets the smallest volume that fits, else one that its class makes. Of a
  class that waits, a volume is made as soon as the claim has a selected node, and that node alone reaches it.
- A pod's generic ephemeral volumes get claims of their own, which go with the pod.
- A claim that is deleted goes when no pod uses it. Its volume is Released; if it was made, and its class says so, it
  goes.

It acts on what it sees: volumes and classes that match a label selector, claims and pods of a namespace. A claim of a
class that it does not see is not its business, unless a volume names the claim. Whatever it writes says the same
however often it is written, and by whomever: a cluster's own controllers do not get in its way.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

from ksp.model.claims import (
    BIND_COMPLETED,
    BOUND_BY_CONTROLLER,
    CLASS,
    NO_PROVISIONER,
    SELECTED_NODE,
    WAITS_FOR_POD,
)
from ksp.model.decode import convert
from ksp.model.storage import PersistentVolume, PersistentVolumeClaim
from ksp.model.volumes import matching
from ksp.sim.following import Following, Json, Key, key_of

PROVISIONED_BY: Final = "pv.kubernetes.io/provisioned-by"
CLAIM_IN_USE: Final = "kubernetes.io/pvc-protection"
VOLUME_IN_USE: Final = "kubernetes.io/pv-protection"


class VolumeActor:
    """`within` is the part of a path that names the namespace, empty for all; `selector` is of labels. `pods` are those
    that are there, kept by somebody else, who tells of them by `pod_changed` and `pod_gone`."""

    def __init__(self, api: Following, within: str, selector: str, pods: dict[Key, Json]) -> None:
        self._api = api
        self._within = within
        self._selector = selector
        self._pods = pods
        self._volumes: dict[Key, Json] = {}
        self._claims: dict[Key, Json] = {}
        self._classes: dict[Key, Json] = {}
        self._gone: set[str] = set()

    async def run(self) -> None:
        """Until cancelled."""
        claims, classes = f"/api/v1{self._within}/persistentvolumeclaims", "/apis/storage.k8s.io/v1/storageclasses"
        follow = self._api.follow
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(follow(classes, self._selector, self._classes, self._on_class))
            tasks.create_task(
                follow("/api/v1/persistentvolumes", self._selector, self._volumes, self._on_volume, self._again)
            )
            tasks.create_task(follow(claims, "", self._claims, self._on_claim, self._claim_gone))

    # ---- what is seen

    async def pod_changed(self, pod: Json) -> None:
        """The claims of its ephemeral volumes."""
        if pod["metadata"].get("deletionTimestamp"):
            return
        for volume in pod["spec"].get("volumes") or ():
            if volume.get("ephemeral"):
                await self._make_claim(pod, volume)

    async def pod_gone(self, pod: Json) -> None:
        """Claims that were made for it go, and those that were kept for it."""
        if any(volume.get("ephemeral") for volume in pod["spec"].get("volumes") or ()):
            self._gone.add(pod["metadata"]["uid"])
        for key in _claims_of(pod):
            if key in self._claims:
                await self._on_claim(self._claims[key])

    async def _on_class(self, _: Json) -> None:
        await self._again()

    async def _again(self, _: Json | None = None) -> None:
        """All claims that have no volume."""
        for claim in list(self._claims.values()):
            if not claim["spec"].get("volumeName"):
                await self._on_claim(claim)

    async def _on_volume(self, volume: Json) -> None:
        to = volume["spec"].get("claimRef")
        if volume["metadata"].get("deletionTimestamp"):
            if _phase(volume) != "Bound":
                await self._unprotect(_path_of_volume(volume), volume, VOLUME_IN_USE)
        elif to is not None and (claim := self._claim_of(volume)) is not None:
            await self._on_claim(claim)
        elif to is None or not to.get("uid"):
            await self._set_phase(volume, "Available")
            await self._again()

    def _claim_of(self, volume: Json) -> Json | None:
        to = volume["spec"]["claimRef"]
        claim = self._claims.get((to.get("namespace", ""), to["name"]))
        return claim if claim is not None and _names(volume, claim) else None

    async def _on_claim(self, claim: Json) -> None:
        meta, volume_name = claim["metadata"], claim["spec"].get("volumeName")
        if meta.get("deletionTimestamp"):
            if not self._is_used(claim):
                await self._unprotect(_path_of_claim(claim), claim, CLAIM_IN_USE)
        elif self._is_orphan(claim):
            await self._api.delete(_path_of_claim(claim), meta["uid"])
        elif volume_name:
            volume = self._volumes.get(("", volume_name))
            if volume is not None and (volume["spec"].get("claimRef") is None or _names(volume, claim)):
                await self._bind(claim, volume)
        else:
            await self._find_volume(claim)

    async def _claim_gone(self, claim: Json) -> None:
        for volume in list(self._volumes.values()):
            if not _names(volume, claim):
                continue
            await self._set_phase(volume, "Released")
            made = PROVISIONED_BY in (volume["metadata"].get("annotations") or {})
            if made and volume["spec"].get("persistentVolumeReclaimPolicy") == "Delete":
                await self._api.delete(_path_of_volume(volume), volume["metadata"]["uid"])

    # ---- the volume of a claim

    async def _find_volume(self, claim: Json) -> None:
        promised = next((volume for volume in self._volumes.values() if _names(volume, claim)), None)
        if promised is not None:
            await self._bind(claim, promised)
            return
        name = _class_name(claim)
        storage_class = self._classes.get(("", name))
        if name and storage_class is None:
            return
        node = (claim["metadata"].get("annotations") or {}).get(SELECTED_NODE)
        if storage_class is not None and storage_class.get("volumeBindingMode") == WAITS_FOR_POD:
            if node is not None:
                await self._provision(claim, storage_class, node)
            return
        volume = self._fitting(claim)
        if volume is not None:
            await self._bind(claim, volume)
        elif storage_class is not None:
            await self._provision(claim, storage_class, None)

    def _fitting(self, claim: Json) -> Json | None:
        """The smallest free volume. On which nodes it is does not matter."""
        volumes = {
            name: convert(PersistentVolume, volume | {"spec": volume["spec"] | {"nodeAffinity": None}})
            for (_, name), volume in self._volumes.items()
        }
        pairs = matching(volumes, [convert(PersistentVolumeClaim, claim)], {}).pairs
        return self._volumes["", pairs[0][0].metadata.name] if pairs else None

    async def _provision(self, claim: Json, storage_class: Json, node: str | None) -> None:
        provisioner = storage_class["provisioner"]
        if provisioner in NO_PROVISIONER:
            return
        meta, spec = claim["metadata"], claim["spec"]
        name = f"pvc-{meta['uid']}"
        made: Json = {
            "capacity": {"storage": spec["resources"]["requests"]["storage"]},
            "accessModes": spec["accessModes"],
            "volumeMode": spec.get("volumeMode", "Filesystem"),
            "storageClassName": storage_class["metadata"]["name"],
            "persistentVolumeReclaimPolicy": storage_class.get("reclaimPolicy", "Delete"),
            "claimRef": _reference(claim),
            "csi": {"driver": provisioner.replace("/", "."), "volumeHandle": name},
        }
        if node is not None:
            wanted = {"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}
            made["nodeAffinity"] = {"required": {"nodeSelectorTerms": [{"matchExpressions": [wanted]}]}}
        labels = dict(part.split("=") for part in self._selector.split(",") if part)
        metadata = {"name": name, "labels": labels, "annotations": {PROVISIONED_BY: provisioner}}
        await self._api.create("/api/v1/persistentvolumes", {"metadata": metadata, "spec": made})

    async def _bind(self, claim: Json, volume: Json) -> None:
        """As the controller: the volume, its phase, the claim, its phase; each if it is not so already."""
        bound = await self._promised(volume, claim)
        if bound is None or not await self._set_phase(bound, "Bound"):
            return
        name = volume["metadata"]["name"]
        if claim["spec"].get("volumeName") != name or BIND_COMPLETED not in (
            claim["metadata"].get("annotations") or {}
        ):
            marks = {BIND_COMPLETED: "yes"} | ({} if claim["spec"].get("volumeName") else {BOUND_BY_CONTROLLER: "yes"})
            patch = {"metadata": _version(claim) | {"annotations": marks}, "spec": {"volumeName": name}}
            changed = await self._api.patch(_path_of_claim(claim), patch)
            if changed is None:
                return
            claim = changed
        if _phase(claim) != "Bound":
            got = {"accessModes": volume["spec"]["accessModes"], "capacity": volume["spec"]["capacity"]}
            patch = {"metadata": _version(claim), "status": {"phase": "Bound"} | got}
            await self._api.patch(f"{_path_of_claim(claim)}/status", patch)

    async def _promised(self, volume: Json, claim: Json) -> Json | None:
        """The volume, which names the claim by its uid; None if it has changed."""
        to = volume["spec"].get("claimRef")
        if to is not None and to.get("uid") == claim["metadata"]["uid"]:
            return volume
        metadata = _version(volume) | ({} if to is not None else {"annotations": {BOUND_BY_CONTROLLER: "yes"}})
        patch = {"metadata": metadata, "spec": {"claimRef": _reference(claim)}}
        return await self._api.patch(_path_of_volume(volume), patch)

    async def _set_phase(self, volume: Json, phase: str) -> bool:
        """False if the volume has changed."""
        if _phase(volume) == phase:
            return True
        patch = {"metadata": _version(volume), "status": {"phase": phase}}
        return await self._api.patch(f"{_path_of_volume(volume)}/status", patch) is not None

    # ---- claims and pods

    async def _make_claim(self, pod: Json, volume: Json) -> None:
        meta, template = pod["metadata"], volume["ephemeral"]["volumeClaimTemplate"]
        name = _claim_name(pod, volume)
        if (meta["namespace"], name) in self._claims:
            return
        owner = {"apiVersion": "v1", "kind": "Pod", "name": meta["name"], "uid": meta["uid"], "controller": True}
        given = template.get("metadata") or {}
        copied = {key: given[key] for key in ("labels", "annotations") if given.get(key)}
        claim = {"metadata": copied | {"name": name, "ownerReferences": [owner]}, "spec": template["spec"]}
        await self._api.create(f"/api/v1/namespaces/{meta['namespace']}/persistentvolumeclaims", claim)

    def _is_orphan(self, claim: Json) -> bool:
        """Whether the pod that it was made for has gone."""
        owners = claim["metadata"].get("ownerReferences") or ()
        return any(owner["kind"] == "Pod" and owner["uid"] in self._gone for owner in owners)

    def _is_used(self, claim: Json) -> bool:
        return any(key_of(claim) in _claims_of(pod) for pod in self._pods.values())

    async def _unprotect(self, path: str, found: Json, finalizer: str) -> None:
        others = [each for each in found["metadata"].get("finalizers") or () if each != finalizer]
        if len(others) < len(found["metadata"].get("finalizers") or ()):
            await self._api.patch(path, {"metadata": _version(found) | {"finalizers": others or None}})


def _claims_of(pod: Json) -> list[Key]:
    """Also those of ephemeral volumes."""
    names = (_claim_name(pod, volume) for volume in pod["spec"].get("volumes") or ())
    return [(pod["metadata"]["namespace"], name) for name in names if name]


def _claim_name(pod: Json, volume: Json) -> str:
    if volume.get("ephemeral"):
        return f"{pod['metadata']['name']}-{volume['name']}"
    name: str = (volume.get("persistentVolumeClaim") or {}).get("claimName", "")
    return name


def _class_name(claim: Json) -> str:
    annotations = claim["metadata"].get("annotations") or {}
    name: str = annotations.get(CLASS, claim["spec"].get("storageClassName", ""))
    return name


def _names(volume: Json, claim: Json) -> bool:
    """Whether the volume is promised to the claim: this very object, if it names a uid."""
    to = volume["spec"].get("claimRef") or {}
    named = (to.get("namespace", ""), to.get("name", "")) == key_of(claim)
    return named and to.get("uid", "") in ("", claim["metadata"]["uid"])


def _reference(claim: Json) -> Json:
    meta = claim["metadata"]
    reference = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": meta["namespace"]}
    return reference | {"name": meta["name"], "uid": meta["uid"]}


def _version(found: Json) -> dict[str, Any]:
    return {key: found["metadata"][key] for key in ("uid", "resourceVersion")}


def _phase(found: Json) -> str:
    phase: str = (found.get("status") or {}).get("phase", "")
    return phase


def _path_of_volume(volume: Json) -> str:
    return f"/api/v1/persistentvolumes/{volume['metadata']['name']}"


def _path_of_claim(claim: Json) -> str:
    namespace, name = key_of(claim)
    return f"/api/v1/namespaces/{namespace}/persistentvolumeclaims/{name}"
