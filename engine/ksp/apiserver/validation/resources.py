"""Validation of amounts of resources: names, signs, requests against limits."""

import re
from collections.abc import Mapping
from fractions import Fraction
from typing import Final

from ksp.apiserver.codec.quantities import parse
from ksp.apiserver.status import Cause, invalid_value
from ksp.apiserver.strategy import Json
from ksp.apiserver.validation import names
from ksp.apiserver.validation.metadata import quoted
from ksp.apiserver.versions import Version

_STANDARD: Final = re.compile(r"cpu|memory|ephemeral-storage|storage|pods|hugepages-.+|(?:requests|limits)\..+")
_NATIVE: Final = re.compile(r"cpu|memory|ephemeral-storage|hugepages-.+|(?:[^/]*\.)?kubernetes\.io/.*|[^/]*")


def validate_amounts(amounts: Mapping[str, str], field: str) -> list[Cause]:
    """Amounts are not negative, those of extended resources are whole."""
    found: list[Cause] = []
    for name, amount in amounts.items():
        number = parse(amount)[0]
        if number < 0:
            found.append(invalid_value(f"{field}[{name}]", quoted(amount), "must be greater than or equal to 0"))
        if is_extended(name) and number.denominator != 1:
            found.append(invalid_value(f"{field}[{name}]", quoted(amount), "must be an integer"))
    return found


def _validate_name(name: str, field: str, version: Version) -> list[Cause]:
    """Of a container's resource: standard or qualified. Nodes may name theirs as they like."""
    messages = names.qualified_name(name, version)
    if not messages and "/" not in name and not _STANDARD.fullmatch(name):
        messages = ["must be a standard resource type or fully qualified", "must be a standard resource for containers"]
    return [invalid_value(field, quoted(name), message) for message in messages]


def is_extended(name: str) -> bool:
    """Whether a resource is counted in whole units and never overcommitted."""
    return not _NATIVE.fullmatch(name)


def validate_requirements(resources: Json, field: str, version: Version) -> list[Cause]:
    """Of a container: no request is above its limit; extended and huge page resources ask for just their limit."""
    limits: Mapping[str, str] = resources.get("limits") or {}
    requests: Mapping[str, str] = resources.get("requests") or {}
    found: list[Cause] = []
    for name, amount in limits.items():
        found += _validate_name(name, f"{field}.limits[{name}]", version)
        found += validate_amounts({name: amount}, f"{field}.limits")
    for name, amount in requests.items():
        found += _validate_name(name, f"{field}.requests[{name}]", version)
        found += validate_amounts({name: amount}, f"{field}.requests")
        if name in limits:
            found += _against_limit(name, amount, limits[name], f"{field}.requests", version)
        elif is_extended(name) or name.startswith("hugepages-"):
            message = "Limit must be set for non overcommitable resources"
            found.append(Cause("FieldValueRequired", f"Required value: {message}", f"{field}.limits"))
    return found


def _against_limit(name: str, request: str, limit: str, field: str, version: Version) -> list[Cause]:
    of = f" of {limit}" if version.names_limits else ""
    asked, most = _numbers(request, limit)
    if (is_extended(name) or name.startswith("hugepages-")) and asked != most:
        return [invalid_value(field, quoted(request), f"must be equal to {name} limit{of}")]
    if asked > most:
        return [invalid_value(field, quoted(request), f"must be less than or equal to {name} limit{of}")]
    return []


def _numbers(request: str, limit: str) -> tuple[Fraction, Fraction]:
    return parse(request)[0], parse(limit)[0]
