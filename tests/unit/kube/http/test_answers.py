from __future__ import annotations

import json

import pytest

from ksp.kube.errors import ApiError
from ksp.kube.http.answers import MESSAGE_LENGTH, api_error

NOW = 1_600_000_000.0  # Sun, 13 Sep 2020 12:26:40 GMT


def told(status: int, body: bytes, **headers: str) -> ApiError:
    return api_error(status, {name.replace("_", "-"): value for name, value in headers.items()}, body, NOW)


def test_a_status_object() -> None:
    body = {
        "kind": "Status",
        "message": 'pods "web" not found',
        "reason": "NotFound",
        "details": {"name": "web", "kind": "pods"},
        "code": 404,
    }
    error = told(404, json.dumps(body).encode())
    assert (error.status, error.reason, error.message) == (404, "NotFound", 'pods "web" not found')
    assert error.details == {"name": "web", "kind": "pods"}
    assert str(error) == '404 NotFound: pods "web" not found'


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"Too many requests, please try again later.", "Too many requests, please try again later."),
        (b"<html>\r\n<h1>502 Bad\tGateway</h1>\n</html>", "<html> <h1>502 Bad Gateway</h1> </html>"),
        (b"", "the server gives no explanation"),
        (b"\n\n", "the server gives no explanation"),
        (b"null", "null"),
        (b"[1]", "[1]"),
        (b'{"message": 7}', '{"message": 7}'),
        (b"[" * 100_000, "[" * 100),
        (b'{"kind": "Status", "mess', '{"kind": "Status", "mess'),
    ],
)
def test_other_bodies_still_give_a_message(body: bytes, message: str) -> None:
    error = told(502, body)
    assert error.message.startswith(message)
    assert error.reason == "Bad Gateway"
    assert error.details == {}


def test_garbage_gives_a_printable_message() -> None:
    error = told(500, bytes(range(256)) * 100)
    assert str(error).isprintable()
    assert len(error.message.encode()) <= MESSAGE_LENGTH


def test_escapes_of_a_status_message_do_not_reach_the_terminal() -> None:
    error = told(403, b'{"message": "a\\u001b[31mb\\nc", "reason": "For\\nbidden", "details": null}')
    assert error.message == "a [31mb c"
    assert error.reason == "For bidden"


def test_an_unknown_status() -> None:
    assert told(599, b"x").reason == "Error"


def test_a_redirect_names_its_target() -> None:
    error = told(302, b"", Location="https://evil.example/")
    assert "https://evil.example/" in error.message
    assert "not followed" in error.message


@pytest.mark.parametrize(
    ("header", "body", "seconds"),
    [
        ("7", b"", 7.0),
        (" 7 ", b"", 7.0),
        ("0", b"", 0.0),
        ("Sun, 13 Sep 2020 12:26:50 GMT", b"", 10.0),
        ("Sun, 13 Sep 2020 12:26:30 GMT", b"", 0.0),
        ("99999999999999999999", b"", 999999999.0),
        ("soon", b"", None),
        ("-5", b"", None),
        ("soon", b'{"details": {"retryAfterSeconds": 3}}', 3.0),
        (None, b'{"details": {"retryAfterSeconds": 3}}', 3.0),
        ("2", b'{"details": {"retryAfterSeconds": 3}}', 2.0),
        (None, b'{"details": {"retryAfterSeconds": "3"}}', None),
        (None, b'{"details": {"retryAfterSeconds": true}}', None),
        (None, b'{"details": {"retryAfterSeconds": 0}}', None),
        (None, b'{"details": {"retryAfterSeconds": NaN}}', None),
        (None, b'{"details": {"retryAfterSeconds": 1e999}}', None),
        (None, b"", None),
    ],
)
def test_retry_after(header: str | None, body: bytes, seconds: float | None) -> None:
    headers = {} if header is None else {"Retry_After": header}
    assert told(429, body, **headers).retry_after == seconds
