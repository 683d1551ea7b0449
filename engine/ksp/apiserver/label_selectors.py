"""metav1.LabelSelector against labels."""

from collections.abc import Mapping

from ksp.apiserver.strategy import Json


def matches(selector: Json, labels: Mapping[str, str]) -> bool:
    """Whether all terms hold; an empty selector holds for everything."""
    wanted = selector.get("matchLabels") or {}
    return all(labels.get(key) == value for key, value in wanted.items()) and all(
        _holds(term, labels) for term in selector.get("matchExpressions") or ()
    )


def _holds(term: Json, labels: Mapping[str, str]) -> bool:
    key, values = term.get("key", ""), term.get("values") or ()
    match term.get("operator"):
        case "In":
            return labels.get(key) in values
        case "NotIn":
            return key not in labels or labels[key] not in values
        case "Exists":
            return key in labels
        case _:
            return key not in labels
