"""matchLabelKeys and mismatchLabelKeys: at create, newer servers write what they mean into the selectors beside them.

So a scheduler that reads the selectors alone decides right.
"""

from collections.abc import Iterator

from ksp.apiserver.strategy import Json


def merge_label_keys(pod: Json) -> None:
    """For the terms of (anti-)affinity and the spread constraints of a pod that is created."""
    labels = pod["metadata"].get("labels") or {}
    for term in _terms(pod["spec"]):
        selector = term.get("labelSelector")
        for name, operator in (("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn")):
            added = [_requirement(key, operator, labels[key]) for key in term.get(name) or () if key in labels]
            if selector is not None and added:
                selector["matchExpressions"] = [*(selector.get("matchExpressions") or ()), *added]


def _requirement(key: str, operator: str, value: str) -> Json:
    return {"key": key, "operator": operator, "values": [value]}


def _terms(spec: Json) -> Iterator[Json]:
    affinity = spec.get("affinity") or {}
    for kind in ("podAffinity", "podAntiAffinity"):
        terms = affinity.get(kind) or {}
        yield from terms.get("requiredDuringSchedulingIgnoredDuringExecution") or ()
        for weighted in terms.get("preferredDuringSchedulingIgnoredDuringExecution") or ():
            yield weighted["podAffinityTerm"]
    yield from spec.get("topologySpreadConstraints") or ()
