"""The cells of kubectl's tables, kind by kind (kube-apiserver's `printers/internalversion`)."""

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any, Final

from ksp.apiserver.strategy import Json
from ksp.apiserver.tables.human_durations import since
from ksp.apiserver.tables.pod_rows import pod_cells
from ksp.apiserver.versions import Version

Cells = list[Any]
Row = Callable[[Json, Version, datetime], Cells]

_ROLE: Final = "node-role.kubernetes.io/"
_OLD_ROLE: Final = "kubernetes.io/role"
_MODES: Final = {
    "ReadWriteOnce": "RWO",
    "ReadOnlyMany": "ROX",
    "ReadWriteMany": "RWX",
    "ReadWriteOncePod": "RWOP",
}
_DEFAULT_CLASS: Final = "storageclass.kubernetes.io/is-default-class"


def _name(obj: Json) -> str:
    return str(obj["metadata"].get("name", ""))


def _age(obj: Json, now: datetime) -> str:
    return since(obj["metadata"].get("creationTimestamp"), now)


def _labels(labels: Mapping[str, str] | None) -> str:
    return ",".join(f"{key}={labels[key]}" for key in sorted(labels)) if labels else "<none>"


def _selector(selector: Json | None) -> str:
    """`a=b,c in (d,e),!f`."""
    terms = [f"{key}={value}" for key, value in sorted(((selector or {}).get("matchLabels") or {}).items())]
    for each in (selector or {}).get("matchExpressions") or ():
        key, values = each.get("key", ""), ",".join(sorted(each.get("values") or ()))
        match each.get("operator"):
            case "In":
                terms.append(f"{key} in ({values})")
            case "NotIn":
                terms.append(f"{key} notin ({values})")
            case "Exists":
                terms.append(key)
            case _:
                terms.append(f"!{key}")
    return ",".join(terms) or "<none>"


def _containers(template: Json | None) -> list[str]:
    containers = ((template or {}).get("spec") or {}).get("containers") or ()
    return [",".join(each.get(name, "") for each in containers) for name in ("name", "image")]


def _node(obj: Json, version: Version, now: datetime) -> Cells:
    spec, status = obj["spec"], obj["status"]
    info = status.get("nodeInfo") or {}
    system = [info.get(name) or "<unknown>" for name in ("osImage", "kernelVersion", "containerRuntimeVersion")]
    addresses = [_address(status, kind) for kind in ("InternalIP", "ExternalIP")]
    ready = [each for each in status.get("conditions") or () if each["type"] == "Ready"]
    states = [("Ready" if each["status"] == "True" else "NotReady") for each in ready] or ["Unknown"]
    if spec.get("unschedulable"):
        states.append("SchedulingDisabled")
    version_text = info.get("kubeletVersion", "")
    return [_name(obj), ",".join(states), _roles(obj), _age(obj, now), version_text, *addresses, *system]


def _address(status: Json, kind: str) -> str:
    found = [each["address"] for each in status.get("addresses") or () if each.get("type") == kind]
    return found[0] if found else "<none>"


def _roles(obj: Json) -> str:
    labels = obj["metadata"].get("labels") or {}
    roles = {key.removeprefix(_ROLE) for key in labels if key.startswith(_ROLE)} | {labels.get(_OLD_ROLE, "")}
    return ",".join(sorted(roles - {""})) or "<none>"


def _namespace(obj: Json, version: Version, now: datetime) -> Cells:
    return [_name(obj), obj["status"].get("phase", ""), _age(obj, now)]


def _service(obj: Json, version: Version, now: datetime) -> Cells:
    spec = obj["spec"]
    ports = ",".join(_port(port) for port in spec.get("ports") or ()) or "<none>"
    address = spec.get("clusterIP") or "<none>"
    return [_name(obj), spec.get("type"), address, _external(obj), ports, _age(obj, now), _labels(spec.get("selector"))]


def _port(port: Json) -> str:
    node_port = f":{port['nodePort']}" if port.get("nodePort") else ""
    return f"{port.get('port')}{node_port}/{port.get('protocol')}"


