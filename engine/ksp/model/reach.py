"""Which volumes a node reaches: by the node affinity of volumes, against the node's labels."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from heapq import merge

from ksp.model.selector import node_selector_term_matches_labels
from ksp.model.storage import PersistentVolume

Label = tuple[str, str]


def is_reached(volume: PersistentVolume, labels: dict[str, str]) -> bool:
    """Whether a node with these labels can use the volume."""
    affinity = volume.spec.node_affinity
    if affinity is None or affinity.required is None:
        return True
    return any(node_selector_term_matches_labels(term, labels) for term in affinity.required.node_selector_terms)


class RankedVolumes:
    """Volumes, best first, of which each node takes the first that it reaches.

    Most volumes of a large cluster can be reached from one node or one zone only, and say so by an `In`. Those are kept
    by label, so that a node looks at its own, and not at all of them.
    """

    def __init__(self, volumes: Sequence[PersistentVolume]) -> None:
        self.volumes = volumes
        self._anywhere: list[int] = []
        self._by_label: dict[Label, list[int]] = {}
        for rank, volume in enumerate(volumes):
            labels = _labels_of(volume)
            if labels is None:
                self._anywhere.append(rank)
            for label in labels or ():
                self._by_label.setdefault(label, []).append(rank)
        self._keys = sorted({key for key, _ in self._by_label})

    def best(self, labels: dict[str, str], taken: Container[str]) -> PersistentVolume | None:
        """The first that a node with these labels reaches, but for those whose names are taken."""
        for rank in self._ranks(labels):
            volume = self.volumes[rank]
            if volume.metadata.name not in taken and is_reached(volume, labels):
                return volume
        return None

    def _ranks(self, labels: Mapping[str, str]) -> Iterable[int]:
        """Of all volumes that may be reached, in order; some twice."""
        own = (self._by_label.get((key, labels[key]), ()) for key in self._keys if key in labels)
        ranks = [each for each in (self._anywhere, *own) if each]
        return ranks[0] if len(ranks) == 1 else merge(*ranks)


def _labels_of(volume: PersistentVolume) -> set[Label] | None:
    """Labels of which a node has to have one to reach the volume; None if that cannot be said."""
    affinity = volume.spec.node_affinity
    if affinity is None or affinity.required is None:
        return None
    labels: set[Label] = set()
    for term in affinity.required.node_selector_terms:
        lists = [each for each in term.match_expressions if each.operator == "In"]
        if not lists:
            return None
        labels.update((lists[0].key, value) for value in lists[0].values)
    return labels
