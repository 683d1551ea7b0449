"""PATCH: from the bytes of a patch and the stored object to the new one, in the server's words where it is refused."""

import json
from typing import Any, Final

from ksp.apiserver.codec.api_types import find, types_of
from ksp.apiserver.codec.decoder import FieldError, json_kind
from ksp.apiserver.http.bodies import parse_json
from ksp.apiserver.patches import json_patch, merge_patch, strategic_merge
from ksp.apiserver.resources import Resource
from ksp.apiserver.status import ApiStatusError, bad_request, failure, invalid, invalid_value, plain_error
from ksp.apiserver.strategy import Context, Json

JSON_PATCH: Final = "application/json-patch+json"
MERGE_PATCH: Final = "application/merge-patch+json"
STRATEGIC_MERGE_PATCH: Final = "application/strategic-merge-patch+json"

_MOST_OPERATIONS: Final = 10_000
_GO_STRUCT: Final = (
    'struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }'
)


def apply(content_type: str, original: Json, body: bytes, resource: Resource, context: Context) -> Json:
    """The object after the patch, not decoded yet; `original` stays as it is. Raises ApiStatusError."""
    if content_type == JSON_PATCH:
        return _json_patch(original, body)
    if content_type == MERGE_PATCH:
        return _merge_patch(original, body, context)
    return _strategic(original, body, resource, context)


def undecodable(patched: Json, error: FieldError) -> ApiStatusError:
    """The answer if `patched` cannot be read as an object of its kind: 422 that quotes the whole of it."""
    text = json.dumps(patched, separators=(",", ":"), ensure_ascii=False)
    return invalid("", "", "", [invalid_value("patch", json.dumps(text, ensure_ascii=False), error.within(text))])


def _json_patch(original: Json, body: bytes) -> Json:
    try:
        operations = parse_json(body)
    except ValueError as error:
        raise bad_request(f"error decoding patch: {error}") from error
    if not isinstance(operations, list) or not all(isinstance(each, dict) for each in operations):
        raise bad_request(f"json: cannot unmarshal {json_kind(operations)} into Go value of type jsonpatch.Patch")
    if len(operations) > _MOST_OPERATIONS:
        message = f"The allowed maximum operations in a JSON patch is {_MOST_OPERATIONS}, got {len(operations)}"
        raise plain_error(413, message, "RequestEntityTooLarge")
    try:
        return _object(json_patch.apply(original, operations))
    except json_patch.PatchOperationError as error:
        raise _rejected() from error


def _rejected() -> ApiStatusError:
    message = "the server rejected our request due to an error in our request"
    return ApiStatusError(failure(422, "Invalid", message, {}))


def _merge_patch(original: Json, body: bytes, context: Context) -> Json:
    try:
        patch = parse_json(body)
    except ValueError as error:
        if context.version.bad_revision_is_400:
            raise bad_request(f"error decoding patch: {error}") from error
        raise plain_error(500, "Invalid JSON Patch") from error
    if not isinstance(patch, dict) and context.version.bad_revision_is_400:
        kind = "map[string]interface {}"
        raise bad_request(
            f"error decoding patch: json: cannot unmarshal {json_kind(patch)} into Go value of type {kind}"
        )
    return _object(merge_patch.apply(original, patch))


def _object(patched: Any) -> Json:
    """Raises 422 for what is no object any more."""
    if isinstance(patched, dict):
        return patched
    kind = json_kind(patched)
    why = f"couldn't get version/kind; json parse error: json: cannot unmarshal {kind} into Go value of type "
    text = json.dumps(patched, separators=(",", ":"), ensure_ascii=False)
    raise invalid("", "", "", [invalid_value("patch", json.dumps(text, ensure_ascii=False), why + _GO_STRUCT)])


def _strategic(original: Json, body: bytes, resource: Resource, context: Context) -> Json:
    try:
        patch = parse_json(body)
    except ValueError as error:
        raise bad_request(f"error decoding patch: {error}") from error
    if not isinstance(patch, dict):
        kind = "map[string]interface {}"
        raise bad_request(
            f"error decoding patch: json: cannot unmarshal {json_kind(patch)} into Go value of type {kind}"
        )
    struct = find(resource.group, resource.version, resource.kind, context.version.minor)
    if struct is None:
        return _object(merge_patch.apply(original, patch))
    try:
        return strategic_merge.apply(original, patch, struct, types_of(context.version.minor))
    except strategic_merge.StrategicPatchError as error:
        raise (bad_request(str(error)) if error.bad_format else plain_error(500, str(error))) from error
