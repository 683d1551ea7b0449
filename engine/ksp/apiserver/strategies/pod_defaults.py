"""Defaults inside of a pod's spec, also of templates: `SetDefaults_*` of the core/v1 API."""

import re
from typing import Any, Final

from ksp.apiserver.strategies.defaults import fill
from ksp.apiserver.strategy import Json

_POD: Final = {
    "restartPolicy": "Always",
    "terminationGracePeriodSeconds": 30,
    "dnsPolicy": "ClusterFirst",
    "securityContext": {},
    "schedulerName": "default-scheduler",
}
_CONTAINER: Final = {"terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File"}
_PROBE: Final = {"timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3}
_VOLUME: Final[dict[str, dict[str, Any]]] = {
    "secret": {"defaultMode": 0o644},
    "configMap": {"defaultMode": 0o644},
    "downwardAPI": {"defaultMode": 0o644},
    "projected": {"defaultMode": 0o644},
    "hostPath": {"type": ""},
    "iscsi": {"iscsiInterface": "default"},
    "rbd": {"pool": "rbd", "user": "admin", "keyring": "/etc/ceph/keyring"},
    "azureDisk": {"cachingMode": "ReadWrite", "kind": "Shared", "fsType": "ext4", "readOnly": False},
    "scaleIO": {"storageMode": "ThinProvisioned", "fsType": "xfs"},
}
_TAG: Final = re.compile(r"(?:.*/)?[^/:@]+(?::(?P<tag>[^/:@]+))?(?P<digest>@.*)?")

CONTAINER_LISTS: Final = ("initContainers", "containers", "ephemeralContainers")


def default_pod_spec(spec: Json, *, host_ports: bool) -> None:
    """What pods and templates have in common. `host_ports`: in the host's network, ports are ports of the host."""
    fill(spec, _POD)
    account = spec.get("serviceAccountName") or spec.get("serviceAccount")
    if account:
        # The old name of the field is still written.
        spec["serviceAccountName"] = spec["serviceAccount"] = account
    for volume in spec.get("volumes") or ():
        _default_volume(volume)
    for name in CONTAINER_LISTS:
        for container in spec.get(name) or ():
            _default_container(container)
            for port in (container.get("ports") or ()) if host_ports and spec.get("hostNetwork") else ():
                fill(port, {"hostPort": port["containerPort"]})


def default_pod(spec: Json) -> None:
    """What pods alone have; templates get it when a pod is made of them."""
    default_pod_spec(spec, host_ports=True)
    fill(spec, {"enableServiceLinks": True})
    for name in CONTAINER_LISTS:
        for container in spec.get(name) or ():
            _default_requests(container.get("resources") or {})


def _default_requests(resources: Json) -> None:
    """Who sets a limit and no request asks for the limit."""
    limits = resources.get("limits")
    if limits:
        resources["requests"] = dict(sorted({**limits, **(resources.get("requests") or {})}.items()))


def _default_container(container: Json) -> None:
    fill(container, {**_CONTAINER, "imagePullPolicy": _pull_policy(container.get("image", ""))})
    for port in container.get("ports") or ():
        fill(port, {"protocol": "TCP"})
    for probe in ("livenessProbe", "readinessProbe", "startupProbe"):
        if probe in container:
            fill(container[probe], _PROBE)
            _default_handler(container[probe])
    for handler in (container.get("lifecycle") or {}).values():
        if isinstance(handler, dict):
            _default_handler(handler)
    for variable in container.get("env") or ():
        reference = (variable.get("valueFrom") or {}).get("fieldRef")
        if reference is not None:
            fill(reference, {"apiVersion": "v1"})


def _default_handler(handler: Json) -> None:
    if "httpGet" in handler:
        fill(handler["httpGet"], {"path": "/", "scheme": "HTTP"})
    if "grpc" in handler:
        fill(handler["grpc"], {"service": ""})


def _pull_policy(image: str) -> str:
    """Always for the tag latest, which is meant where there is neither tag nor digest."""
    match = _TAG.fullmatch(image)
    if match is None or match["digest"]:
        return "IfNotPresent"
    return "Always" if match["tag"] in {None, "latest"} else "IfNotPresent"


def _default_volume(volume: Json) -> None:
    if set(volume) <= {"name"}:
        volume["emptyDir"] = {}
    for source, defaults in _VOLUME.items():
        if source in volume:
            fill(volume[source], defaults)
    for source in (volume.get("projected") or {}).get("sources") or ():
        if "serviceAccountToken" in source:
            fill(source["serviceAccountToken"], {"expirationSeconds": 3600})
    for projection in (volume.get("downwardAPI"), *((volume.get("projected") or {}).get("sources") or ())):
        for item in _downward_items(projection or {}):
            if "fieldRef" in item:
                fill(item["fieldRef"], {"apiVersion": "v1"})


def _downward_items(projection: Json) -> list[Json]:
    return list((projection.get("downwardAPI") or projection).get("items") or ())
