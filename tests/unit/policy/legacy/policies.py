"""Policies to try things with."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from ksp.policy.legacy import Configured, LegacyPolicyError, read_and_configure

Json = dict[str, Any]


def policy(**fields: Any) -> Json:
    return {"kind": "Policy", "apiVersion": "v1", **fields}


def predicate(name: str, **argument: Any) -> Json:
    return {"name": name, "argument": argument} if argument else {"name": name}


def priority(name: str, weight: Any = 1, **argument: Any) -> Json:
    return {"name": name, "weight": weight, **({"argument": argument} if argument else {})}


def present(*labels: str) -> Json:
    return {"labels": list(labels), "presence": True}


def absent(*labels: str) -> Json:
    return {"labels": list(labels), "presence": False}


def ratio(*points: tuple[int, int], resources: Sequence[tuple[str, int]] = ()) -> Json:
    made: Json = {"shape": [{"utilization": utilization, "score": score} for utilization, score in points]}
    return made | ({"resources": [{"name": name, "weight": weight} for name, weight in resources]} if resources else {})


def configured(**fields: Any) -> Configured:
    return read_and_configure(json.dumps(policy(**fields)), "policy.json")


def errors(text: str | Json) -> list[tuple[str, str]]:
    """The message and the pointer of each error."""
    try:
        read_and_configure(text if isinstance(text, str) else json.dumps(text), "policy.json")
    except LegacyPolicyError as error:
        return [(each.message, each.pointer) for each in error.errors]
    return []