def _external(obj: Json) -> str:
    spec = obj["spec"]
    if spec.get("type") == "ExternalName":
        return str(spec.get("externalName", ""))
    given = spec.get("externalIPs") or []
    if spec.get("type") != "LoadBalancer":
        return ",".join(given) or "<none>"
    ingress = obj["status"].get("loadBalancer", {}).get("ingress") or ()
    return ",".join([*(each.get("ip") or each.get("hostname", "") for each in ingress), *given]) or "<pending>"


def _volume(obj: Json, version: Version, now: datetime) -> Cells:
    spec, claim = obj["spec"], obj["spec"].get("claimRef")
    return [
        _name(obj),
        (spec.get("capacity") or {}).get("storage", "0"),
        _modes(spec.get("accessModes")),
        spec.get("persistentVolumeReclaimPolicy", ""),
        _phase(obj),
        f"{claim.get('namespace', '')}/{claim.get('name', '')}" if claim else "",
        spec.get("storageClassName", ""),
        *_attributes_class(spec, version),
        obj["status"].get("reason", ""),
        _age(obj, now),
        spec.get("volumeMode") or "<unset>",
    ]


def _claim(obj: Json, version: Version, now: datetime) -> Cells:
    spec, status = obj["spec"], obj["status"]
    bound = status if spec.get("volumeName") else {}
    return [
        _name(obj),
        _phase(obj),
        spec.get("volumeName", ""),
        (bound.get("capacity") or {}).get("storage", "0") if bound else "",
        _modes(bound.get("accessModes")),
        spec.get("storageClassName", ""),
        *_attributes_class(spec, version),
        _age(obj, now),
        spec.get("volumeMode") or "<unset>",
    ]


def _phase(obj: Json) -> str:
    return "Terminating" if obj["metadata"].get("deletionTimestamp") else str(obj["status"].get("phase", ""))


def _attributes_class(spec: Json, version: Version) -> list[str]:
    return [spec.get("volumeAttributesClassName") or "<unset>"] if version.phase_times else []


def _modes(modes: Iterable[str] | None) -> str:
    given = set(modes or ())
    return ",".join(short for mode, short in _MODES.items() if mode in given)


def _storage_class(obj: Json, version: Version, now: datetime) -> Cells:
    default = (obj["metadata"].get("annotations") or {}).get(_DEFAULT_CLASS) == "true"
    name = f"{_name(obj)} (default)" if default else _name(obj)
    modes = [obj.get("provisioner", ""), obj.get("reclaimPolicy", "Delete"), obj.get("volumeBindingMode", "Immediate")]
    return [name, *modes, bool(obj.get("allowVolumeExpansion")), _age(obj, now)]


def _csi_node(obj: Json, version: Version, now: datetime) -> Cells:
    return [_name(obj), len(obj["spec"].get("drivers") or ()), _age(obj, now)]


def _budget(obj: Json, version: Version, now: datetime) -> Cells:
    wanted = [str(obj["spec"].get(name, "N/A")) for name in ("minAvailable", "maxUnavailable")]
    return [_name(obj), *wanted, obj["status"].get("disruptionsAllowed", 0), _age(obj, now)]


def _priority_class(obj: Json, version: Version, now: datetime) -> Cells:
    policy = [obj.get("preemptionPolicy", "")] if version.preemption_column else []
    return [_name(obj), obj.get("value", 0), bool(obj.get("globalDefault")), _age(obj, now), *policy]


def _replicas(obj: Json, version: Version, now: datetime) -> Cells:
    """Replica sets and replication controllers, whose selector is plain labels."""
    spec, status = obj["spec"], obj["status"]
    selector = spec.get("selector")
    text = _labels(selector) if obj["kind"] == "ReplicationController" else _selector(selector)
    counts = [spec.get("replicas", 0), status.get("replicas", 0), status.get("readyReplicas", 0)]
    return [_name(obj), *counts, _age(obj, now), *_containers(spec.get("template")), text]


def _stateful_set(obj: Json, version: Version, now: datetime) -> Cells:
    spec = obj["spec"]
    ready = f"{obj['status'].get('readyReplicas', 0)}/{spec.get('replicas', 0)}"
    return [_name(obj), ready, _age(obj, now), *_containers(spec.get("template"))]


