"""What the scheduler is told when it starts."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from ksp.policy.assemble import Policy, Settings
from ksp.policy.unread import UnreadFields
from ksp.runtime.serving_options import ServingOptions

if TYPE_CHECKING:
    from ksp.policy.configuration.leader_election import LeaderElection
    from ksp.runtime.reload.source import PolicySource

UNLIMITED_BINDS: Final = 100
"""Bindings at a time where requests are not limited."""
STOP_SECONDS: Final = 10.0
FLUSH_SECONDS: Final = 3.0


@dataclass(frozen=True, slots=True)
class Options:
    """The flags of `ksp run`, and what a file of `--config` says.

    `policy` is what runs first; None where only the cluster knows it (a ConfigMap): then `source` is asked when the
    scheduler has connected. `source` is also where the policy is read from again, None if it cannot change. `settings`
    are what does not change with it. A new policy that denies more than `max_denied_ratio` of what the one before it
    admitted goes back; None is never.

    `qps` and `burst` limit requests to the API server, for all that is written but events; `qps` 0 is no limit.
    `serving` is how health and metrics are served over TLS; `address` and `port` do so without it: None is none, 0 any
    that is free. `effective_configuration` is what `/configz` shows. Without `leader_election`, or where it does not
    elect, the scheduler decides at once; `identity` names it in the lease, None for one that nobody else has.

    `watch_inactivity` is how many seconds a watch may be silent. `seed` is of the dice that choose among equal nodes,
    None for one that nobody knows. Without `equivalence_classes` nothing is remembered of a decision for the next.
    `assumed_ttl` are the seconds after which a pod that was bound, and that no watch shows, counts as not bound; None
    is never. Pods that found no node wait for `initial_backoff` seconds at first, and for `max_backoff` at most. Open
    bindings and evictions have `stop_seconds` when the scheduler is stopped, and events `flush_seconds` after that.
    """

    policy: Policy | None
    kubeconfig: str | None = None
    master: str | None = None
    qps: float = 50.0
    burst: int = 100
    unread_fields: UnreadFields = UnreadFields.REFUSE
    address: str = "127.0.0.1"
    port: int | None = None
    serving: ServingOptions = field(default_factory=ServingOptions)
    effective_configuration: str = ""
    leader_election: LeaderElection | None = None
    identity: str | None = None
    source: PolicySource | None = None
    settings: Settings = field(default_factory=Settings)
    max_denied_ratio: float | None = None
    watch_inactivity: float = 60.0
    seed: int | None = None
    equivalence_classes: bool = True
    assumed_ttl: float | None = None
    initial_backoff: float = 1.0
    max_backoff: float = 10.0
    stop_seconds: float = STOP_SECONDS
    flush_seconds: float = FLUSH_SECONDS

    @property
    def binds(self) -> int:
        """How many bindings may be on their way at a time."""
        return self.burst if self.qps > 0 else UNLIMITED_BINDS
