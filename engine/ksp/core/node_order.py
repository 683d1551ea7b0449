"""The order in which kube-scheduler lists nodes: zones in turn.

Nodes are grouped by zone; zones stand in the order in which they first had a node. The list takes the first node
of each zone, then the second of each, and so on, passing over zones that have no more:

    a: a1 a2 a3
    b: b1              ->  a1 b1 c1 a2 c2 a3
    c: c1 c2

A node that moves to another zone becomes the last one there. A zone that loses its last node loses its place.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

BETA_ZONE = "failure-domain.beta.kubernetes.io/zone"
BETA_REGION = "failure-domain.beta.kubernetes.io/region"
ZONE = "topology.kubernetes.io/zone"
REGION = "topology.kubernetes.io/region"

ZoneKey = tuple[str, str]


def zone_key(labels: Mapping[str, str]) -> ZoneKey:
    """Region and zone. A beta label wins over the stable one wherever it is present, even if it is empty."""
    region = labels.get(BETA_REGION, labels.get(REGION, ""))
    zone = labels.get(BETA_ZONE, labels.get(ZONE, ""))
    return region, zone


class NodeOrder:
    """The names of the nodes, in order. Adding and removing cost O(1), listing O(nodes)."""

    def __init__(self) -> None:
        # Dicts serve as ordered sets: names in order of arrival.
        self._zones: dict[ZoneKey, dict[str, None]] = {}
        self._zone_of: dict[str, ZoneKey] = {}

    def put(self, name: str, zone: ZoneKey) -> bool:
        """Add a node, or say which zone it is in now; whether the order changed."""
        if self._zone_of.get(name) == zone:
            return False
        if name in self._zone_of:
            self.remove(name)
        self._zones.setdefault(zone, {})[name] = None
        self._zone_of[name] = zone
        return True

    def remove(self, name: str) -> None:
        zone = self._zone_of.pop(name)
        names = self._zones[zone]
        del names[name]
        if not names:
            del self._zones[zone]

    def __iter__(self) -> Iterator[str]:
        turns = [iter(names) for names in self._zones.values()]
        while turns:
            still = []
            for turn in turns:
                name = next(turn, None)
                if name is not None:
                    still.append(turn)
                    yield name
            turns = still
