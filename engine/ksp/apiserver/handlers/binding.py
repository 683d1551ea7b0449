"""POST pods/NAME/binding and POST bindings: the node of a pod is set, once."""

from typing import Final

from ksp.apiserver.codec.api_types import types_of
from ksp.apiserver.codec.decoder import decode_part
from ksp.apiserver.status import ApiStatusError, bad_request, conflict, not_found, plain_error, success
from ksp.apiserver.strategies.pod_conditions import set_condition
from ksp.apiserver.strategies.pods import copy_topology
from ksp.apiserver.strategy import Context, Json

_KINDS: Final = ("", "Node")


def bind(name: str, body: Json, context: Context) -> tuple[int, Json]:
    """`name` is that of the path, empty for `POST bindings`. Raises ApiStatusError."""
    minor = context.version.minor
    body = decode_part(body, types_of(minor)["core.v1.Binding"], minor, "Binding")
    meta = body["metadata"]
    _check_names(name, meta, context)
    name = name or meta.get("name", "")
    target = body["target"]
    _check_target(target)
    pod = context.objects.get("pods", context.namespace, name)
    if pod is None:
        raise not_found("", "pods", name)
    if context.version.binding_preconditions:
        _check_preconditions(pod, meta, context)
    _check_pod(pod, context)
    bound = _bound(pod, meta, target["name"], context)
    if context.subresource and target.get("kind") == "Node" and context.version.copies_topology:
        # The admission that does it looks at pods/binding alone.
        copy_topology(bound["metadata"], target["name"], context)
    context.objects.put("pods", bound)
    return 201, success(201)


def _check_names(name: str, meta: Json, context: Context) -> None:
    if name and meta.get("name", name) != name:
        raise bad_request("name in URL does not match name in Binding object")
    namespace = meta.get("namespace", context.namespace)
    if context.version.binding_preconditions and namespace != context.namespace:
        raise bad_request("the namespace of the provided object does not match the namespace sent on the request")


def _check_target(target: Json) -> None:
    """What is wrong with a Binding is a plain error of the server's, 500, not 422."""
    kind = target.get("kind", "")
    if kind not in _KINDS:
        raise plain_error(500, f'target.kind: Unsupported value: "{kind}": supported values: "Node", "<empty>"')
    if not target.get("name"):
        raise plain_error(500, "target.name: Required value")


def _check_preconditions(pod: Json, meta: Json, context: Context) -> None:
    stored = pod["metadata"]
    for field, what in (("uid", "UID"), ("resourceVersion", "ResourceVersion")):
        wanted = meta.get(field)
        if wanted and wanted != stored[field]:
            why = (
                f"StorageError: invalid object, Code: 4, Key: /registry/pods/{context.namespace}/{stored['name']}, "
                f"ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: {what} in precondition: {wanted}, "
                f"{what} in object meta: {stored[field]}"
            )
            raise conflict("", "pods", stored["name"], why)


def _check_pod(pod: Json, context: Context) -> None:
    name, spec = pod["metadata"]["name"], pod["spec"]
    if pod["metadata"].get("deletionTimestamp"):
        raise _conflict(name, f"pod {name} is being deleted, cannot be assigned to a host")
    if spec.get("nodeName"):
        raise _conflict(name, f'pod {name} is already assigned to node "{spec["nodeName"]}"')
    if spec.get("schedulingGates"):
        raise _conflict(name, f"pod {name} has non-empty .spec.schedulingGates")


def _conflict(name: str, why: str) -> ApiStatusError:
    return conflict("", "pods/binding", name, why)


def _bound(pod: Json, binding: Json, node: str, context: Context) -> Json:
    """The pod on its node: with what the Binding's metadata brings along, and the condition PodScheduled."""
    meta, status = {**pod["metadata"]}, {**pod["status"]}
    copied = ("annotations", "labels") if context.version.binding_preconditions else ("annotations",)
    for name in copied:
        if binding.get(name):
            meta[name] = dict(sorted({**(meta.get(name) or {}), **binding[name]}.items()))
    if context.version.binding_clears_nomination:
        status.pop("nominatedNodeName", None)
    set_condition(status, {"type": "PodScheduled", "status": "True"}, context)
    return {**pod, "metadata": meta, "spec": {**pod["spec"], "nodeName": node}, "status": status}
