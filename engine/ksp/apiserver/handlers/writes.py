"""Create, update and patch: one flow for all kinds, which asks the strategies where kube-apiserver asks them."""

from typing import Final

import msgspec

from ksp.apiserver.admission import lifecycle
from ksp.apiserver.codec.decoder import FieldError
from ksp.apiserver.codec.go_times import write_time
from ksp.apiserver.handlers import deletion
from ksp.apiserver.http import bodies
from ksp.apiserver.http.render import one
from ksp.apiserver.patches import patch
from ksp.apiserver.state import Answer, Call
from ksp.apiserver.status import (
    MODIFIED,
    ApiStatusError,
    already_exists,
    bad_request,
    conflict,
    invalid,
    invalid_value,
    not_found,
    not_supported,
    plain_error,
)
from ksp.apiserver.strategy import Context, Json, keep

NAMES_TRIED: Final = 8
"""How often generateName tries another ending."""


def is_dry(call: Call, options: str) -> bool:
    """Whether `dryRun=All` is asked for. Raises 422 for another value; `options` names the kind of the parameters."""
    value = call.target.query.get("dryRun", "")
    if value not in {"", "All"}:
        shown = f'["{value}"]' if call.state.version.json_values else f'[]string{{"{value}"}}'
        raise invalid("meta.k8s.io", options, "", [not_supported("dryRun", shown, 'supported values: "All"')])
    return value == "All"


# --- create ----------------------------------------------------------------------------------------------------------


def create(call: Call) -> Answer:
    context = call.context(dry_run=is_dry(call, "CreateOptions"))
    obj = bodies.read(call, call.resource)
    bodies.decode(call, obj)
    _place(obj, context)
    obj = call.strategy.to_storage(obj)
    return Answer(201, one(create_object(call, obj, context), call))


def _place(obj: Json, context: Context) -> None:
    """The namespace of the path goes into the object; another one there is refused."""
    meta = obj["metadata"]
    if not context.resource.namespaced:
        meta.pop("namespace", None)
        return
    if meta.setdefault("namespace", context.namespace) != context.namespace:
        raise bad_request("the namespace of the provided object does not match the namespace sent on the request")


def create_object(call: Call, obj: Json, context: Context) -> Json:
    """From a decoded object in the version of its storage to a stored one."""
    strategy, resource = call.strategy, context.resource
    meta = obj["metadata"]
    strategy.default(obj, context)
    lifecycle.admit_create(obj, context)
    strategy.admit_create(obj, context)
    if meta.get("resourceVersion"):
        raise plain_error(500, "resourceVersion should not be set on objects to be created")
    generated = not meta.get("name") and bool(meta.get("generateName"))
    _fill_metadata(meta, context)
    strategy.prepare_for_create(obj, context)
    causes = strategy.validate_create(obj, context)
    if causes:
        raise invalid(resource.storage_group, resource.kind, meta.get("name", ""), causes)
    objects = context.objects
    namespace = meta.get("namespace", "")
    for _ in range(NAMES_TRIED if generated else 0):
        if objects.get(resource.storage_id, namespace, meta["name"]) is None:
            break
        meta["name"] = meta["generateName"] + context.dice.suffix()
    there = objects.get(resource.storage_id, namespace, meta["name"])
    if there is not None:
        goes = "deletionTimestamp" in there["metadata"]
        raise already_exists(resource.group, resource.plural, meta["name"], goes=goes)
    return objects.put(resource.storage_id, obj)


_NOT_OF_A_NEW_OBJECT: Final = (
    *("uid", "creationTimestamp", "selfLink", "resourceVersion", "managedFields"),
    *("deletionTimestamp", "deletionGracePeriodSeconds"),
)


def _fill_metadata(meta: Json, context: Context) -> None:
    for name in _NOT_OF_A_NEW_OBJECT:
        meta.pop(name, None)
    meta["uid"] = context.dice.uid()
    meta["creationTimestamp"] = write_time(context.now)
    if not meta.get("name") and meta.get("generateName"):
        meta["name"] = meta["generateName"][:58] + context.dice.suffix()


# --- update ----------------------------------------------------------------------------------------------------------


def update(call: Call) -> Answer:
    """PUT of an object or of one of its subresources that has the same form."""
    context = call.context(dry_run=is_dry(call, "UpdateOptions"))
    new = bodies.read(call, call.resource)
    bodies.decode(call, new)
    _check_name(new, context)
    _place(new, context)
    new = call.strategy.to_storage(new)
    old = _stored(context)
    if old is None:
        return _create_by_update(call, new, context)
    call.strategy.default(new, context)
    return Answer(200, one(update_object(call, new, old, context), call))


def _stored(context: Context) -> Json | None:
    return context.objects.get(context.resource.storage_id, context.namespace, context.name)


def _check_name(new: Json, context: Context) -> None:
    name = new["metadata"].setdefault("name", context.name)
    if name != context.name:
        raise bad_request(f"the name of the object ({name}) does not match the name on the URL ({context.name})")


def _create_by_update(call: Call, new: Json, context: Context) -> Answer:
    """PUT of what is not there: some kinds are created, of others the server says what it compared."""
    resource, meta = context.resource, new["metadata"]
    gone = not_found(resource.group, resource.plural, context.name)
    creates = call.strategy.create_on_update and not context.subresource
    if not creates and not call.strategy.update_checks_uid(context):
        raise gone
    if meta.get("uid"):
        raise uid_conflict(meta["uid"], "", context)
    if not creates:
        raise gone
    if meta.get("resourceVersion"):
        raise conflict(resource.group, resource.plural, context.name, MODIFIED)
    return Answer(201, one(create_object(call, new, context), call))


