"""The parameters of lists and watches: read and checked with the words of the real server."""

import base64
import binascii
from dataclasses import dataclass, replace
from typing import Final

import msgspec

from ksp.apiserver.handlers.selectors import Predicate, field_selector, label_selector
from ksp.apiserver.http.routing import INT64, int64_of, is_true
from ksp.apiserver.state import Call
from ksp.apiserver.status import (
    ApiStatusError,
    Cause,
    bad_request,
    failure,
    forbidden_field,
    invalid,
    not_supported,
    plain_error,
)
from ksp.apiserver.strategies import strategy_of


@dataclass(frozen=True, slots=True)
class Options:
    """Of a list or a watch."""

    revision: str = ""
    """As sent: empty, `0` or a number."""
    match: str = ""
    limit: int = 0
    continuation: str = ""
    timeout: int = 0
    bookmarks: bool = False
    initial_events: bool | None = None
    fits: Predicate | None = None
    """Labels, fields and the name of the path together."""


def read(call: Call) -> Options:
    """Raises 400 for what cannot be read, 422 for what does not go together."""
    query, version = call.target.query, call.state.version
    options = Options(
        revision=query.get("resourceVersion", ""),
        match=query.get("resourceVersionMatch", ""),
        limit=max(0, int64_of(query.get("limit", ""))),
        continuation=query.get("continue", ""),
        timeout=int64_of(query.get("timeoutSeconds", "")),
        bookmarks=is_true(query.get("allowWatchBookmarks")),
        initial_events=is_true(query["sendInitialEvents"])
        if version.watch_list and "sendInitialEvents" in query
        else None,
    )
    causes = _watch_causes(options, call) if call.target.watch else _list_causes(options)
    if causes:
        raise invalid("meta.k8s.io", "ListOptions", "", causes)
    return replace(options, fits=_selection(call))


def _selection(call: Call) -> Predicate | None:
    query, resource = call.target.query, call.resource
    tests: list[Predicate] = []
    if query.get("labelSelector"):
        labels = label_selector(query["labelSelector"], call.state.version)
        tests += [labels] if labels is not None else []
    if query.get("fieldSelector"):
        fields = field_selector(query["fieldSelector"], resource)
        tests += [_in_version(fields, call)] if fields is not None else []
    if call.target.name:
        tests.append(lambda obj: bool(obj["metadata"]["name"] == call.target.name))
    if not tests:
        return None
    if len(tests) == 1:
        return tests[0]
    return lambda obj: all(test(obj) for test in tests)


def _in_version(fits: Predicate, call: Call) -> Predicate:
    """Field selectors name the fields of the version of the path."""
    if call.resource.storage_id == call.resource.id:
        return fits
    strategy = strategy_of(call.resource)
    return lambda obj: fits(strategy.from_storage(obj))


MATCHES: Final = '"Exact", "NotOlderThan", ""'


def _list_causes(options: Options) -> list[Cause]:
    causes = _match_causes(options)
    if options.initial_events is not None:
        causes.append(forbidden_field("sendInitialEvents", "sendInitialEvents is forbidden for list"))
    return causes


def _match_causes(options: Options) -> list[Cause]:
    """Of `resourceVersionMatch` beside `resourceVersion` and `continue`."""
    match, field = options.match, "resourceVersionMatch"
    if not match:
        return []
    causes: list[Cause] = []
    if options.continuation:
        causes.append(forbidden_field(field, "resourceVersionMatch is forbidden when continue is provided"))
    if not options.revision:
        causes.append(forbidden_field(field, "resourceVersionMatch is forbidden unless resourceVersion is provided"))
    if match not in {"Exact", "NotOlderThan"}:
        causes.append(not_supported(field, f'"{match}"', f"supported values: {MATCHES}"))
    if match == "Exact" and options.revision == "0":
        causes.append(forbidden_field(field, 'resourceVersionMatch "exact" is forbidden for resourceVersion "0"'))
    return causes


