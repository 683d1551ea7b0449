"""The sentence that says why no node fits, exactly as kube-scheduler 1.19 writes it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping


def fit_error(nodes: int, reasons: Iterable[str] | Mapping[str, int]) -> str:
    """`0/5 nodes are available: 2 Insufficient cpu, 3 Too many pods.`

    `reasons` has every reason of every node, or how often each was given; items are sorted as texts, their counts
    included ("10 x" before "2 y").
    """
    counted = sorted(f"{count} {reason}" for reason, count in Counter(reasons).items())
    return f"0/{nodes} nodes are available: {', '.join(counted)}."
