"""Names of labels and resources at a field: what they have to be."""

from __future__ import annotations

from collections.abc import Iterator

from ksp.policy.configuration.field_errors import Problem, Steps, invalid
from ksp.policy.resource_names import extended_resource_errors, qualified_name_errors


def qualified_name_problems(name: str, at: Steps) -> Iterator[Problem]:
    """What keeps a text from being `NAME` or `PREFIX/NAME`."""
    yield from (invalid(at, name, error) for error in qualified_name_errors(name))


def extended_resource_problems(name: str, at: Steps) -> Iterator[Problem]:
    """What keeps a text from being the name of a resource that is not Kubernetes' own."""
    yield from (invalid(at, name, error.removeprefix(f"{name} ")) for error in extended_resource_errors(name))