def uid_conflict(wanted: str, found: str, context: Context) -> ApiStatusError:
    """409 in the words of the storage layer."""
    resource = context.resource
    folder = call_folder(resource.storage_id)
    key = "/".join(part for part in ("/registry", folder, context.namespace, context.name) if part)
    why = (
        f"StorageError: invalid object, Code: 4, Key: {key}, ResourceVersion: 0, AdditionalErrorMsg: "
        f"Precondition failed: UID in precondition: {wanted}, UID in object meta: {found}"
    )
    return conflict(resource.group, resource.plural, context.name, why)


_FOLDERS: Final = {"nodes": "minions", "services": "services/specs", "endpoints": "services/endpoints"}


def call_folder(storage_id: str) -> str:
    """Where etcd keeps a kind, below /registry."""
    return _FOLDERS.get(storage_id, storage_id.partition(".")[0])


def update_object(call: Call, new: Json, old: Json, context: Context, *, patched: bool = False) -> Json:
    """From a decoded new version to a stored one; the stored one itself if nothing changes."""
    strategy, resource = call.strategy, context.resource
    meta, before = new["metadata"], old["metadata"]
    _check_revision(meta, before, context, strategy.unconditional_update or patched)
    if meta.get("uid") and meta["uid"] != before["uid"] and not patched:
        raise uid_conflict(meta["uid"], before["uid"], context)
    strategy.admit_update(new, old, context)
    _keep_metadata(meta, before)
    if context.subresource:
        strategy.prepare_for_status_update(new, old, context)
        causes = strategy.validate_status_update(new, old, context)
    else:
        strategy.prepare_for_update(new, old, context)
        causes = strategy.validate_update(new, old, context)
    if meta["uid"] != before["uid"]:
        wrong = invalid_value("metadata.uid", f'"{meta["uid"]}"', "field is immutable")
        causes = [wrong, wrong, *causes]
    if causes:
        raise invalid(resource.storage_group, resource.kind, context.name, causes)
    meta["resourceVersion"] = before["resourceVersion"]
    if new == old:
        return old
    if deletion.goes_with(new, strategy):
        deletion.remove(old, context)
        return new
    return context.objects.put(resource.storage_id, new)


def _check_revision(meta: Json, before: Json, context: Context, unconditional: bool) -> None:
    resource, sent = context.resource, meta.get("resourceVersion", "")
    if not sent or sent == "0":
        if unconditional:
            return
        cause = invalid_value("metadata.resourceVersion", sent or "0x0", "must be specified for an update")
        raise invalid(resource.group, resource.plural, context.name, [cause])
    if not (sent.isascii() and sent.isdigit()):
        raise plain_error(500, f'strconv.ParseUint: parsing "{sent}": invalid syntax')
    if sent != before["resourceVersion"]:
        raise conflict(resource.group, resource.plural, context.name, MODIFIED)


_KEPT: Final = ("generation", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generateName")


def _keep_metadata(meta: Json, before: Json) -> None:
    """What no client changes."""
    for name in ("selfLink", "managedFields"):
        meta.pop(name, None)
    meta.setdefault("uid", before["uid"])
    for name in _KEPT:
        keep(meta, before, name)
    for name in ("labels", "annotations", "finalizers", "ownerReferences"):
        if name in meta and not meta[name]:
            del meta[name]


# --- patch -----------------------------------------------------------------------------------------------------------

PATCHES: Final = (patch.JSON_PATCH, patch.MERGE_PATCH, patch.STRATEGIC_MERGE_PATCH)


def patch_object(call: Call) -> Answer:
    """PATCH of an object or of one of its subresources that has the same form."""
    content_type = bodies.media_type(call)
    if content_type not in PATCHES:
        raise plain_status_415()
    context = call.context(dry_run=is_dry(call, "PatchOptions"))
    old = _stored(context)
    if old is None:
        raise not_found(context.resource.group, context.resource.plural, context.name)
    new = _patched(call, old, content_type, context)
    _check_patched_name(new, context)
    call.strategy.default(new, context)
    return Answer(200, one(update_object(call, new, old, context, patched=True), call))


def plain_status_415() -> ApiStatusError:
    status = plain_error(415, "415: Unsupported Media Type", "UnsupportedMediaType")
    status.status["details"] = {}
    return status


def _patched(call: Call, old: Json, content_type: str, context: Context) -> Json:
    """The stored object with the change in it, decoded again, in the version of its storage."""
    strategy, resource = call.strategy, call.resource
    shown = msgspec.json.decode(msgspec.json.encode(strategy.from_storage(old)))
    shown["apiVersion"], shown["kind"] = resource.group_version, resource.kind
    changed = patch.apply(content_type, shown, call.body, resource, context)
    try:
        bodies.check_depth(changed)
    except ValueError as error:
        raise bad_request(f"error decoding patch: {error}") from None
    try:
        strategy.decode(changed, context)
    except FieldError as error:
        raise patch.undecodable(changed, error) from error
    changed["metadata"].setdefault("uid", old["metadata"]["uid"])
    stored = strategy.to_storage(changed)
    stored["apiVersion"], stored["kind"] = old["apiVersion"], old["kind"]
    return stored


def _check_patched_name(new: Json, context: Context) -> None:
    meta = new["metadata"]
    if meta.get("name") != context.name:
        raise bad_request(
            f"the name of the object ({meta.get('name', '')}) does not match the name on the URL ({context.name})"
        )
    if context.resource.namespaced and meta.get("namespace") != context.namespace:
        raise bad_request("the namespace of the provided object does not match the namespace sent on the request")
