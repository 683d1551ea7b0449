"""Settings of leader election, durations in them, and what they must be."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.policy.configuration.configurations import errors, read

from ksp.policy.configuration import LeaderElection, election_problems
from ksp.policy.durations import DurationError, seconds_of, shown_seconds


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (LeaderElection(lease_duration=0, renew_deadline=0, retry_period=0), [
            "leaderElection.leaseDuration: Invalid value: 0s: must be greater than zero",
            "leaderElection.renewDeadline: Invalid value: 0s: must be greater than zero",
            "leaderElection.retryPeriod: Invalid value: 0s: must be greater than zero",
        ]),
        (LeaderElection(lease_duration=5),
         ["leaderElection.leaseDuration: Invalid value: 10s: LeaseDuration must be greater than RenewDeadline"]),
        (LeaderElection(lease_duration=10),
         ["leaderElection.leaseDuration: Invalid value: 10s: leaseDuration must be greater than renewDeadline"]),
        (LeaderElection(retry_period=11),
         ["leaderElection.renewDeadline: Invalid value: 11s: RenewDeadline must be greater than RetryPeriod"]),
        (LeaderElection(retry_period=9),
         [(
             "leaderElection.renewDeadline: Invalid value: 10s: "
             "renewDeadline must be greater than retryPeriod*JitterFactor"
         )]),
        (LeaderElection(resource_lock="", resource_name="", resource_namespace=""), [
            "leaderElection.resourceLock: Required value: resourceLock is required",
            "leaderElection.resourceNamespace: Required value: resourceNamespace is required",
            "leaderElection.resourceName: Required value: resourceName is required",
        ]),
    ],
)  # fmt: skip
def test_what_settings_must_be(wrong: LeaderElection, said: list[str]) -> None:
    assert [str(problem) for problem in election_problems(wrong)] == said
    assert list(election_problems(replace(wrong, elect=False))) == []


@pytest.mark.parametrize(
    ("version", "lock", "said"),
    [
        ("v1", "configmaps", 'Invalid value: "configmaps": resourceLock value must be "leases"'),
        (
            "v1beta1", "files",
            'Invalid value: "files": must be one of leases, endpoints, configmaps, endpointsleases, configmapsleases',
        ),
    ],
)  # fmt: skip
def test_locks(version: str, lock: str, said: str) -> None:
    assert errors(lambda: read(f"leaderElection: {{resourceLock: {lock}}}", version)) == [
        f"3: leaderElection.resourceLock: {said}"
    ]


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("0", 0), ("15s", 15), ("1m30s", 90), ("1.5h", 5400), ("500ms", 0.5), ("-2s", -2), ("+1us", 1e-6),
        ("1µs", 1e-6), ("100ns", 1e-7), (".5s", 0.5), ("1h1m1.001s", 3661.001),
    ],
)  # fmt: skip
def test_durations_are_gos(text: str, seconds: float) -> None:
    assert seconds_of(text) == seconds


@pytest.mark.parametrize("text", ["", "-", "5", "s", ".s", "1x", "1s5", "1 s", "9" * 30 + "h", "1s\n"])
def test_what_is_no_duration(text: str) -> None:
    with pytest.raises(DurationError, match=r"time: (invalid|missing unit in) duration"):
        seconds_of(text)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0s"), (15, "15s"), (90, "1m30s"), (3600, "1h0m0s"), (0.5, "500ms"), (1e-6, "1µs"), (-1.5, "-1.5s")],
)
def test_durations_are_written_as_go_does(seconds: float, text: str) -> None:
    assert shown_seconds(seconds) == text


@given(st.integers(-(10**13), 10**13).map(lambda microseconds: microseconds / 10**6))
def test_a_duration_that_is_written_is_read_again(seconds: float) -> None:
    assert seconds_of(shown_seconds(seconds)) == pytest.approx(seconds, abs=1e-9)
