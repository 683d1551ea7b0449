"""metav1.LabelSelector, as JSON, against labels."""

import msgspec

from ksp.apiserver.strategy import Json
from ksp.model.selector import LabelSelector, label_selector_matches


def matches(selector: Json, labels: dict[str, str]) -> bool:
    """Whether all terms hold; an empty selector holds for everything, a malformed one for nothing."""
    return label_selector_matches(msgspec.convert(selector, LabelSelector), labels)
