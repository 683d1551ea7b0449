"""Defaults as data."""

from collections.abc import Mapping
from copy import deepcopy
from typing import Any

from ksp.apiserver.strategy import Json


def fill(obj: Json, defaults: Mapping[str, Any]) -> None:
    """Gives `obj` a copy of each default that it has no value for."""
    for name, value in defaults.items():
        if obj.get(name) is None:
            obj[name] = deepcopy(value)
