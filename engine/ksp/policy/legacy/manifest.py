"""A ConfigMap's manifest in the place of a Policy: kube-scheduler finds the Policy in its key `policy.cfg`."""

from __future__ import annotations

from typing import Any

from ksp.policy.legacy.mistakes import LegacyPolicyError, mistake
from ksp.policy.legacy.reading import read_value
from ksp.policy.texts import LEGACY_KEY


def policy_in(text: str, name: str) -> tuple[Any, str]:
    """The value in a text, and its name: that of the Policy in a ConfigMap names the key too. Raises
    LegacyPolicyError."""
    value = read_value(text, name)
    if not isinstance(value, dict) or value.get("kind") != "ConfigMap":
        return value, name
    data = value.get("data")
    inner = data.get(LEGACY_KEY) if isinstance(data, dict) else None
    if not isinstance(inner, str):
        said = f'missing policy config map value at key "{LEGACY_KEY}"'
        raise LegacyPolicyError(name, [mistake(said, ("data", LEGACY_KEY))])
    within = f"{name}[{LEGACY_KEY}]"
    return read_value(inner, within), within
