"""Validation of a pod's spec, and of what may change in it: core/v1's ValidatePodSpec and ValidatePodUpdate.

The rules that common mistakes break, in the order in which the server finds them.
"""

from collections.abc import Iterable
from copy import deepcopy
from typing import Final

from ksp.apiserver.status import Cause, duplicate, forbidden_field, invalid_value, required
from ksp.apiserver.strategy import Json
from ksp.apiserver.validation import names
from ksp.apiserver.validation.metadata import named, one_of, quoted
from ksp.apiserver.validation.resources import validate_requirements
from ksp.apiserver.validation.scheduling import validate_scheduling
from ksp.apiserver.versions import Version

PROTOCOLS: Final = ("SCTP", "TCP", "UDP")
_RESTART: Final = ("Always", "OnFailure", "Never")
_DNS: Final = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
_PULL: Final = ("Always", "IfNotPresent", "Never")
_PREEMPTION: Final = ("PreemptLowerPriority", "Never")


def validate_pod_spec(spec: Json, field: str, version: Version) -> list[Cause]:
    """Of a pod or a template."""
    volumes = spec.get("volumes") or ()
    known = {volume.get("name", "") for volume in volumes}
    containers = spec.get("containers") or ()
    found = _validate_volumes(volumes, f"{field}.volumes", version)
    if not containers:
        found.append(required(f"{field}.containers"))
    taken: set[str] = set()
    for name, group in (("containers", containers), ("initContainers", spec.get("initContainers") or ())):
        found += _validate_containers(group, f"{field}.{name}", known, taken, version)
    found += one_of(spec.get("restartPolicy", ""), f"{field}.restartPolicy", _RESTART, version)
    found += one_of(spec.get("dnsPolicy", ""), f"{field}.dnsPolicy", _DNS, version)
    if spec.get("hostNetwork"):
        found += _validate_host_network(containers, f"{field}.containers", is_pod=field == "spec")
    found += _validate_deadline_of(spec, field)
    found += _validate_named_fields(spec, field, version)
    return [*found, *validate_scheduling(spec, field, version)]


def _validate_deadline_of(spec: Json, field: str) -> list[Cause]:
    deadline = spec.get("activeDeadlineSeconds")
    if deadline is None or 1 <= deadline <= 2_147_483_647:
        return []
    text = "must be between 1 and 2147483647, inclusive"
    return [invalid_value(f"{field}.activeDeadlineSeconds", str(deadline), text)]


def _validate_named_fields(spec: Json, field: str, version: Version) -> list[Cause]:
    found: list[Cause] = []
    checks: tuple[tuple[str, names.Check], ...] = (
        ("serviceAccountName", names.subdomain),
        ("nodeName", names.subdomain),
        ("hostname", names.label),
        ("subdomain", names.label),
        ("priorityClassName", names.subdomain),
        ("runtimeClassName", names.subdomain),
    )
    for name, check in checks:
        if spec.get(name):
            found += named(spec[name], f"{field}.{name}", check, version)
    if spec.get("preemptionPolicy") is not None:
        found += one_of(spec["preemptionPolicy"], f"{field}.preemptionPolicy", _PREEMPTION, version)
    if spec.get("schedulingGates") and spec.get("nodeName"):
        text = "cannot be set until all schedulingGates have been cleared"
        found.append(forbidden_field(f"{field}.nodeName", text))
    return found


def _validate_volumes(volumes: Iterable[Json], field: str, version: Version) -> list[Cause]:
    found: list[Cause] = []
    seen: set[str] = set()
    for index, volume in enumerate(volumes):
        place, name = f"{field}[{index}]", volume.get("name", "")
        sources = [source for source in volume if source != "name"]
        if len(sources) > 1:
            found.append(forbidden_field(f"{place}.{sources[1]}", "may not specify more than 1 volume type"))
        if not name:
            found.append(required(f"{place}.name"))
            continue
        found += named(name, f"{place}.name", names.label, version)
        if name in seen:
            found.append(duplicate(f"{place}.name", quoted(name)))
        seen.add(name)
        claim = volume.get("persistentVolumeClaim")
        if claim is not None and not claim.get("claimName"):
            found.append(required(f"{place}.persistentVolumeClaim.claimName"))
    return found


