"""Plays, over the API, what a cluster has beside its scheduler: kubelets and controllers.

A server without them leaves a new node NotReady and tainted, a bound pod Pending, a deleted pod Terminating, a budget
without status and a claim without volume (`ksp.sim.volume_actor`). The actor mends that: for all there is on a server
of ksp's own, for what a test has made on any other."""

from __future__ import annotations

import asyncio

from ksp.kube.errors import KubeError
from ksp.kube.http.client import Client
from ksp.model.decode import convert
from ksp.model.selector import LabelSelector, Matcher
from ksp.sim.disruptions import desired_healthy
from ksp.sim.following import PAUSE, STRATEGIC, Following, Json, Key
from ksp.sim.volume_actor import VolumeActor

NOT_READY = "node.kubernetes.io/not-ready"


class Actor:
    """Watches the nodes, volumes and storage classes that match a label selector, and the pods, budgets and claims of a
    namespace; "" stands for all.

    `policy` is the path of the version of the policy group that the server has."""

    def __init__(self, client: Client, policy: str, *, namespace: str = "", selector: str = "") -> None:
        self._api = Following(client)
        self._within = f"/namespaces/{namespace}" if namespace else ""
        self._selector = selector
        self._policy = policy
        self._pods: dict[Key, Json] = {}
        self._budgets: dict[Key, Json] = {}
        self._pods_changed = asyncio.Event()
        self._volumes = VolumeActor(self._api, self._within, selector, self._pods)

    async def run(self) -> None:
        """Until cancelled."""
        pods, budgets = f"/api/v1{self._within}/pods", f"{self._policy}{self._within}/poddisruptionbudgets"
        follow = self._api.follow
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(follow("/api/v1/nodes", self._selector, {}, self._on_node))
            tasks.create_task(follow(pods, "", self._pods, self._on_pod, self._pod_gone))
            tasks.create_task(follow(budgets, "", self._budgets, self._count))
            tasks.create_task(self._count_budgets())
            tasks.create_task(self._volumes.run())

    async def _on_pod(self, pod: Json) -> None:
        self._pods_changed.set()
        await self._volumes.pod_changed(pod)
        await self._run_pod(pod)

    async def _pod_gone(self, pod: Json) -> None:
        self._pods_changed.set()
        await self._volumes.pod_gone(pod)

    # ---- kubelet

    async def _on_node(self, node: Json) -> None:
        name = node["metadata"]["name"]
        conditions = node.get("status", {}).get("conditions") or []
        if not any(c["type"] == "Ready" and c["status"] == "True" for c in conditions):
            ready = {"type": "Ready", "status": "True", "reason": "Acted", "message": "an actor says so"}
            await self._api.patch(f"/api/v1/nodes/{name}/status", {"status": {"conditions": [ready]}}, STRATEGIC)
        taints = node.get("spec", {}).get("taints") or []
        if any(taint["key"] == NOT_READY for taint in taints):
            others = [taint for taint in taints if taint["key"] != NOT_READY]
            await self._api.patch(f"/api/v1/nodes/{name}", {"spec": {"taints": others or None}})

    async def _run_pod(self, pod: Json) -> None:
        namespace, name, uid = (pod["metadata"][key] for key in ("namespace", "name", "uid"))
        path = f"/api/v1/namespaces/{namespace}/pods/{name}"
        if not pod["spec"].get("nodeName"):
            return
        if pod["metadata"].get("deletionTimestamp"):
            await self._api.delete(path, uid)
        elif pod["status"].get("phase") == "Pending":
            running = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
            await self._api.patch(f"{path}/status", {"metadata": {"uid": uid}, "status": running}, STRATEGIC)

    # ---- disruption controller

    async def _count_budgets(self) -> None:
        """Whenever pods have changed."""
        while True:
            await self._pods_changed.wait()
            self._pods_changed.clear()
            try:
                for budget in list(self._budgets.values()):
                    await self._count(budget)
            except KubeError:
                self._pods_changed.set()
                await asyncio.sleep(PAUSE)

    async def _count(self, budget: Json) -> None:
        """The status that the controller writes, if there are as many pods as there should be."""
        namespace, name = budget["metadata"]["namespace"], budget["metadata"]["name"]
        selects = _selects(budget["spec"].get("selector"), all_of_empty=not self._policy.endswith("v1beta1"))
        near = [pod for (where, _), pod in self._pods.items() if where == namespace]
        pods = [pod for pod in near if selects(pod["metadata"].get("labels") or {})]
        healthy, desired = sum(map(_is_ready, pods)), _desired(budget["spec"], len(pods))
        status = {
            "observedGeneration": budget["metadata"]["generation"],
            "expectedPods": len(pods),
            "currentHealthy": healthy,
            "desiredHealthy": desired,
            "disruptionsAllowed": max(0, healthy - desired),
        }
        if any(budget.get("status", {}).get(key) != value for key, value in status.items()):
            path = f"{self._policy}/namespaces/{namespace}/poddisruptionbudgets/{name}/status"
            await self._api.patch(path, {"status": status})


def _selects(selector: Json | None, *, all_of_empty: bool) -> Matcher:
    """Whether a budget protects pods with such labels: without a selector none, with an empty one all, or, in v1beta1,
    none."""
    if selector is None or not (selector or all_of_empty):
        return lambda _: False
    return convert(LabelSelector, selector).matcher


def _desired(spec: Json, pods: int) -> int:
    return desired_healthy(spec.get("minAvailable"), spec.get("maxUnavailable"), pods)


def _is_ready(pod: Json) -> bool:
    if pod["metadata"].get("deletionTimestamp"):
        return False
    return any(c["type"] == "Ready" and c["status"] == "True" for c in pod["status"].get("conditions") or ())
