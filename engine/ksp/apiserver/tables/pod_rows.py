"""How kubectl shows a pod: what keeps it from running, in one word."""

from datetime import datetime
from typing import Any

from ksp.apiserver.strategy import Json
from ksp.apiserver.tables.human_durations import since
from ksp.apiserver.versions import Version


def pod_cells(pod: Json, version: Version, now: datetime) -> list[Any]:
    """Name, ready containers, status, restarts, age, and the wide columns."""
    spec, status = pod["spec"], pod["status"]
    statuses = status.get("containerStatuses") or ()
    reason, waits = _init_reason(spec, status)
    ready, restarts = 0, sum(each.get("restartCount", 0) for each in status.get("initContainerStatuses") or ())
    if not waits:
        ready = sum(bool(each.get("ready")) and "running" in _state(each) for each in statuses)
        restarts = sum(each.get("restartCount", 0) for each in statuses)
        reason = _reason(status, _phase(status))
    if pod["metadata"].get("deletionTimestamp"):
        reason = "Unknown" if status.get("reason") == "NodeLost" else "Terminating"
    return [
        pod["metadata"].get("name", ""),
        f"{ready}/{len(spec.get('containers') or ())}",
        reason,
        _restarts(restarts, statuses, now) if version.restarts_say_when else restarts,
        since(pod["metadata"].get("creationTimestamp"), now),
        status.get("podIP") or "<none>",
        spec.get("nodeName") or "<none>",
        status.get("nominatedNodeName") or "<none>",
        _gates(spec, status),
    ]


def _phase(status: Json) -> str:
    for condition in status.get("conditions") or ():
        if condition["type"] == "PodScheduled" and condition.get("reason") == "SchedulingGated":
            return "SchedulingGated"
    return str(status.get("reason") or status.get("phase") or "")


def _state(container: Json) -> Json:
    return container.get("state") or {}


def _init_reason(spec: Json, status: Json) -> tuple[str, bool]:
    """What the first unfinished init container waits for, and whether there is one."""
    for index, container in enumerate(status.get("initContainerStatuses") or ()):
        state = _state(container)
        ended, waiting = state.get("terminated"), state.get("waiting") or {}
        if ended is not None and ended.get("exitCode", 0) == 0:
            continue
        if ended is not None:
            return f"Init:{_ended(ended)}", True
        if waiting.get("reason") and waiting["reason"] != "PodInitializing":
            return f"Init:{waiting['reason']}", True
        return f"Init:{index}/{len(spec.get('initContainers') or ())}", True
    return "", False


def _ended(terminated: Json) -> str:
    if terminated.get("reason"):
        return str(terminated["reason"])
    signal = terminated.get("signal", 0)
    return f"Signal:{signal}" if signal else f"ExitCode:{terminated.get('exitCode', 0)}"


def _reason(status: Json, phase: str) -> str:
    """The first container that says something decides."""
    reason, running = phase, False
    for container in reversed(status.get("containerStatuses") or ()):
        state = _state(container)
        if (state.get("waiting") or {}).get("reason"):
            reason = state["waiting"]["reason"]
        elif "terminated" in state:
            reason = _ended(state["terminated"])
        elif container.get("ready") and "running" in state:
            running = True
    if reason == "Completed" and running:
        return "Running" if _is_ready(status) else "NotReady"
    return reason


def _is_ready(status: Json) -> bool:
    return any(each["type"] == "Ready" and each.get("status") == "True" for each in status.get("conditions") or ())


def _restarts(count: int, statuses: Any, now: datetime) -> str:
    ends = [((each.get("lastState") or {}).get("terminated") or {}).get("finishedAt") for each in statuses]
    last = max((end for end in ends if end), default=None)
    return f"{count} ({since(last, now)} ago)" if count and last else str(count)


def _gates(spec: Json, status: Json) -> str:
    gates = spec.get("readinessGates") or ()
    if not gates:
        return "<none>"
    true = {each["type"] for each in status.get("conditions") or () if each.get("status") == "True"}
    return f"{sum(gate.get('conditionType') in true for gate in gates)}/{len(gates)}"
