"""An API server's error answers, whatever their form, as `ApiError`; and what `Retry-After` says.

Kubernetes answers with a Status object; proxies, load balancers and overloaded servers with text, HTML or nothing.
Source: k8s.io/apimachinery `metav1.Status`, `StatusDetails.retryAfterSeconds`; RFC 9110 section 10.2.3.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import Any

from ksp.kube.errors import ApiError
from ksp.kube.printable import printable

MESSAGE_LENGTH = 2000
"""Bytes of a message that are kept; the rest is cut off."""


def api_error(status: int, headers: Mapping[str, str], body: bytes, wall: float) -> ApiError:
    """What the answer says. `body` may be the first part of it. `wall` is the time in seconds since 1970."""
    told = _status_object(body)
    details = told.get("details")
    details = details if isinstance(details, dict) else {}
    reason = told.get("reason")
    message = _one_line(told["message"]) if isinstance(told.get("message"), str) else _text(body)
    if 300 <= status < 400:
        message = f"the server redirects to {_one_line(headers.get('Location', 'nowhere'))}, which is not followed"
    return ApiError(
        status,
        _one_line(reason) if isinstance(reason, str) and reason else _phrase(status),
        message or "the server gives no explanation",
        details,
        _retry_after(headers.get("Retry-After"), details.get("retryAfterSeconds"), wall),
    )


def _status_object(body: bytes) -> dict[str, Any]:
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _text(body: bytes) -> str:
    """A body that is no Status, as far as it is text."""
    return _one_line(body[: 4 * MESSAGE_LENGTH].decode("utf-8", "replace"))


def _one_line(text: str) -> str:
    return printable(" ".join(text.split()), MESSAGE_LENGTH)


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return "Error"


def _retry_after(header: str | None, seconds: Any, wall: float) -> float | None:
    """Seconds to wait: of the header (a number or a date), else of the Status object; None where neither says it."""
    if header is not None:
        text = header.strip()
        if text.isascii() and text.isdigit():
            return float(text[:9])
        try:
            return max(0.0, parsedate_to_datetime(text).timestamp() - wall)
        except (ValueError, TypeError, OverflowError):
            pass
    if isinstance(seconds, int | float) and not isinstance(seconds, bool) and 0 < seconds < 1e9:
        return float(seconds)
    return None