def _validate_containers(
    containers: Iterable[Json], field: str, volumes: set[str], taken: set[str], version: Version
) -> list[Cause]:
    """`taken` are the names of containers so far."""
    found: list[Cause] = []
    for index, container in enumerate(containers):
        place, name = f"{field}[{index}]", container.get("name", "")
        doubled = [duplicate(f"{place}.name", quoted(name))] if name and name in taken else []
        taken.add(name)
        own = _validate_container(container, place, volumes, version)
        found += [*own, *doubled] if version.doubled_names_last else [*doubled, *own]
    return found


def _validate_container(container: Json, field: str, volumes: set[str], version: Version) -> list[Cause]:
    name = container.get("name", "")
    found = named(name, f"{field}.name", names.label, version) if name else [required(f"{field}.name")]
    if not container.get("image"):
        found.append(required(f"{field}.image"))
    found += _validate_ports(container.get("ports") or (), f"{field}.ports", version)
    for index, variable in enumerate(container.get("env") or ()):
        found += _validate_variable(variable, f"{field}.env[{index}]", version)
    for index, mount in enumerate(container.get("volumeMounts") or ()):
        found += _validate_mount(mount, f"{field}.volumeMounts[{index}]", volumes)
    found += one_of(container.get("imagePullPolicy", ""), f"{field}.imagePullPolicy", _PULL, version)
    return [*found, *validate_requirements(container.get("resources") or {}, f"{field}.resources", version)]


def _validate_variable(variable: Json, field: str, version: Version) -> list[Cause]:
    name = variable.get("name", "")
    found = named(name, f"{field}.name", names.environment_name, version) if name else [required(f"{field}.name")]
    if variable.get("value") and variable.get("valueFrom"):
        text = "may not be specified when `value` is not empty"
        found.append(invalid_value(f"{field}.valueFrom", '""', text))
    return found


def _validate_mount(mount: Json, field: str, volumes: set[str]) -> list[Cause]:
    found: list[Cause] = []
    if not mount.get("name"):
        found.append(required(f"{field}.name"))
    elif mount["name"] not in volumes:
        found.append(Cause("FieldValueNotFound", f"Not found: {quoted(mount['name'])}", f"{field}.name"))
    if not mount.get("mountPath"):
        found.append(required(f"{field}.mountPath"))
    return found


def _validate_ports(ports: Iterable[Json], field: str, version: Version) -> list[Cause]:
    found: list[Cause] = []
    seen: set[str] = set()
    for index, port in enumerate(ports):
        place, name = f"{field}[{index}]", port.get("name", "")
        if name:
            if name in seen:
                found.append(duplicate(f"{place}.name", quoted(name)))
            seen.add(name)
        if not port.get("containerPort"):
            found.append(required(f"{place}.containerPort"))
        else:
            found += _validate_port_number(port["containerPort"], f"{place}.containerPort")
        if port.get("hostPort"):
            found += _validate_port_number(port["hostPort"], f"{place}.hostPort")
        found += one_of(port.get("protocol", ""), f"{place}.protocol", PROTOCOLS, version)
    return found


def _validate_port_number(number: int, field: str) -> list[Cause]:
    if 1 <= number <= 65_535:
        return []
    return [invalid_value(field, str(number), "must be between 1 and 65535, inclusive")]


