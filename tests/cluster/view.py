"""What a test sees of a cluster: it makes nodes, pods, budgets and volumes of its own, and waits for what becomes of
them."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass, field
from typing import Any

from ksp.kube.errors import ApiError
from ksp.kube.http.client import Client

Json = dict[str, Any]
LABEL = "ksp.test/of"
VOLUMES = "/api/v1/persistentvolumes"
CLASSES = "/apis/storage.k8s.io/v1/storageclasses"
PRIORITIES = "/apis/scheduling.k8s.io/v1/priorityclasses"
FINALIZER = "ksp.test/stays"
SELECTED_NODE = "volume.kubernetes.io/selected-node"
PATIENCE = 30.0
"""Seconds that anything may take: far more than it does, so that only what never happens fails."""


@dataclass(slots=True)
class Cluster:
    """`token` is in all names, so that tests which share a server do not meet: the namespace, the nodes' names and
    their label, and the scheduler's name. `budgets` is the path of the version of policy that the server has."""

    client: Client
    token: str
    minor: int
    budgets: str
    _nodes: list[str] = field(default_factory=list)
    _classes: list[str] = field(default_factory=list)
    _priorities: list[str] = field(default_factory=list)
    _lasting: list[str] = field(default_factory=list)

    @property
    def namespace(self) -> str:
        return f"ksp-{self.token}"

    @property
    def scheduler(self) -> str:
        return f"ksp-{self.token}"

    @property
    def selector(self) -> str:
        return f"{LABEL}={self.token}"

    # ---- making

    async def make_namespace(self) -> None:
        """The test's own, with the service account that pods need where that admission is on. The controller that
        makes it may be late, or not there at all."""
        await self.send("POST", "/api/v1/namespaces", {"metadata": {"name": self.namespace}})
        try:
            path = f"/api/v1/namespaces/{self.namespace}/serviceaccounts"
            await self.send("POST", path, {"metadata": {"name": "default"}})
        except ApiError as error:
            if error.reason != "AlreadyExists":
                raise

    async def node(self, name: str, *, cpu: str = "4", memory: str = "8Gi", pods: str = "110", **labels: str) -> str:
        """A node that the actor makes ready; its name in the cluster. Returns when it is."""
        full = f"{self.token}-{name}"
        amounts = {"cpu": cpu, "memory": memory, "pods": pods}
        node = {
            "metadata": {"name": full, "labels": {LABEL: self.token, "kubernetes.io/hostname": full, **labels}},
            "status": {"capacity": amounts, "allocatable": amounts},
        }
        await self.send("POST", "/api/v1/nodes", node)
        self._nodes.append(full)
        await self.until("/api/v1/nodes", full, is_usable)
        return full

    async def pod(
        self, name: str, *, cpu: str = "100m", scheduler: str | None = None, annotations: Json | None = None,
        **spec: Any,
    ) -> Json:  # fmt: skip
        """A pod that only the test's own nodes can take, as the server made it."""
        wanted = {
            "schedulerName": self.scheduler if scheduler is None else scheduler,
            "automountServiceAccountToken": False,  # there may be nobody who makes tokens
            "terminationGracePeriodSeconds": 0,
            "nodeSelector": {LABEL: self.token},
            "containers": [{"name": "main", "image": "none", "resources": {"requests": {"cpu": cpu}}}],
        }
        metadata = {"name": name, "labels": {"app": name}, "annotations": annotations or {}}
        pod = {"metadata": metadata, "spec": wanted | spec}
        return await self.send("POST", self.pods, pod)

    async def priority(self, name: str, value: int, **fields: Any) -> str:
        """A priority class; its name in the cluster."""
        full = f"{self.token}-{name}"
        await self.send("POST", PRIORITIES, {"metadata": {"name": full}, "value": value, **fields})
        self._priorities.append(full)
        return full

    async def budget(self, name: str, spec: Json) -> None:
        """A disruption budget, once its status says that it has counted its pods."""
        path = f"{self.budgets}/namespaces/{self.namespace}/poddisruptionbudgets"
        await self.send("POST", path, {"metadata": {"name": name}, "spec": spec})
        await self.until(path, name, lambda budget: (budget.get("status") or {}).get("currentHealthy", 0) > 0)

    async def lasts(self, name: str) -> None:
        """The pod stays, when it is deleted, until `let_go`; so that what it goes through can be seen."""
        self._lasting.append(name)
        await self.patch(f"{self.pods}/{name}", {"metadata": {"finalizers": [FINALIZER]}})

    async def let_go(self, name: str) -> None:
        """Returns when the pod is gone, which was deleted before."""
        self._lasting.remove(name)
        await self.patch(f"{self.pods}/{name}", {"metadata": {"finalizers": None}})
        await self.gone(self.pods, name)

    @property
    def pods(self) -> str:
        return f"/api/v1/namespaces/{self.namespace}/pods"

    @property
    def claims(self) -> str:
        return f"/api/v1/namespaces/{self.namespace}/persistentvolumeclaims"

    async def storage_class(
        self, name: str, *, provisioner: str = "made.ksp.test", mode: str = "WaitForFirstConsumer", acted: bool = True
    ) -> str:
        """A storage class; its name in the cluster. Unless it is `acted`, nobody makes volumes for it."""
        full = f"{self.token}-{name}"
        labels = {LABEL: self.token} if acted else {}
        found = {"metadata": {"name": full, "labels": labels}, "provisioner": provisioner, "volumeBindingMode": mode}
        await self.send("POST", CLASSES, found)
        self._classes.append(full)
        return full

    async def claim(self, name: str, of: str, *, mode: str = "ReadWriteOnce") -> Json:
        """A claim of that class for 1Gi, as the server made it."""
        spec = {"storageClassName": of, "accessModes": [mode], "resources": {"requests": {"storage": "1Gi"}}}
        return await self.send("POST", self.claims, {"metadata": {"name": name}, "spec": spec})

    async def volume(self, name: str, of: str, node: str, *, claim: str | None = None) -> str:
        """A volume of that class on that node, promised to a claim if one is named; its name in the cluster. Returns
        when the actor has seen it."""
        full = f"{self.token}-{name}"
        term = {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}]}
        spec: Json = {
            "storageClassName": of,
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "local": {"path": "/mnt"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [term]}},
        }
        if claim is not None:
            kind = {"apiVersion": "v1", "kind": "PersistentVolumeClaim"}
            spec["claimRef"] = kind | {"namespace": self.namespace, "name": claim}
        await self.send("POST", VOLUMES, {"metadata": {"name": full, "labels": {LABEL: self.token}}, "spec": spec})
        await self.until(VOLUMES, full, lambda volume: volume["status"].get("phase") in ("Available", "Bound"))
        return full

    async def pod_with(self, claim: str, name: str, **spec: Any) -> Json:
        """A pod that mounts the claim."""
        volume = {"name": "data", "persistentVolumeClaim": {"claimName": claim}}
        return await self.pod(name, volumes=[volume], **spec)

    async def send(self, method: str, path: str, body: Json | None = None, content: str = "application/json") -> Json:
        data = None if body is None else json.dumps(body).encode()
        answer = await self.client.request(method, path, body=data, content_type=content)
        found: Json = json.loads(answer.body)
        return found

    async def patch(self, path: str, body: Json) -> Json:
        return await self.send("PATCH", path, body, "application/merge-patch+json")

    async def delete(self, path: str) -> None:
        await self.send("DELETE", path, {"gracePeriodSeconds": 0})

    # ---- waiting

    async def until(self, path: str, name: str, holds: Callable[[Json], bool]) -> Json:
        """The object, as soon as the condition holds for it."""
        seen: Json | None = None
        try:
            async with asyncio.timeout(PATIENCE):
                while True:
                    async with contextlib.aclosing(self._states(path, name)) as states:
                        async for seen in states:
                            if holds(seen):
                                return seen
        except TimeoutError:
            raise AssertionError(f"{path}/{name} never came to be so; it is {json.dumps(seen)}") from None

    async def _states(self, path: str, name: str) -> AsyncGenerator[Json, None]:
        """What the object is and becomes, until its watch ends."""
        query = {"fieldSelector": f"metadata.name={name}"}
        listed = json.loads((await self.client.request("GET", path, query=query)).body)
        for item in listed.get("items") or ():
            yield item
        watch = query | {"watch": "true", "resourceVersion": listed["metadata"]["resourceVersion"]}
        async with self.client.stream(path, query=watch | {"timeoutSeconds": "30"}, inactivity=60) as lines:
            async for line in lines:
                event = json.loads(line)
                if event["type"] in ("ADDED", "MODIFIED"):
                    yield event["object"]

    async def bound(self, name: str) -> str:
        """The node that the pod is bound to, once it is."""
        pod = await self.until(self.pods, name, lambda pod: bool(pod["spec"].get("nodeName")))
        node: str = pod["spec"]["nodeName"]
        return node

    async def gone(self, path: str, name: str) -> None:
        """Returns when there is no such object."""
        query = {"fieldSelector": f"metadata.name={name}"}
        async with asyncio.timeout(PATIENCE):
            while True:
                listed = json.loads((await self.client.request("GET", path, query=query)).body)
                if not listed.get("items"):
                    return
                watch = query | {"watch": "true", "resourceVersion": listed["metadata"]["resourceVersion"]}
                async with self.client.stream(path, query=watch, inactivity=60) as lines:
                    async for line in lines:
                        if json.loads(line)["type"] == "DELETED":
                            return

    async def nominated(self, name: str) -> str:
        """The node that the pod waits for, once its status names one."""
        pod = await self.until(self.pods, name, lambda pod: bool(nominated(pod)))
        return nominated(pod)

    async def refused(self, name: str, why: str) -> Json:
        """The condition PodScheduled once it says that the pod has no node, and that text."""
        pod = await self.until(self.pods, name, lambda pod: why in scheduled(pod).get("message", ""))
        found = scheduled(pod)
        assert found["status"] == "False"
        return found

    async def event(self, pod: str, reason: str, text: str = "") -> Json:
        """The event of that reason about the pod, once there is one that says the text."""
        path = f"/api/v1/namespaces/{self.namespace}/events"
        query = {"fieldSelector": f"involvedObject.name={pod},reason={reason}"}
        async with asyncio.timeout(PATIENCE):
            while True:
                listed = json.loads((await self.client.request("GET", path, query=query)).body)
                for found in listed.get("items") or ():
                    if text in found["message"]:
                        event: Json = found
                        return event
                watch = {"watch": "true", "resourceVersion": listed["metadata"]["resourceVersion"]}
                async with self.client.stream(path, query=query | watch, inactivity=60) as lines:
                    async for _ in lines:
                        break

    # ---- the end

    async def clean_up(self) -> None:
        """Takes away what the test made, so that a server which is not ours is as it was."""
        await self._away(self.pods)
        for name in self._lasting:
            with contextlib.suppress(ApiError):  # it is gone by now
                await self.patch(f"{self.pods}/{name}", {"metadata": {"finalizers": None}})
        for node in self._nodes:
            await self._away(f"/api/v1/nodes/{node}")
        for storage_class in self._classes:
            await self._away(f"{CLASSES}/{storage_class}")
        for priority in self._priorities:
            await self._away(f"{PRIORITIES}/{priority}")
        await self._unprotected_away(self.claims, {})
        await self._unprotected_away(VOLUMES, {"labelSelector": self.selector})
        await self._away(f"/api/v1/namespaces/{self.namespace}")

    async def _unprotected_away(self, path: str, query: dict[str, str]) -> None:
        """All of them, though somebody may still use them."""
        listed = json.loads((await self.client.request("GET", path, query=query)).body)
        for found in listed.get("items") or ():
            one = f"{path}/{found['metadata']['name']}"
            await self._away(one)
            with contextlib.suppress(ApiError):  # it is gone by now
                await self.patch(one, {"metadata": {"finalizers": None}})

    async def _away(self, path: str) -> None:
        try:
            await self.client.request("DELETE", path, body=b'{"gracePeriodSeconds": 0}')
        except ApiError as error:
            if error.status not in (404, 409):
                raise


def scheduled(pod: Json) -> Json:
    """The condition PodScheduled; empty if there is none."""
    return condition(pod, "PodScheduled")


def selected_node(claim: Json) -> str:
    """The node for which a volume is to be made for the claim; empty if none is chosen."""
    node: str = (claim["metadata"].get("annotations") or {}).get(SELECTED_NODE, "")
    return node


def condition(pod: Json, type: str) -> Json:
    """The pod's condition of that type; empty if there is none."""
    conditions = pod.get("status", {}).get("conditions") or ()
    return next((dict(each) for each in conditions if each["type"] == type), {})


def nominated(pod: Json) -> str:
    """The node that the pod waits for; empty if there is none."""
    name: str = pod.get("status", {}).get("nominatedNodeName", "")
    return name


def is_usable(node: Json) -> bool:
    """Ready, with no taint left from before it was."""
    conditions = node.get("status", {}).get("conditions") or ()
    ready = any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)
    return ready and not node.get("spec", {}).get("taints")
