"""Objects from outside, taken as they are, and the kubeconfig that leads clients to the server."""

import base64
from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from ksp.apiserver.access import MASTERS
from ksp.apiserver.codec.go_times import write_time
from ksp.apiserver.http.bodies import parse_json
from ksp.apiserver.state import State
from ksp.apiserver.status import bad_request, invalid
from ksp.apiserver.strategies import strategy_of
from ksp.apiserver.strategy import Context, DecodeError, User

Json = dict[str, Any]

CLASSES: Final = ("PriorityClass", "StorageClass")
"""Kinds that others take something from: they are loaded first."""


def load(state: State, objects: Iterable[Json]) -> int:
    """Defaults and checks them, keeps their status. Namespaces that are missing are made. Raises ApiStatusError."""
    count = 0
    for obj in sorted(map(_copy, objects), key=lambda each: each.get("kind") not in CLASSES):
        _load(state, obj)
        count += 1
    return count


def _copy(obj: Json) -> Json:
    """As it would come over the wire. Raises 400 for what JSON has no form for, and for what is nested too deep."""
    try:
        found = parse_json(msgspec.json.encode(obj))
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise bad_request(f"not an object of the API: {error}") from None
    if not isinstance(found, dict):
        raise bad_request("not an object of the API")
    return found


def _load(state: State, obj: Json) -> None:
    api_version, kind = str(obj.get("apiVersion", "")), str(obj.get("kind", ""))
    resource = state.catalogue.kinds.get((api_version, kind))
    if resource is None:
        raise bad_request(f'no kind "{kind}" in version "{api_version}" is served')
    if not {"create", "get"} <= resource.verbs:
        raise bad_request(f"a {kind} is not kept")
    meta = obj.get("metadata")
    if not isinstance(meta, dict):
        raise bad_request("metadata is missing, or not an object")
    if not resource.namespaced:
        meta.pop("namespace", None)
    elif not meta.get("namespace"):
        meta["namespace"] = "default"
    strategy = strategy_of(resource)
    context = Context(
        version=state.version,
        resource=resource,
        now=state.clock.now(),
        user=User("system:admin", (MASTERS,)),
        objects=state.store,
        dice=state.dice,
        namespace=str(meta.get("namespace", "")),
        name=str(meta.get("name", "")),
        loading=True,
    )
    try:
        strategy.decode(obj, context)
    except DecodeError as error:
        raise bad_request(str(error)) from error
    if resource.namespaced:
        _ensure_namespace(state, obj["metadata"]["namespace"])
    status = obj.get("status")
    obj = strategy.to_storage(obj)
    stored = state.catalogue.stored[resource.storage_id]
    obj["apiVersion"], obj["kind"] = stored.group_version, stored.kind
    strategy.default(obj, context)
    strategy.complete(obj, context)
    meta = obj["metadata"]
    for name in ("managedFields", "selfLink"):
        meta.pop(name, None)
    meta["uid"] = meta.get("uid") or state.dice.uid()
    meta["creationTimestamp"] = meta.get("creationTimestamp") or write_time(state.clock.now())
    strategy.prepare_for_create(obj, context)
    if isinstance(status, dict) and status:
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
