"""Deletes: options, preconditions, grace, finalizers; one object, or all that a list finds."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import msgspec

from ksp.apiserver.admission import lifecycle
from ksp.apiserver.codec.api_types import types_of
from ksp.apiserver.codec.decoder import decode_part
from ksp.apiserver.codec.go_times import write_time
from ksp.apiserver.handlers import list_options, lists
from ksp.apiserver.http import bodies
from ksp.apiserver.http.render import many, one
from ksp.apiserver.http.routing import int64_of
from ksp.apiserver.state import Answer, Call
from ksp.apiserver.status import (
    bad_request,
    conflict,
    invalid,
    not_found,
    not_supported,
    plain_error,
    success,
)
from ksp.apiserver.strategies import strategy_of
from ksp.apiserver.strategy import Context, DeleteOptions, Json, Strategy

POLICIES: Final = ("Foreground", "Background", "Orphan")
ORPHAN, FOREGROUND = "orphan", "foregroundDeletion"
"""Finalizers of the garbage collector."""


def delete_one(call: Call) -> Answer:
    options = read_options(call)
    context = call.context(dry_run=options.dry_run)
    resource = call.resource
    found = context.objects.get(resource.storage_id, context.namespace, context.name)
    if found is None:
        raise not_found(resource.group, resource.plural, context.name)
    last, gone = delete(found, options, context)
    if gone and not call.strategy.answers_deleted(context):
        meta = found["metadata"]
        details = {"name": meta["name"], "group": resource.group, "kind": resource.plural, "uid": meta["uid"]}
        return Answer(200, success(details={key: value for key, value in details.items() if value}))
    return Answer(200, one(last, call))


async def delete_all(call: Call) -> Answer:
    """Of a collection; the answer is the list as it was before."""
    options = read_options(call)
    wanted = list_options.read(call)
    context = call.context(dry_run=options.dry_run)
    page = await lists.select(call, wanted)
    for obj in page.objects:
        name = obj["metadata"]["name"]
        current = context.objects.get(call.resource.storage_id, context.namespace, name)
        if current is not None:
            each = context.of(name=name)
            grace = call.strategy.grace_period(current, options.grace_period, each)
            delete(current, options, each)
            if grace is not None and call.state.version.shared_delete_options:
                options = replace(options, grace_period=grace)
    return Answer(200, many(page.objects, {"resourceVersion": str(page.revision)}, call))


def read_options(call: Call) -> DeleteOptions:
    """From the body, else from the query. Raises 400 (in older versions 500) and 422."""
    found: Json = {}
    if call.body:
        found = _body(call)
    else:
        query = call.target.query
        if "gracePeriodSeconds" in query:
            found["gracePeriodSeconds"] = int64_of(query["gracePeriodSeconds"])
        if query.get("propagationPolicy"):
            found["propagationPolicy"] = query["propagationPolicy"]
        if query.get("dryRun"):
            found["dryRun"] = [query["dryRun"]]
    _check(found)
    preconditions = found.get("preconditions") or {}
    return DeleteOptions(
        grace_period=found.get("gracePeriodSeconds"),
        propagation=_propagation(found),
        uid=preconditions.get("uid"),
        resource_version=preconditions.get("resourceVersion"),
        dry_run=bool(found.get("dryRun")),
    )


def _body(call: Call) -> Json:
    strict = call.state.version.bad_revision_is_400
    try:
        found = bodies.parse(call)
    except ValueError as error:
        text = f"couldn't get version/kind; json parse error: {error}"
        raise bad_request(text) if strict else plain_error(500, text) from None
    if not isinstance(found, dict):
        raise bad_request("expected a DeleteOptions")
    kind = found.get("kind", "DeleteOptions")
    if kind != "DeleteOptions":
        version, scheme = found.get("apiVersion", ""), call.state.version.options_scheme
        text = f'no kind "{kind}" is registered for version "{version}" in scheme "{scheme}"'
        raise bad_request(text) if strict else plain_error(500, text)
    minor = call.state.version.minor
    return decode_part(found, types_of(minor)["meta.v1.DeleteOptions"], minor, "DeleteOptions")


def _check(found: Json) -> None:
    causes = []
    policy = found.get("propagationPolicy")
    if policy is not None and policy not in POLICIES:
        known = ", ".join(f'"{name}"' for name in (*POLICIES, "nil"))
        causes.append(not_supported("propagationPolicy", f'"{policy}"', f"supported values: {known}"))
    dry = found.get("dryRun") or []
    if any(value != "All" for value in dry):
        shown = msgspec.json.encode(dry).decode()
        causes.append(not_supported("dryRun", shown, 'supported values: "All"'))
    if causes:
        raise invalid("meta.k8s.io", "DeleteOptions", "", causes)


def _propagation(found: Json) -> str | None:
    policy: str | None = found.get("propagationPolicy")
    if policy is None and found.get("orphanDependents") is not None:
        return "Orphan" if found["orphanDependents"] else "Background"
    return policy


# --- one object ------------------------------------------------------------------------------------------------------


def delete(found: Json, options: DeleteOptions, context: Context) -> tuple[Json, bool]:
    """Deletes a stored object as a DELETE does: gives its last form and whether it is gone."""
    strategy = strategy_of(context.resource)
    lifecycle.admit_delete(found, context)
    strategy.admit_delete(found, context)
    _check_preconditions(found, options, context)
    meta = found["metadata"]
    grace = strategy.grace_period(found, options.grace_period, context)
    finalizers = _finalizers(meta.get("finalizers", []), options, strategy, context)
    new: Json = {**found, "metadata": {**meta}}
    if "spec" in found and isinstance(found["spec"], dict):
        new["spec"] = {**found["spec"]}
    stays = strategy.prepare_for_delete(new, options, context)
    pending = bool(finalizers) or stays
    if grace is None and not pending:
        return _taken_out(found, found, context), True
    if not _mark(new, found, None if stays else grace or 0, finalizers, context):
        return found, False
    waits = pending or (grace is not None and grace > 0)
    if new == found and waits:
        return found, False
    stored = context.objects.put(context.resource.storage_id, new)
    if waits:
        return stored, False
    return _taken_out(stored, stored, context), True


def _mark(new: Json, found: Json, grace: int | None, finalizers: list[str], context: Context) -> bool:
    """Writes when and how the object goes (without a grace: only when). False: it goes already, not later than that."""
    meta, before = new["metadata"], found["metadata"]
    if finalizers != before.get("finalizers", []):
        meta["finalizers"] = finalizers
        if not finalizers:
            del meta["finalizers"]
    marked: int | None = before.get("deletionGracePeriodSeconds")
    if "deletionTimestamp" in before:
        if marked is None or grace is None or grace >= marked:
            return meta != before or new != found
        goes = datetime.fromisoformat(before["deletionTimestamp"])
        meta["deletionTimestamp"] = write_time(_later(goes, grace - marked))
    else:
        meta["deletionTimestamp"] = write_time(_later(context.now, grace or 0))
        if meta.get("generation"):
            meta["generation"] += 1
    if grace is not None:
        meta["deletionGracePeriodSeconds"] = grace
    return True


_FIRST: Final = datetime(1, 1, 1, tzinfo=UTC)
_LAST: Final = datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)


def _later(time: datetime, seconds: int) -> datetime:
    """The last or first moment for more than the calendar has."""
    try:
        return time + timedelta(seconds=seconds)
    except OverflowError:
        return _LAST if seconds > 0 else _FIRST


def _taken_out(last: Json, found: Json, context: Context) -> Json:
    removed = remove(found, context)
    return removed if removed is not None and context.version.deletion_revision else last


def remove(found: Json, context: Context) -> Json | None:
    """Takes a stored object out."""
    meta: dict[str, Any] = found["metadata"]
    return context.objects.remove(context.resource.storage_id, meta.get("namespace", ""), meta["name"])


def goes_with(new: Json, strategy: Strategy) -> bool:
    """Whether an update takes an object out that waited for its finalizers only."""
    meta = new["metadata"]
    waiting = "deletionTimestamp" in meta and not meta.get("finalizers") and not meta.get("deletionGracePeriodSeconds")
    return waiting and strategy.may_go(new)


def _check_preconditions(found: Json, options: DeleteOptions, context: Context) -> None:
    meta, resource = found["metadata"], context.resource
    if options.uid is not None and options.uid != meta["uid"]:
        raise conflict(
            resource.group,
            resource.kind,
            meta["name"],
            f"the UID in the precondition ({options.uid}) does not match the UID in record ({meta['uid']}). "
            "The object might have been deleted and then recreated",
        )
    if options.resource_version is not None and options.resource_version != meta["resourceVersion"]:
        raise conflict(
            resource.group,
            resource.kind,
            meta["name"],
            f"the ResourceVersion in the precondition ({options.resource_version}) does not match the ResourceVersion "
            f"in record ({meta['resourceVersion']}). The object might have been modified",
        )


def _finalizers(current: list[str], options: DeleteOptions, strategy: Strategy, context: Context) -> list[str]:
    """What the propagation policy leaves of the finalizers, and adds to them."""
    policy = options.propagation
    if policy is None:
        if ORPHAN in current or FOREGROUND in current:
            return current
        policy = strategy.default_propagation
        if policy == "Background":
            return current
    kept = [name for name in current if name not in {ORPHAN, FOREGROUND}]
    match policy:
        case "Orphan":
            return [*kept, ORPHAN]
        case "Foreground":
            return [*kept, FOREGROUND]
        case _:
            return kept