def _watch_causes(options: Options, call: Call) -> list[Cause]:
    field = "resourceVersionMatch"
    if not call.state.version.watch_list:
        if not options.match:
            return []
        causes = [forbidden_field(field, "resourceVersionMatch is forbidden for watch")]
        return causes + _match_causes(replace(options, continuation=""))
    if options.initial_events is None:
        causes = []
        if options.match:
            causes = [
                forbidden_field(
                    field, "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"
                )
            ]
    else:
        causes = []
        if options.match != "NotOlderThan":
            causes.append(
                forbidden_field(field, "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan")
            )
    if options.continuation:
        causes.append(
            forbidden_field("resourceVersionMatch", "resourceVersionMatch is forbidden when continue is provided")
        )
    return causes


# --- resource versions -----------------------------------------------------------------------------------------------


LARGEST: Final = (1 << 64) - 1
"""A resourceVersion has 64 bits."""


def malformed_revision(text: str) -> str | None:
    """What the server says of a resourceVersion that is no number; None if it is one."""
    if not (text.isascii() and text.isdigit()):
        why = "invalid syntax"
    elif len(text.lstrip("0")) > len(str(LARGEST)) or int(text) > LARGEST:
        why = "value out of range"
    else:
        return None
    return f'resourceVersion: Invalid value: "{text}": strconv.ParseUint: parsing "{text}": {why}'


def revision_of(text: str, *, list_of: Call | None = None) -> int:
    """0 for nothing. Raises 500, of a list in newer versions 400."""
    if not text:
        return 0
    wrong = malformed_revision(text)
    if wrong is None:
        return int(text)
    if list_of is not None and list_of.state.version.bad_revision_is_400:
        raise bad_request(f"invalid resource version: {wrong}")
    raise plain_error(500, wrong)


def too_large(wanted: int, current: int, *, retry: bool = True) -> ApiStatusError:
    """504 for a resourceVersion that lies in the future."""
    details: dict[str, object] = {
        "causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}]
    }
    if retry:
        details["retryAfterSeconds"] = 1
    message = f"Timeout: Too large resource version: {wanted}, current: {current}"
    return ApiStatusError(failure(504, "Timeout", message, details), 1 if retry else None)


LIST_TOO_OLD: Final = "The resourceVersion for the provided list is too old."
WATCH_TOO_OLD: Final = "The resourceVersion for the provided watch is too old."
CONTINUE_TOO_OLD: Final = (
    "The provided continue parameter is too old to display a consistent list result. You can start a new list without "
    "the continue parameter, or use the continue token in this response to retrieve the remainder of the results. "
    "Continuing with the provided token results in an inconsistent list - objects that were created, modified, or "
    "deleted between the time the first chunk was returned and now may show up in the list."
)


def expired(message: str) -> ApiStatusError:
    return plain_error(410, message, "Expired")


# --- continue tokens -------------------------------------------------------------------------------------------------

PAGE_FORMAT: Final = "meta.k8s.io/v1"


@dataclass(frozen=True, slots=True)
class Token:
    """Where a paged list goes on: at a revision (-1: whatever is current), from a key."""

    revision: int
    start: str
    """Relative to the collection, with a zero character behind the last key that was sent."""

    def text(self, slash: str) -> str:
        raw = msgspec.json.encode({"v": PAGE_FORMAT, "rv": self.revision, "start": slash + self.start})
        return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def token(text: str, call: Call) -> Token:
    """Raises 400 for what does not decode."""
    try:
        raw = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except (binascii.Error, ValueError):
        raise _bad_token("illegal base64 data at input byte 0") from None
    try:
        found = msgspec.json.decode(raw)
    except (msgspec.DecodeError, RecursionError):
        first = raw[:1].decode("latin-1")
        raise _bad_token(f"invalid character '{first}' looking for beginning of value") from None
    if not isinstance(found, dict) or found.get("v") != PAGE_FORMAT:
        version = found.get("v", "") if isinstance(found, dict) else ""
        quoted = version if call.state.version.cached_history else f'"{version}"'
        raise _bad_token(f"server does not recognize this encoded version {quoted}")
    revision, start = found.get("rv", 0), found.get("start", "")
    if not (isinstance(revision, int) and revision in INT64 and isinstance(start, str)):
        raise _bad_token("json: cannot unmarshal into Go value of type storage.continueToken")
    return Token(revision, start.removeprefix("/"))


def _bad_token(why: str) -> ApiStatusError:
    return bad_request(f"invalid continue token: continue key is not valid: {why}")
