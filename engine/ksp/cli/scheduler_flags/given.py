"""What somebody wrote on the command line of `ksp run`, and what is to be said of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ksp.cli.scheduler_flags.table import FLAGS


@dataclass(frozen=True, slots=True)
class Given:
    """The values of all flags, and the names of those that were `said`: the others have their defaults."""

    values: Mapping[str, Any]
    said: frozenset[str]

    def __getitem__(self, name: str) -> Any:
        return self.values[name]


def warnings_of(given: Given) -> Iterator[str]:
    """What to say of flags that are old: what pflag says."""
    for flag in FLAGS:
        if flag.name in given.said and flag.deprecated:
            yield f"Flag --{flag.name} has been deprecated, {flag.deprecated}"


def without_meaning(given: Given) -> Iterator[tuple[str, str]]:
    """The flags that were said and have no meaning here, and why."""
    return ((flag.name, flag.meaningless) for flag in FLAGS if flag.name in given.said and flag.meaningless)
