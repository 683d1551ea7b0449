"""What the scheduler is told when it starts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ksp.policy.profile import Profile
from ksp.policy.unread import UnreadFields
from ksp.source.diagnostic import Diagnostic

UNLIMITED_BINDS: Final = 100
"""Bindings at a time where requests are not limited."""
STOP_SECONDS: Final = 10.0
FLUSH_SECONDS: Final = 3.0


@dataclass(frozen=True, slots=True)
class Policy:
    """The rules: `name` is what the user called them by, `sha256` the hash of all files that they were read from.
    `warnings` are what `ksp check` finds in them, errors aside: there are none."""

    name: str
    sha256: str
    profiles: tuple[Profile, ...]
    warnings: tuple[Diagnostic, ...] = ()


@dataclass(frozen=True, slots=True)
class Options:
    """The flags of `ksp run`.

    `qps` and `burst` limit requests to the API server, for all that is written but events; `qps` 0 is no limit. `port`
    is for health and metrics: None is none, 0 any that is free. `watch_inactivity` is how many seconds a watch may be
    silent. `seed` is of the dice that choose among equal nodes, None for one that nobody knows. Without
    `equivalence_classes` nothing is remembered of a decision for the next. `assumed_ttl` are the seconds after which a
    pod that was bound, and that no watch shows, counts as not bound; None is never. Open bindings and evictions have
    `stop_seconds` when the scheduler is stopped, and events `flush_seconds` after that.
    """

    policy: Policy
    kubeconfig: str | None = None
    master: str | None = None
    qps: float = 50.0
    burst: int = 100
    unread_fields: UnreadFields = UnreadFields.REFUSE
    bind_address: str = "127.0.0.1"
    port: int | None = 10251
    watch_inactivity: float = 60.0
    seed: int | None = None
    equivalence_classes: bool = True
    assumed_ttl: float | None = None
    stop_seconds: float = STOP_SECONDS
    flush_seconds: float = FLUSH_SECONDS

    @property
    def binds(self) -> int:
        """How many bindings may be on their way at a time."""
        return self.burst if self.qps > 0 else UNLIMITED_BINDS
