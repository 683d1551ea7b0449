"""What a fresh server has: namespaces, system priority classes, the service that stands for the server."""

from typing import Final

from ksp.apiserver.clock import RandomDice
from ksp.apiserver.codec.go_times import write_time
from ksp.apiserver.state import State
from ksp.apiserver.strategy import Json

NAMESPACES: Final = ("kube-system", "kube-public", "kube-node-lease", "default")
_PRIORITY_CLASSES: Final = (
    (
        "system-node-critical",
        2_000_001_000,
        "Used for system critical pods that must not be moved from their current node.",
    ),
    (
        "system-cluster-critical",
        2_000_000_000,
        "Used for system critical pods that must run in the cluster, but can be moved to another node if necessary.",
    ),
)


def fill(state: State) -> None:
    """Puts the initial objects into an empty store."""
    for name in NAMESPACES:
        state.store.put("namespaces", _namespace(name, state))
    for name, value, description in _PRIORITY_CLASSES:
        state.store.put("priorityclasses.scheduling.k8s.io", _priority_class(name, value, description, state))
    state.store.put("services", _service(state))
    state.store.put("configmaps", _config_map("extension-apiserver-authentication", {}, state))
    if state.version.tracks_legacy_tokens:
        since = {"since": state.clock.now().strftime("%Y-%m-%d")}
        state.store.put("configmaps", _config_map("kube-apiserver-legacy-service-account-token-tracking", since, state))


def _metadata(name: str, state: State, **more: object) -> Json:
    dice: RandomDice = state.dice
    return {"name": name, **more, "uid": dice.uid(), "creationTimestamp": write_time(state.clock.now())}


def _namespace(name: str, state: State) -> Json:
    meta = _metadata(name, state)
    if state.version.namespace_name_label:
        meta["labels"] = {"kubernetes.io/metadata.name": name}
    return {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": meta,
        "spec": {"finalizers": ["kubernetes"]},
        "status": {"phase": "Active"},
    }


def _priority_class(name: str, value: int, description: str, state: State) -> Json:
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": _metadata(name, state, generation=1),
        "value": value,
        "description": description,
        "preemptionPolicy": "PreemptLowerPriority",
    }


def _config_map(name: str, data: Json, state: State) -> Json:
    meta = _metadata(name, state, namespace="kube-system")
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta} | ({"data": data} if data else {})


def _service(state: State) -> Json:
    spec: Json = {
        "ports": [{"name": "https", "protocol": "TCP", "port": 443, "targetPort": 6443}],
        "clusterIP": "10.0.0.1",
        "type": "ClusterIP",
        "sessionAffinity": "None",
    }
    if state.version.dual_stack:
        spec |= {
            "clusterIPs": ["10.0.0.1"],
            "ipFamilies": ["IPv4"],
            "ipFamilyPolicy": "SingleStack",
            "internalTrafficPolicy": "Cluster",
        }
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": _metadata(
            "kubernetes",
            state,
            namespace="default",
            labels={"component": "apiserver", "provider": "kubernetes"},
        ),
        "spec": spec,
        "status": {"loadBalancer": {}},
    }
