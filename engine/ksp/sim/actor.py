"""Plays, over the API, what a cluster has beside its scheduler: kubelets and controllers.

A server without them leaves a new node NotReady and tainted, a bound pod Pending, a deleted pod Terminating and a
budget without status. The actor mends that: for all there is on a server of ksp's own, for what a test has made on any
other."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

from ksp.kube.errors import ApiError, KubeError
from ksp.kube.http.client import Client
from ksp.model.decode import convert
from ksp.model.selector import LabelSelector, Matcher

MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
NOT_READY = "node.kubernetes.io/not-ready"
GONE_OR_CHANGED = frozenset({404, 409})
PAUSE = 0.2
"""Seconds between the end of a watch and the next list."""

Json = dict[str, Any]
Key = tuple[str, str]
"""Namespace and name."""


class Actor:
    """Watches the nodes that match a label selector, and the pods and budgets of a namespace; "" stands for all.

    `policy` is the path of the version of the policy group that the server has."""

    def __init__(self, client: Client, policy: str, *, namespace: str = "", node_selector: str = "") -> None:
        self._client = client
        self._within = f"/namespaces/{namespace}" if namespace else ""
        self._node_selector = node_selector
        self._policy = policy
        self._pods: dict[Key, Json] = {}
        self._budgets: dict[Key, Json] = {}

    async def run(self) -> None:
        """Until cancelled."""
        budgets = f"{self._policy}{self._within}/poddisruptionbudgets"
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._follow("/api/v1/nodes", self._node_selector, {}, self._on_node))
            tasks.create_task(self._follow(f"/api/v1{self._within}/pods", "", self._pods, self._on_pod))
            tasks.create_task(self._follow(budgets, "", self._budgets, self._count))

    async def _follow(
        self, path: str, selector: str, known: dict[Key, Json], react: Callable[[Json], Awaitable[None]]
    ) -> None:
        """Lists and watches, and starts again when that ends, for whatever reason. `known` is kept equal to what there
        is; `react` is told of each object that came or changed. After a change of a pod the budgets are counted anew.
        """
        query = {"labelSelector": selector} if selector else {}
        while True:
            try:
                answer = await self._client.request("GET", path, query=query)
                listed = json.loads(answer.body)
                known.clear()
                known.update((_key(item), item) for item in listed.get("items") or ())
                for item in list(known.values()):
                    await react(item)
                version = listed["metadata"]["resourceVersion"]
                watch = query | {"watch": "true", "resourceVersion": version, "timeoutSeconds": "300"}
                async with self._client.stream(path, query=watch, inactivity=310) as lines:
                    async for line in lines:
                        event = json.loads(line)
                        if event["type"] == "ERROR":
                            break
                        await self._take(event["type"], event["object"], known, react)
            except KubeError:
                pass
            await asyncio.sleep(PAUSE)

    async def _take(
        self, verb: str, found: Json, known: dict[Key, Json], react: Callable[[Json], Awaitable[None]]
    ) -> None:
        if verb == "DELETED":
            known.pop(_key(found), None)
        else:
            known[_key(found)] = found
            await react(found)
        if known is self._pods:
            await self._count_budgets()

    # ---- kubelet

    async def _on_node(self, node: Json) -> None:
        name = node["metadata"]["name"]
        conditions = node.get("status", {}).get("conditions") or []
        if not any(c["type"] == "Ready" and c["status"] == "True" for c in conditions):
            ready = {"type": "Ready", "status": "True", "reason": "Acted", "message": "an actor says so"}
            await self._patch(f"/api/v1/nodes/{name}/status", {"status": {"conditions": [ready]}}, STRATEGIC)
        taints = node.get("spec", {}).get("taints") or []
        if any(taint["key"] == NOT_READY for taint in taints):
            others = [taint for taint in taints if taint["key"] != NOT_READY]
            await self._patch(f"/api/v1/nodes/{name}", {"spec": {"taints": others or None}})

    async def _on_pod(self, pod: Json) -> None:
        namespace, name, uid = (pod["metadata"][key] for key in ("namespace", "name", "uid"))
        path = f"/api/v1/namespaces/{namespace}/pods/{name}"
        if not pod["spec"].get("nodeName"):
            return
        if pod["metadata"].get("deletionTimestamp"):
            await self._delete(path, uid)
        elif pod["status"].get("phase") == "Pending":
            running = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
            await self._patch(f"{path}/status", {"metadata": {"uid": uid}, "status": running}, STRATEGIC)

    async def _delete(self, path: str, uid: str) -> None:
        options = {"gracePeriodSeconds": 0, "preconditions": {"uid": uid}}
        await self._tolerant("DELETE", path, options, "application/json")

    # ---- disruption controller

    async def _count_budgets(self) -> None:
        for budget in list(self._budgets.values()):
            await self._count(budget)

    async def _count(self, budget: Json) -> None:
        """The status that the controller writes, if there are as many pods as there should be."""
        namespace, name = budget["metadata"]["namespace"], budget["metadata"]["name"]
        selects = _selects(budget["spec"].get("selector"), all_of_empty=not self._policy.endswith("v1beta1"))
        near = [pod for (where, _), pod in self._pods.items() if where == namespace]
        pods = [pod for pod in near if selects(pod["metadata"].get("labels") or {})]
        healthy, desired = sum(map(_is_ready, pods)), desired_healthy(budget["spec"], len(pods))
        status = {
            "observedGeneration": budget["metadata"]["generation"],
            "expectedPods": len(pods),
            "currentHealthy": healthy,
            "desiredHealthy": desired,
            "disruptionsAllowed": max(0, healthy - desired),
        }
        if any(budget.get("status", {}).get(key) != value for key, value in status.items()):
            path = f"{self._policy}/namespaces/{namespace}/poddisruptionbudgets/{name}/status"
            await self._patch(path, {"status": status})

    # ---- requests

    async def _patch(self, path: str, patch: Json, how: str = MERGE) -> None:
        await self._tolerant("PATCH", path, patch, how)

    async def _tolerant(self, method: str, path: str, body: Json, content_type: str) -> None:
        """What is gone or has changed comes back with the watch."""
        try:
            await self._client.request(method, path, body=json.dumps(body).encode(), content_type=content_type)
        except ApiError as error:
            if error.status not in GONE_OR_CHANGED:
                raise


def _selects(selector: Json | None, *, all_of_empty: bool) -> Matcher:
    """Whether a budget protects pods with such labels: without a selector none, with an empty one all, or, in v1beta1,
    none."""
    if selector is None or not (selector or all_of_empty):
        return lambda _: False
    return convert(LabelSelector, selector).matcher


def desired_healthy(spec: Json, pods: int) -> int:
    """How many of so many pods a budget wants: numbers, or parts of a hundred, which the controller rounds up."""
    at_least, at_most = spec.get("minAvailable"), spec.get("maxUnavailable")
    if at_least is not None:
        return _scaled(at_least, pods)
    return 0 if at_most is None else max(0, pods - _scaled(at_most, pods))


def _scaled(amount: int | str, pods: int) -> int:
    return -(-int(amount.removesuffix("%")) * pods // 100) if isinstance(amount, str) else amount


def _is_ready(pod: Json) -> bool:
    if pod["metadata"].get("deletionTimestamp"):
        return False
    return any(c["type"] == "Ready" and c["status"] == "True" for c in pod["status"].get("conditions") or ())


def _key(found: Json) -> Key:
    return found["metadata"].get("namespace", ""), found["metadata"]["name"]
