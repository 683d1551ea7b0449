"""Names of labels and of extended resources, as kube-scheduler wants them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from ksp.policy.field_errors import Problem, Steps, invalid

_NAME: Final = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")
_PREFIX: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_LONGEST_NAME: Final = 63
_LONGEST_PREFIX: Final = 253
_QUOTA: Final = "requests."

_EXAMPLES: Final = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character "
    "(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    f"'{_NAME.pattern}')"
)
_SUBDOMAIN: Final = (
    "a DNS-1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with "
    "an alphanumeric character (e.g. 'example.com', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)


def extended_resource_errors(name: str) -> list[str]:
    """What is wrong with the name of an extended resource, in kube-scheduler's words; empty if nothing is."""
    found = list(qualified_name_errors(name))
    if found:
        return found
    native = "/" not in name or "kubernetes.io/" in name
    if native or name.startswith(_QUOTA) or any(qualified_name_errors(_QUOTA + name)):
        return [f"{name} is an invalid extended resource name"]
    return []


def qualified_name_errors(name: str) -> Iterator[str]:
    """What keeps a name from being a qualified one: an optional DNS subdomain, `/`, and a name."""
    *prefixes, last = name.split("/")
    if len(prefixes) > 1:
        yield f"a qualified name {_EXAMPLES} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        return
    for prefix in prefixes:
        if not prefix:
            yield "prefix part must be non-empty"
        elif len(prefix) > _LONGEST_PREFIX:
            yield f"prefix part must be no more than {_LONGEST_PREFIX} characters"
        elif not _PREFIX.fullmatch(prefix):
            yield f"prefix part {_SUBDOMAIN}"
    if not last:
        yield "name part must be non-empty"
    elif len(last) > _LONGEST_NAME:
        yield f"name part must be no more than {_LONGEST_NAME} characters"
    if not _NAME.fullmatch(last):
        yield f"name part {_EXAMPLES}"


def qualified_name_problems(name: str, at: Steps) -> Iterator[Problem]:
    """The same of the field at a place."""
    yield from (invalid(at, name, error) for error in qualified_name_errors(name))


def extended_resource_problems(name: str, at: Steps) -> Iterator[Problem]:
    """What keeps the field at a place from naming an extended resource."""
    yield from (invalid(at, name, error.removeprefix(f"{name} ")) for error in extended_resource_errors(name))
