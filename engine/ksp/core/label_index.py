"""Visible pods by a label that they have, within their namespace: where views over selected pods start from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ksp.model.info import PodInfo

_NO_PODS: Final[Mapping[str, PodInfo]] = {}

Pair = tuple[str, str]


class LabelIndex:
    """Pods by namespace, label and value, each list by uid in the order of arrival.

    Most values that are unique to a pod (its name, its index) stand for that pod alone, and are kept without a dict of
    their own: 50,000 pods with five labels, one of them unique, take 12 MB.
    """

    def __init__(self) -> None:
        self._pods: dict[str, dict[Pair, PodInfo | dict[str, PodInfo]]] = {}

    def pods(self, namespace: str, key: str, value: str) -> Mapping[str, PodInfo]:
        """Those that have the label with this value, by uid: not to be kept across changes."""
        there = self._pods.get(namespace, {}).get((key, value))
        if there is None:
            return _NO_PODS
        return {there.uid: there} if isinstance(there, PodInfo) else there

    def put(self, pod: PodInfo, old: PodInfo | None) -> None:
        """Enter a pod; `old` is the one of the same uid whose place it takes."""
        if old is not None and old.labels != pod.labels:
            self.remove(old)
        if not pod.labels:
            return
        pairs = self._pods.setdefault(pod.namespace, {})
        for pair in pod.labels.items():
            there = pairs.get(pair)
            if there is None:
                pairs[pair] = pod
            elif isinstance(there, dict):
                there[pod.uid] = pod
            elif there.uid == pod.uid:
                pairs[pair] = pod
            else:
                pairs[pair] = {there.uid: there, pod.uid: pod}

    def remove(self, pod: PodInfo) -> None:
        """Take a pod out that was entered with these labels."""
        if not pod.labels:
            return
        pairs = self._pods[pod.namespace]
        for pair in pod.labels.items():
            there = pairs[pair]
            if isinstance(there, dict) and len(there) > 1:
                del there[pod.uid]
            else:
                del pairs[pair]
        if not pairs:
            del self._pods[pod.namespace]
