"""Objects from outside, taken as they are, and the kubeconfig that leads clients to the server."""

import base64
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from ksp.apiserver.access import MASTERS
from ksp.apiserver.state import State
from ksp.apiserver.status import bad_request, invalid
from ksp.apiserver.strategies import strategy_of
from ksp.apiserver.strategy import Context, DecodeError, User

Json = dict[str, Any]


def load(state: State, objects: Iterable[Json]) -> int:
    """Defaults and checks them, keeps their status. Namespaces that are missing are made. Raises ApiStatusError."""
    count = 0
    for obj in objects:
        _load(state, msgspec.json.decode(msgspec.json.encode(obj)))
        count += 1
    return count


def _load(state: State, obj: Json) -> None:
    api_version, kind = str(obj.get("apiVersion", "")), str(obj.get("kind", ""))
    resource = state.catalogue.kinds.get((api_version, kind))
    if resource is None:
        raise bad_request(f'no kind "{kind}" in version "{api_version}" is served')
    meta = obj.setdefault("metadata", {})
    if resource.namespaced:
        meta.setdefault("namespace", "default")
        _ensure_namespace(state, meta["namespace"])
    strategy = strategy_of(resource)
    context = Context(
        version=state.version,
        resource=resource,
        now=state.clock.now(),
        user=User("system:admin", (MASTERS,)),
        objects=state.store,
        dice=state.dice,
        namespace=meta.get("namespace", ""),
        name=str(meta.get("name", "")),
        loading=True,
    )
    try:
        strategy.decode(obj, context)
    except DecodeError as error:
        raise bad_request(str(error)) from error
    status = obj.get("status")
    obj = strategy.to_storage(obj)
    stored = state.catalogue.stored[resource.storage_id]
    obj["apiVersion"], obj["kind"] = stored.group_version, stored.kind
    strategy.default(obj, context)
    meta = obj["metadata"]
    for name in ("managedFields", "selfLink"):
        meta.pop(name, None)
    meta["uid"] = meta.get("uid") or state.dice.uid()
    meta["creationTimestamp"] = meta.get("creationTimestamp") or state.clock.now().strftime("%Y-%m-%dT%H:%M:%SZ")
    strategy.prepare_for_create(obj, context)
    if status:
        obj["status"] = {**(obj.get("status") or {}), **status}
    causes = strategy.validate_create(obj, context)
    if causes:
        raise invalid(resource.group, resource.kind, str(meta.get("name", "")), causes)
    state.store.put(resource.storage_id, obj)


def _ensure_namespace(state: State, name: str) -> None:
    if state.store.get("namespaces", "", name) is None:
        _load(state, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})


def kubeconfig(url: str, authority: bytes | None, tokens: Mapping[str, str], current: str) -> Json:
    """What `kubectl --kubeconfig` reads. `tokens` are those of the users by name; without any nobody needs one."""
    cluster: Json = {"server": url}
    if authority is not None:
        cluster["certificate-authority-data"] = base64.b64encode(authority).decode()
    users: list[tuple[str, Json]] = [(name, {"token": token}) for name, token in tokens.items()] or [("ksp", {})]
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "ksp", "cluster": cluster}],
        "users": [{"name": name, "user": user} for name, user in users],
        "contexts": [{"name": name, "context": {"cluster": "ksp", "user": name}} for name, _ in users],
        "current-context": current or users[0][0],
    }
