"""Persistent volumes and claims: protection finalizers, the default class, phases."""

from typing import ClassVar, Final

from ksp.apiserver.codec.go_times import write_time
from ksp.apiserver.status import Cause, forbidden, forbidden_field, required
from ksp.apiserver.strategies.base import Defaults, Kind
from ksp.apiserver.strategy import Context, Json
from ksp.apiserver.validation.metadata import immutable, one_of
from ksp.apiserver.validation.resources import validate_amounts
from ksp.apiserver.validation.scheduling import validate_node_selector

CLASSES: Final = "storageclasses.storage.k8s.io"
_IS_DEFAULT: Final = (
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
)
_OLD_CLASS: Final = "volume.beta.kubernetes.io/storage-class"
_MODES: Final = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
_NOT_SOURCES: Final = frozenset(
    (
        *("accessModes", "capacity", "claimRef", "mountOptions", "nodeAffinity", "persistentVolumeReclaimPolicy"),
        *("storageClassName", "volumeMode", "volumeAttributesClassName"),
    )
)


def protect(obj: Json, finalizer: str) -> None:
    """StorageObjectInUseProtection."""
    finalizers = obj["metadata"].get("finalizers") or []
    if finalizer not in finalizers:
        obj["metadata"]["finalizers"] = [*finalizers, finalizer]


class PersistentVolumes(Kind):
    """core/v1."""

    core = True
    returns_deleted = True
    spec_defaults: ClassVar[Defaults] = {"persistentVolumeReclaimPolicy": "Retain", "volumeMode": "Filesystem"}

    def default_more(self, obj: Json, context: Context) -> None:
        obj["status"].setdefault("phase", "Pending")

    def admit_create(self, obj: Json, context: Context) -> None:
        if not context.loading:
            protect(obj, "kubernetes.io/pv-protection")

    def prepare_for_create(self, obj: Json, context: Context) -> None:
        if not context.loading:
            obj["status"] = {"phase": "Pending"}
        if context.version.phase_times:
            obj["status"]["lastPhaseTransitionTime"] = write_time(context.now)

    def check(self, obj: Json, context: Context) -> list[Cause]:
        spec, version = obj["spec"], context.version
        found = validate_modes(spec.get("accessModes") or (), context)
        if not spec.get("capacity"):
            found.append(required("spec.capacity"))
        found += validate_amounts(spec.get("capacity") or {}, "spec.capacity")
        sources = sorted(set(spec) - _NOT_SOURCES)
        if not sources:
            found.append(required("spec", "must specify a volume type"))
        found += [forbidden_field(f"spec.{name}", "may not specify more than 1 volume type") for name in sources[1:]]
        wanted = (spec.get("nodeAffinity") or {}).get("required")
        if wanted is not None:
            found += validate_node_selector(wanted, "spec.nodeAffinity.required", version)
        elif "local" in spec:
            found.append(required("spec.nodeAffinity", "Local volume requires node affinity"))
        return found

    def prepare_for_status_update(self, new: Json, old: Json, context: Context) -> None:
        super().prepare_for_status_update(new, old, context)
        if context.version.phase_times and new["status"].get("phase") != old["status"].get("phase"):
            new["status"]["lastPhaseTransitionTime"] = write_time(context.now)

    def check_update(self, new: Json, old: Json, context: Context) -> list[Cause]:
        """What it is and where it can be used stays; whose it is may change at any time."""
        was, spec = old["spec"], new["spec"]
        found = []
        if any(spec.get(name) != was.get(name) for name in {*spec, *was} - _NOT_SOURCES):
            text = "spec.persistentvolumesource is immutable after creation"
            found.append(forbidden_field("spec.persistentvolumesource", text))
        found += immutable(spec.get("volumeMode"), was.get("volumeMode"), "volumeMode")
        if was.get("nodeAffinity") is not None:
            found += immutable(spec.get("nodeAffinity"), was["nodeAffinity"], "nodeAffinity")
        return found


