"""What is known of a flag."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from ksp.cli.scheduler_flags.values import ValueType


class Section(Enum):
    """Where `--help` shows it."""

    RULES = "Rules"
    CLUSTER = "Cluster"
    DECISIONS = "Decisions"
    ELECTION = "Leader election"
    SERVING = "Health, metrics and configuration"
    AUTHENTICATION = "Who may ask for them"
    LOG = "Log"
    OTHER = "Other"
    MEANINGLESS = "Accepted, without meaning here"


@dataclass(frozen=True, slots=True)
class Flag:
    """A flag of `ksp run`.

    `default` is None where nothing is said; `unsaid` is what that amounts to. `metavar` is how `--help` shows its
    value, else by its type. `deprecated` follows `Flag --NAME has been deprecated, ` in the log. `meaningless` says why
    a flag of kube-scheduler has no meaning here. `field` is what says the same in the file of `--config`, and counts if
    both are given.
    """

    name: str
    section: Section
    type: ValueType
    default: object
    help: str
    metavar: str = ""
    deprecated: str = ""
    meaningless: str = ""
    field: str = ""
    short: str = ""
    unsaid: str = ""

    @property
    def key(self) -> str:
        """Its name in Python."""
        return self.name.replace("-", "_")
