from __future__ import annotations

import pytest

from ksp.kube.errors import ApiError, ConfigError, KubeError, OutcomeUnknownError, UnreachableError
from ksp.kube.http.retries import wait_before_repeat

REFUSED = UnreachableError("refused")
LOST = OutcomeUnknownError("lost")
SLOW = OutcomeUnknownError("slow", timed_out=True)


def answer(status: int, retry_after: float | None = None) -> ApiError:
    return ApiError(status, "", "", retry_after=retry_after)


@pytest.mark.parametrize(
    ("failure", "get", "post"),
    [
        (REFUSED, True, True),
        (UnreachableError("certificate", temporary=False), False, False),
        (LOST, True, False),
        (SLOW, False, False),
        (answer(429), True, True),
        (answer(503, 1), True, True),
        (answer(503), True, False),
        (answer(500), True, False),
        (answer(500, 1), True, False),
        (answer(502), True, False),
        (answer(504, 1), True, False),
        (answer(501), False, False),
        (answer(404), False, False),
        (answer(409), False, False),
        (answer(410), False, False),
        (answer(302), False, False),
        (ConfigError("x"), False, False),
    ],
)
def test_what_is_repeated(failure: KubeError, get: bool, post: bool) -> None:
    assert (wait_before_repeat("GET", failure, 0, 0.0) is not None) == get
    for method in ("POST", "PATCH", "PUT", "DELETE"):
        assert (wait_before_repeat(method, failure, 0, 0.0) is not None) == post


def test_backoff_doubles_up_to_a_bound_and_half_of_it_is_chance() -> None:
    waits = [wait_before_repeat("GET", REFUSED, repeats, 0.0) for repeats in range(8)]
    assert waits == [0.05, 0.1, 0.2, 0.4, 0.8, 1.0, 1.0, 1.0]
    assert wait_before_repeat("GET", REFUSED, 7, 0.999) == pytest.approx(2.0, abs=0.01)


def test_ten_times_at_most() -> None:
    assert wait_before_repeat("GET", REFUSED, 9, 0.0) is not None
    assert wait_before_repeat("GET", REFUSED, 10, 0.0) is None


def test_retry_after_is_honoured_not_undercut() -> None:
    assert wait_before_repeat("POST", answer(429, 7), 0, 0.0) == 7
    assert wait_before_repeat("POST", answer(429, 10), 0, 0.5) == pytest.approx(10.5)


def test_retry_after_zero_is_no_hot_loop() -> None:
    wait = wait_before_repeat("POST", answer(429, 0), 3, 0.0)
    assert wait is not None
    assert wait >= 0.4


def test_a_very_long_retry_after_is_left_to_the_caller() -> None:
    assert wait_before_repeat("POST", answer(429, 60), 0, 0.0) == 60
    assert wait_before_repeat("POST", answer(429, 61), 0, 0.0) is None
