"""An API server for the tests of writes to volumes and claims: it checks uid and version, as the real one does."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web
from tests.unit.kube.pod_server import PodServer, status

VOLUME = "/api/v1/persistentvolumes/v1"
CLAIM = "/api/v1/namespaces/w/persistentvolumeclaims/c1"


@dataclass
class VolumeServer(PodServer):
    """`objects` are volumes and claims, by path. Faults are of the kinds `change` and `look`."""

    objects: dict[str, dict[str, Any]] = field(default_factory=dict)

    def put(self, path: str, uid: str, **spec: Any) -> dict[str, Any]:
        """An object of the next version."""
        self.version += 1
        name = path.rpartition("/")[2]
        metadata = {"name": name, "uid": uid, "resourceVersion": str(self.version)}
        self.objects[path] = {"metadata": metadata, "spec": spec}
        return self.objects[path]

    def alter(self, path: str, patch: dict[str, Any]) -> None:
        """A merge patch by whomever."""
        self.version += 1
        self.objects[path] = merged(self.objects[path], patch)
        self.objects[path]["metadata"]["resourceVersion"] = str(self.version)

    def _change(self, segments: list[str], body: Any) -> web.Response:
        path = "/".join(segments)
        found = self.objects.get(path)
        if found is None:
            return status(404, "NotFound", f'"{segments[-1]}" not found')
        sent, there = body["metadata"], found["metadata"]
        if sent.get("resourceVersion", there["resourceVersion"]) != there["resourceVersion"]:
            return status(409, "Conflict", "the object has been modified")
        if sent.get("uid", there["uid"]) != there["uid"]:
            return status(422, "Invalid", "metadata.uid: field is immutable")
        self.alter(path, body)
        return web.json_response(self.objects[path])

    def _look(self, segments: list[str], _body: Any) -> web.Response:
        found = self.objects.get("/".join(segments))
        return status(404, "NotFound", "not found") if found is None else web.json_response(found)


def merged(value: Any, patch: Any) -> Any:
    """RFC 7396, without removals."""
    if not isinstance(patch, dict) or not isinstance(value, dict):
        return copy.deepcopy(patch)
    return {**value, **{key: merged(value.get(key), part) for key, part in patch.items()}}
