"""How long a write is waited for."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Patience:
    """Seconds until a request counts as lost: a binding, the read that settles one, the patch of a pod's status, a
    deletion.

    A server gives up on a request after 60 s by default; long before that the outcome can be read.
    """

    bind: float = 30.0
    read: float = 10.0
    patch: float = 10.0
    delete: float = 10.0
