"""Victims of preemptions whose end no watch has shown yet.

An eviction is asked for in one moment and seen in another. In between a victim counts on its node as before; but the
pod for whose sake it goes must not look for more victims.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable


class Evictions:
    """Which pods are being evicted, and for whom. A pod can be the victim of several. Pods are known by uid."""

    def __init__(self) -> None:
        self._victims: dict[str, set[str]] = {}
        self._preemptors: dict[str, set[str]] = {}
        self._node_of: dict[str, str] = {}

    def begin(self, preemptor: str, node: str, victims: Iterable[str]) -> None:
        """These pods, on that node, are to be deleted for the preemptor's sake, and no others any more: of those on
        another node, who was not deleted yet will not be."""
        self.give_up(preemptor)
        for victim in victims:
            self._victims.setdefault(preemptor, set()).add(victim)
            self._preemptors.setdefault(victim, set()).add(preemptor)
            self._node_of[preemptor] = node

    def shown(self, victim: str) -> None:
        """The watch shows that the pod is being deleted, or is gone."""
        for preemptor in self._preemptors.pop(victim, ()):
            self._victims[preemptor].discard(victim)
            if not self._victims[preemptor]:
                del self._victims[preemptor], self._node_of[preemptor]

    def give_up(self, preemptor: str) -> None:
        """Nothing is evicted for the preemptor any more: that failed, or it needs nothing."""
        self._node_of.pop(preemptor, None)
        for victim in self._victims.pop(preemptor, ()):
            self._preemptors[victim].discard(preemptor)
            if not self._preemptors[victim]:
                del self._preemptors[victim]

    def node_of(self, preemptor: str) -> str | None:
        """Where pods are evicted for that one."""
        return self._node_of.get(preemptor)

    @property
    def victims(self) -> Collection[str]:
        """All of them."""
        return self._preemptors.keys()
