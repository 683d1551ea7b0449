"""The group storage.k8s.io."""

from typing import ClassVar

from ksp.apiserver.status import Cause, forbidden_field, required
from ksp.apiserver.strategies.base import Defaults, Kind
from ksp.apiserver.strategy import Context, Json
from ksp.apiserver.validation.metadata import one_of, validate_metadata_update


class StorageClasses(Kind):
    """Immutable but for metadata and allowVolumeExpansion."""

    returns_deleted = True
    defaults: ClassVar[Defaults] = {"reclaimPolicy": "Delete", "volumeBindingMode": "Immediate"}

    def check(self, obj: Json, context: Context) -> list[Cause]:
        version = context.version
        found = [] if obj.get("provisioner") else [required("provisioner")]
        found += one_of(obj["reclaimPolicy"], "reclaimPolicy", ("Delete", "Retain"), version)
        modes = ("Immediate", "WaitForFirstConsumer")
        return [*found, *one_of(obj["volumeBindingMode"], "volumeBindingMode", modes, version)]

    def check_update(self, new: Json, old: Json, context: Context) -> list[Cause]:
        what = {
            "parameters": "updates to parameters are forbidden.",
            "provisioner": "updates to provisioner are forbidden.",
            "reclaimPolicy": "updates to reclaimPolicy are forbidden.",
            "volumeBindingMode": "field is immutable",
        }
        return [forbidden_field(name, text) for name, text in what.items() if new.get(name) != old.get(name)]


class CSINodes(Kind):
    """One for each node, with its drivers."""

    returns_deleted = True

    def check(self, obj: Json, context: Context) -> list[Cause]:
        found: list[Cause] = []
        for index, driver in enumerate(obj["spec"].get("drivers") or ()):
            found += [required(f"spec.drivers[{index}].{name}") for name in ("name", "nodeID") if not driver.get(name)]
        return found

    def validate_update(self, new: Json, old: Json, context: Context) -> list[Cause]:
        return [*validate_metadata_update(new["metadata"], old["metadata"]), *self.check(new, context)]


class CSIDrivers(Kind):
    """What a driver can do."""

    returns_deleted = True
    spec_defaults: ClassVar[Defaults] = {
        "attachRequired": True,
        "podInfoOnMount": False,
        "volumeLifecycleModes": ["Persistent"],
    }

    def default_more(self, obj: Json, context: Context) -> None:
        if context.version.minor >= 20:
            spec = obj["spec"]
            spec.setdefault("storageCapacity", False)
            spec.setdefault("fsGroupPolicy", "ReadWriteOnceWithFSType")
            spec.setdefault("requiresRepublish", False)
        if context.version.minor >= 25:
            obj["spec"].setdefault("seLinuxMount", False)


class VolumeAttachments(Kind):
    """A volume on a node."""

    returns_deleted = True

    def check(self, obj: Json, context: Context) -> list[Cause]:
        return [required(f"spec.{name}") for name in ("attacher", "nodeName") if not obj["spec"].get(name)]