def _validate_host_network(containers: Iterable[Json], field: str, *, is_pod: bool) -> list[Cause]:
    """A template may leave the host's port out."""
    found: list[Cause] = []
    for index, container in enumerate(containers):
        for at, port in enumerate(container.get("ports") or ()):
            if (is_pod or port.get("hostPort")) and port.get("hostPort") != port.get("containerPort"):
                text = "must match `hostPort` when `hostNetwork` is true"
                place = f"{field}[{index}].ports[{at}].containerPort"
                found.append(invalid_value(place, str(port.get("containerPort", 0)), text))
    return found


# --- updates ---------------------------------------------------------------------------------------------------------

_ONLY_OLD: Final = (
    "pod updates may not change fields other than `spec.containers[*].image`, `spec.initContainers[*].image`, "
    "`spec.activeDeadlineSeconds` or `spec.tolerations` (only additions to existing tolerations)"
)
_ONLY_NEW: Final = (
    "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,"
    "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)


def validate_pod_update(new: Json, old: Json, version: Version) -> list[Cause]:
    """Of two specs. The real server shows in the message also how the two differ, in Go's form."""
    for name in ("containers", "initContainers"):
        if len(new.get(name) or ()) != len(old.get(name) or ()):
            what = "initContainer" if name == "initContainers" else "container"
            text = f"pod updates may not add or remove {what}s"
            return [forbidden_field(f"spec.{name}", text)]
    found = _validate_deadline(new, old)
    found += _validate_added_tolerations(new, old)
    if version.scheduling_gates:
        found += _validate_removed_gates(new, old)
    if _fixed(new, old, version) != _fixed(old, old, version):
        found.append(forbidden_field("spec", _ONLY_NEW if version.scheduling_gates else _ONLY_OLD))
    return found


def _fixed(spec: Json, old: Json, version: Version) -> Json:
    """The spec without what may change."""
    out = deepcopy(spec)
    for name in ("activeDeadlineSeconds", "tolerations"):
        out.pop(name, None)
    for name in ("containers", "initContainers"):
        for container in out.get(name) or ():
            container.pop("image", None)
    if old.get("terminationGracePeriodSeconds", 0) < 0 and spec.get("terminationGracePeriodSeconds") == 1:
        out["terminationGracePeriodSeconds"] = old["terminationGracePeriodSeconds"]
    if version.scheduling_gates:
        out.pop("schedulingGates", None)
    if old.get("schedulingGates"):
        # A gated pod may still be narrowed down by its controller.
        out.pop("nodeSelector", None)
        out.pop("affinity", None)
    return out


def _validate_deadline(new: Json, old: Json) -> list[Cause]:
    after, before = new.get("activeDeadlineSeconds"), old.get("activeDeadlineSeconds")
    if after is None or before is None:
        if before is None or after == before:
            return []
        text = "must not update from a positive integer to nil value"
        return [invalid_value("spec.activeDeadlineSeconds", "null", text)]
    if after > before:
        return [invalid_value("spec.activeDeadlineSeconds", str(after), "must be less than or equal to previous value")]
    return []


def _validate_added_tolerations(new: Json, old: Json) -> list[Cause]:
    """Each old toleration is still there; its seconds may differ."""
    kept = {_without_seconds(toleration) for toleration in new.get("tolerations") or ()}
    if all(_without_seconds(toleration) in kept for toleration in old.get("tolerations") or ()):
        return []
    text = "existing toleration can not be modified except its tolerationSeconds"
    return [forbidden_field("spec.tolerations", text)]


def _without_seconds(toleration: Json) -> frozenset[tuple[str, str]]:
    return frozenset((name, value) for name, value in toleration.items() if name != "tolerationSeconds")


def _validate_removed_gates(new: Json, old: Json) -> list[Cause]:
    before = {gate["name"] for gate in old.get("schedulingGates") or ()}
    found: list[Cause] = []
    for index, gate in enumerate(new.get("schedulingGates") or ()):
        if gate["name"] not in before:
            text = f"only deletion is allowed, but found new scheduling gate '{gate['name']}'"
            found.append(forbidden_field(f"spec.schedulingGates[{index}].name", text))
    return found