def _deployment(obj: Json, version: Version, now: datetime) -> Cells:
    spec, status = obj["spec"], obj["status"]
    counts = [status.get(name, 0) for name in ("updatedReplicas", "availableReplicas")]
    ready = f"{status.get('readyReplicas', 0)}/{spec.get('replicas', 0)}"
    return [_name(obj), ready, *counts, _age(obj, now), *_containers(spec["template"]), _selector(spec.get("selector"))]


def _daemon_set(obj: Json, version: Version, now: datetime) -> Cells:
    spec, status = obj["spec"], obj["status"]
    names = ("desired", "current")
    counts = [status.get(f"{name}NumberScheduled", 0) for name in names]
    counts += [status.get(name, 0) for name in ("numberReady", "updatedNumberScheduled", "numberAvailable")]
    where = _labels(spec["template"]["spec"].get("nodeSelector"))
    rest = [*_containers(spec["template"]), _selector(spec.get("selector"))]
    return [_name(obj), *counts, where, _age(obj, now), *rest]


def _config_map(obj: Json, version: Version, now: datetime) -> Cells:
    return [_name(obj), len(obj.get("data") or {}) + len(obj.get("binaryData") or {}), _age(obj, now)]


def _secret(obj: Json, version: Version, now: datetime) -> Cells:
    return [_name(obj), obj.get("type", ""), len(obj.get("data") or {}), _age(obj, now)]


def _service_account(obj: Json, version: Version, now: datetime) -> Cells:
    return [_name(obj), len(obj.get("secrets") or ()), _age(obj, now)]


_ENDPOINTS_SHOWN: Final = 3


def _endpoints(obj: Json, version: Version, now: datetime) -> Cells:
    found = [
        f"{address.get('ip')}:{port.get('port')}"
        for subset in obj.get("subsets") or ()
        for port in subset.get("ports") or ()
        for address in subset.get("addresses") or ()
    ]
    more = f" + {len(found) - _ENDPOINTS_SHOWN} more..." if len(found) > _ENDPOINTS_SHOWN else ""
    return [_name(obj), (",".join(found[:_ENDPOINTS_SHOWN]) + more) or "<none>", _age(obj, now)]


def _lease(obj: Json, version: Version, now: datetime) -> Cells:
    return [_name(obj), obj["spec"].get("holderIdentity", ""), _age(obj, now)]


def _event(obj: Json, version: Version, now: datetime) -> Cells:
    """Of core/v1."""
    series, about = obj.get("series"), obj["involvedObject"]
    first = since(obj.get("firstTimestamp") or obj.get("eventTime"), now)
    last = since(obj["lastTimestamp"], now) if obj.get("lastTimestamp") else first
    count = obj.get("count", 0) or 1
    if series is not None:
        last = since(series.get("lastObservedTime"), now)
        count = series.get("count", 0) + (0 if version.series_count_all else 1)
    kind = about.get("kind", "").lower()
    target = f"{kind}/{about['name']}" if about.get("name") else kind
    source, message = _source(obj), obj.get("message", "").strip()
    what = [obj.get("type", ""), obj.get("reason", ""), target, about.get("fieldPath", "")]
    return [last, *what, source, message, first, count, _name(obj)]


def _source(obj: Json) -> str:
    source = obj.get("source") or {}
    parts = [
        source.get("component") or obj.get("reportingComponent"),
        source.get("host") or obj.get("reportingInstance"),
    ]
    return ", ".join(part for part in parts if part)


ROWS: Final[Mapping[str, Row]] = {
    "configmaps": _config_map,
    "daemonsets.apps": _daemon_set,
    "deployments.apps": _deployment,
    "endpoints": _endpoints,
    "events": _event,
    "namespaces": _namespace,
    "nodes": _node,
    "persistentvolumeclaims": _claim,
    "persistentvolumes": _volume,
    "pods": pod_cells,
    "replicationcontrollers": _replicas,
    "secrets": _secret,
    "serviceaccounts": _service_account,
    "services": _service,
    "leases.coordination.k8s.io": _lease,
    "replicasets.apps": _replicas,
    "statefulsets.apps": _stateful_set,
    "poddisruptionbudgets.policy": _budget,
    "priorityclasses.scheduling.k8s.io": _priority_class,
    "csinodes.storage.k8s.io": _csi_node,
    "storageclasses.storage.k8s.io": _storage_class,
}
"""By the id under which a kind is stored; each has its columns in `data/columns-*.json`."""
