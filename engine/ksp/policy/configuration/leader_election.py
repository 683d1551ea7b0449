"""How several schedulers agree on the one that schedules: the settings, their defaults and what they must be.

Flags and a KubeSchedulerConfiguration say the same things in the same words.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from ksp.policy.durations import shown_seconds
from ksp.policy.field_errors import Problem, Steps, required

LEASES: Final = "leases"
# Locks of kube-scheduler 1.19. Here a Lease is the lock whichever of them is named.
OTHER_LOCKS: Final = ("endpoints", "configmaps", "endpointsleases", "configmapsleases")
JITTER: Final = 1.2  # client-go waits up to so many retry periods between two tries


@dataclass(frozen=True, slots=True)
class LeaderElection:
    """A Lease that one of several schedulers holds. Times are in seconds.

    Who does not hold it may take it when it has not been renewed for `lease_duration`; who holds it and cannot renew it
    for `renew_deadline` gives up; both try each `retry_period`. The Lease is `resource_namespace`/`resource_name`."""

    elect: bool = True
    lease_duration: float = 15.0
    renew_deadline: float = 10.0
    retry_period: float = 2.0
    resource_lock: str = LEASES
    resource_name: str = "kube-scheduler"
    resource_namespace: str = "kube-system"


def election_problems(election: LeaderElection, at: Steps = ("leaderElection",)) -> Iterator[Problem]:
    """What is wrong with the settings: the checks of k8s.io/component-base, then those of client-go's LeaderElector.
    Nothing is if nobody is elected."""
    if not election.elect:
        return
    lease, renew, retry = election.lease_duration, election.renew_deadline, election.retry_period
    times = {"leaseDuration": lease, "renewDeadline": renew, "retryPeriod": retry}
    for name, value in times.items():
        if value <= 0:
            yield _invalid(at, name, value, "must be greater than zero")
    if lease < renew:
        yield _invalid(at, "leaseDuration", renew, "LeaseDuration must be greater than RenewDeadline")
    elif lease == renew > 0:
        yield _invalid(at, "leaseDuration", lease, "leaseDuration must be greater than renewDeadline")
    if renew < retry:
        yield _invalid(at, "renewDeadline", retry, "RenewDeadline must be greater than RetryPeriod")
    elif 0 < renew <= JITTER * retry:
        yield _invalid(at, "renewDeadline", renew, "renewDeadline must be greater than retryPeriod*JitterFactor")
    texts = {
        "resourceLock": election.resource_lock,
        "resourceNamespace": election.resource_namespace,
        "resourceName": election.resource_name,
    }
    for name, text in texts.items():
        if not text:
            yield required((*at, name), f"{name} is required")


def _invalid(at: Steps, name: str, seconds: float, detail: str) -> Problem:
    return Problem((*at, name), f"Invalid value: {shown_seconds(seconds)}: {detail}")
