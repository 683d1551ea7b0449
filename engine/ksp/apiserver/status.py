"""Answers that are a `Status`: kube-apiserver's errors (apimachinery `api/errors`), word for word."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Cause:
    """One thing that is wrong with an object; `str` gives it as it stands in the message of a Status."""

    reason: str
    message: str
    field: str

    def __str__(self) -> str:
        return f"{self.field}: {self.message}"

    def json(self) -> Json:
        """As it stands in `details.causes`."""
        out = {"reason": self.reason, "message": self.message, "field": self.field}
        return {key: value for key, value in out.items() if value}


def required(field: str, detail: str = "") -> Cause:
    return Cause("FieldValueRequired", "Required value" + (f": {detail}" if detail else ""), field)


def invalid_value(field: str, value: str, detail: str) -> Cause:
    """`value` as Go prints it: strings in quotes, numbers bare, objects as JSON."""
    return Cause("FieldValueInvalid", f"Invalid value: {value}: {detail}", field)


def not_supported(field: str, value: str, detail: str) -> Cause:
    """`value` as Go prints it, `detail` as `supported values: "a", "b"`."""
    return Cause("FieldValueNotSupported", f"Unsupported value: {value}" + (f": {detail}" if detail else ""), field)


def duplicate(field: str, value: str) -> Cause:
    return Cause("FieldValueDuplicate", f"Duplicate value: {value}", field)


def forbidden_field(field: str, detail: str) -> Cause:
    return Cause("FieldValueForbidden", f"Forbidden: {detail}", field)


def too_long(field: str, detail: str) -> Cause:
    return Cause("FieldValueTooLong", f"Too long: {detail}", field)


class ApiStatusError(Exception):
    """An answer other than success: the Status to send, and `Retry-After` where there is one."""

    def __init__(self, status: Json, retry_after: int | None = None) -> None:
        super().__init__(status["message"])
        self.status = status
        self.code: int = status["code"]
        self.retry_after = retry_after


def failure(code: int, reason: str, message: str, details: Json | None = None) -> Json:
    """A Status; an empty reason or details are left out, as Go does."""
    out: Json = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": message}
    if reason:
        out["reason"] = reason
    if details is not None:
        out["details"] = {key: value for key, value in details.items() if value not in ("", None)}
    out["code"] = code
    return out


def success(code: int = 0, details: Json | None = None) -> Json:
    """`{"status": "Success"}`; without a code where the real server leaves it out."""
    out: Json = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}
    if details is not None:
        out["details"] = details
    if code:
        out["code"] = code
    return out


def _about(name: str, group: str, kind: str, **more: Any) -> Json:
    return {"name": name, "group": group, "kind": kind, **more}


def _qualified(plural: str, group: str) -> str:
    return f"{plural}.{group}" if group else plural


def not_found(group: str, plural: str, name: str) -> ApiStatusError:
    message = f'{_qualified(plural, group)} "{name}" not found'
    return ApiStatusError(failure(404, "NotFound", message, _about(name, group, plural)))


def already_exists(group: str, plural: str, name: str, *, goes: bool = False) -> ApiStatusError:
    """`goes`: the one that is there waits for its end."""
    message = f'{"object is being deleted: " if goes else ""}{_qualified(plural, group)} "{name}" already exists'
    return ApiStatusError(failure(409, "AlreadyExists", message, _about(name, group, plural)))


def conflict(group: str, plural: str, name: str, why: str) -> ApiStatusError:
    """`why` comes after `Operation cannot be fulfilled on pods "x": `."""
    message = f'Operation cannot be fulfilled on {_qualified(plural, group)} "{name}": {why}'
    return ApiStatusError(failure(409, "Conflict", message, _about(name, group, plural)))


MODIFIED: Final = "the object has been modified; please apply your changes to the latest version and try again"


def forbidden(group: str, plural: str, name: str, why: str) -> ApiStatusError:
    """`pods "x" is forbidden: why`; without a name `pods is forbidden: why`."""
    subject = f'{_qualified(plural, group)} "{name}"' if name else _qualified(plural, group)
    return ApiStatusError(failure(403, "Forbidden", f"{subject} is forbidden: {why}", _about(name, group, plural)))


def invalid(group: str, kind: str, name: str, causes: Sequence[Cause]) -> ApiStatusError:
    """422 with all causes; `group` may be empty, `kind` is the kind and not the plural."""
    texts = list(dict.fromkeys(str(cause) for cause in causes))
    text = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
    qualified = f"{kind}.{group}" if group else kind
    details = _about(name, group, kind, causes=[cause.json() for cause in causes])
    return ApiStatusError(failure(422, "Invalid", f'{qualified} "{name}" is invalid: {text}', details))


def bad_request(message: str) -> ApiStatusError:
    return ApiStatusError(failure(400, "BadRequest", message))


def plain_error(code: int, message: str, reason: str = "") -> ApiStatusError:
    """A Status with a message and no details; an error that has no type of its own is 500 without a reason."""
    return ApiStatusError(failure(code, reason, message))


def unauthorized() -> ApiStatusError:
    return ApiStatusError(failure(401, "Unauthorized", "Unauthorized"))


def method_not_allowed() -> ApiStatusError:
    message = "the server does not allow this method on the requested resource"
    return ApiStatusError(failure(405, "MethodNotAllowed", message, {}))


def too_many_requests(message: str, retry_after: int, causes: Sequence[Json] = ()) -> ApiStatusError:
    """429 of an eviction; `retry_after` of 0 sends no header and no `retryAfterSeconds`."""
    details: Json = {"causes": list(causes)} if causes else {}
    if retry_after:
        details["retryAfterSeconds"] = retry_after
    return ApiStatusError(failure(429, "TooManyRequests", message, details), retry_after or None)