def validate_modes(modes: list[str] | tuple[()], context: Context) -> list[Cause]:
    """At least one access mode, and none that is not known."""
    if not modes:
        return [required("spec.accessModes")]
    known = _MODES if context.version.minor >= 22 else _MODES[:3]
    found: list[Cause] = []
    for mode in modes:
        found += one_of(mode, "spec.accessModes", known, context.version)
    return found


class PersistentVolumeClaims(Kind):
    """core/v1."""

    core = True
    returns_deleted = True
    spec_defaults: ClassVar[Defaults] = {"volumeMode": "Filesystem"}

    def default_more(self, obj: Json, context: Context) -> None:
        obj["status"].setdefault("phase", "Pending")

    def admit_create(self, obj: Json, context: Context) -> None:
        protect(obj, "kubernetes.io/pvc-protection")
        _name_class(obj, context)

    def complete(self, obj: Json, context: Context) -> None:
        if not obj["spec"].get("volumeName"):
            _name_class(obj, context)

    def prepare_for_create(self, obj: Json, context: Context) -> None:
        if not context.loading:
            obj["status"] = {"phase": "Pending"}

    def check(self, obj: Json, context: Context) -> list[Cause]:
        spec = obj["spec"]
        requests = (spec.get("resources") or {}).get("requests") or {}
        found = validate_modes(spec.get("accessModes") or (), context)
        if "storage" not in requests:
            return [*found, required("spec.resources[storage]")]
        return [*found, *validate_amounts(requests, "spec.resources.requests")]

    def check_update(self, new: Json, old: Json, context: Context) -> list[Cause]:
        """The volume may be set once; else only requests change, and in newer versions the class of attributes."""
        found = _class_annotation(new, old)
        fixed = [_fixed_part(each["spec"], old["spec"]) for each in (new, old)]
        if fixed[0] != fixed[1]:
            text = "spec is immutable after creation except resources.requests"
            text += " and volumeAttributesClassName" if context.version.phase_times else ""
            found.append(forbidden_field("spec", f"{text} for bound claims"))
        return found


def _class_annotation(new: Json, old: Json) -> list[Cause]:
    """The old annotation stays as it is, but may go when the field takes over what it says."""
    before, after = ((each["metadata"].get("annotations") or {}).get(_OLD_CLASS) for each in (old, new))
    fields = old["spec"].get("storageClassName"), new["spec"].get("storageClassName")
    if before is not None and after is None and fields == (None, before):
        return []
    return immutable(after or "", before or "", f"metadata.annotations.{_OLD_CLASS}")


def _fixed_part(spec: Json, old: Json) -> Json:
    free = {"resources", "volumeAttributesClassName"}
    if not old.get("volumeName"):
        free.add("volumeName")
    if old.get("storageClassName") is None:
        free.add("storageClassName")
    return {name: value for name, value in spec.items() if name not in free}


def _name_class(claim: Json, context: Context) -> None:
    """A claim that names no class gets the default one, if there is one."""
    if claim["spec"].get("storageClassName") is None and _OLD_CLASS not in (claim["metadata"].get("annotations") or {}):
        found = _default_class(claim, context)
        if found:
            claim["spec"]["storageClassName"] = found


def _default_class(claim: Json, context: Context) -> str:
    """The newest default class. 1.19 refuses to choose between several."""
    found = [each for each in context.objects.list(CLASSES) if _is_default(each)]
    if len(found) > 1 and context.version.minor < 26 and not context.loading:
        why = f"Internal error occurred: {len(found)} default StorageClasses were found"
        raise forbidden("", "persistentvolumeclaims", claim["metadata"].get("name", ""), why)
    newest = max(
        found, key=lambda each: (each["metadata"]["creationTimestamp"], each["metadata"]["name"]), default=None
    )
    return newest["metadata"]["name"] if newest else ""


def _is_default(storage_class: Json) -> bool:
    annotations = storage_class["metadata"].get("annotations") or {}
    return any(annotations.get(name) == "true" for name in _IS_DEFAULT)
