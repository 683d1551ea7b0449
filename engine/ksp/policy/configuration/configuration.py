"""What a KubeSchedulerConfiguration comes to: a value, with all defaults filled in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from ksp.policy.configuration.leader_election import LeaderElection
from ksp.policy.configuration.versions import Version
from ksp.policy.extender import Extender
from ksp.policy.field_errors import Problem, Steps, in_one_line

RULES: Final = "ksp:modern.ksp"
RULES_OF_V1BETA1: Final = "ksp:all.ksp"
"""The shipped files with a rule for each plugin that ksp has one for: what is loaded if no policy is named."""

LONGEST: Final = 1000  # characters of a message
DEFAULT_SCHEDULER: Final = "default-scheduler"
Arguments = Mapping[str, Mapping[str, Any]]


class ConfigurationError(ValueError):
    """A configuration that cannot be used: `messages` are all that is wrong, each `FILE:LINE: field.path: text`.
    `partial` is what could be read of it, for those who look for further mistakes; None for nothing."""

    def __init__(self, messages: tuple[str, ...], partial: Configuration | None = None) -> None:
        super().__init__("\n".join(messages))
        self.messages = messages
        self.partial = partial


@dataclass(frozen=True, slots=True)
class Places:
    """Where the fields of a file stand."""

    name: str = ""
    lines: Mapping[Steps, int] = field(default_factory=dict)

    def line(self, steps: Steps) -> int:
        """The line of a field; of one that is not in the file that of the innermost field around it."""
        return next((self.lines[steps[:n]] for n in range(len(steps), -1, -1) if steps[:n] in self.lines), 1)

    def told(self, problems: list[Problem]) -> tuple[str, ...]:
        """Problems with their places, in the order of the file. What is said twice is said once."""
        ordered = sorted(problems, key=lambda problem: self.line(problem.steps))
        return tuple(
            dict.fromkeys(f"{self.name}:{self.line(each.steps)}: {in_one_line(str(each), LONGEST)}" for each in ordered)
        )


@dataclass(frozen=True, slots=True)
class Plugin:
    """A plugin at an extension point. `weight` 0 is 1. `steps` lead to where the file names it; () if it does not."""

    name: str
    weight: int = 0
    steps: Steps = field(default=(), compare=False)


@dataclass(frozen=True, slots=True)
class ConfiguredProfile:
    """One profile, merged with the default plugins of the version.

    `points` are the plugins enabled at each extension point, in order, and `disabled` the names that are not to come in
    by `multi_point`, `*` for all. `arguments` are by plugin, with defaults; `said` are the places and names of those
    that the file has. `percentage` None is what the configuration says. `steps` lead to the profile in the file."""

    scheduler_name: str
    points: Mapping[str, tuple[Plugin, ...]]
    multi_point: tuple[Plugin, ...] = ()
    disabled: Mapping[str, frozenset[str]] = field(default_factory=dict)
    arguments: Arguments = field(default_factory=dict)
    percentage: int | None = None
    has_plugins: bool = field(default=False, compare=False)
    said: Mapping[str, tuple[Steps, frozenset[str]]] = field(default_factory=dict, compare=False)
    steps: Steps = field(default=(), compare=False)


@dataclass(frozen=True, slots=True)
class ClientConnection:
    """How the API server is asked. Both content types are read and not used: JSON is spoken. `qps` below 0 is no
    limit."""

    kubeconfig: str = ""
    accept_content_types: str = ""
    content_type: str = "application/vnd.kubernetes.protobuf"
    qps: float = 50.0
    burst: int = 100


@dataclass(frozen=True, slots=True)
class Configuration:
    """A KubeSchedulerConfiguration.

    `profiles` is None if the file names none; `default_profile` is what kube-scheduler would have then. `percentage` is
    None if the file does not say (kube-scheduler takes 0 then, which adapts to the cluster's size). Backoffs are in
    seconds. A bind address is `HOST:PORT`, "" for none. `warnings` are told to the user."""

    version: Version = Version.V1
    profiles: tuple[ConfiguredProfile, ...] | None = None
    default_profile: ConfiguredProfile | None = field(default=None, compare=False)
    extenders: tuple[Extender, ...] = ()
    leader_election: LeaderElection = field(default_factory=LeaderElection)
    client_connection: ClientConnection = field(default_factory=ClientConnection)
    percentage: int | None = None
    initial_backoff: float = 1.0
    max_backoff: float = 10.0
    health_bind_address: str = ""
    metrics_bind_address: str = ""
    profiling: bool = True
    contention_profiling: bool = True
    parallelism: int = 16
    delay_cache_until_active: bool = False
    warnings: tuple[str, ...] = field(default=(), compare=False)
    places: Places = field(default_factory=Places, compare=False)

    @property
    def api_version(self) -> str:
        return self.version.api_version

    @property
    def rules(self) -> str:
        """The shipped file whose rules the plugins mean if no policy is named."""
        return RULES_OF_V1BETA1 if self.version is Version.V1BETA1 else RULES

    @property
    def has_plugins(self) -> bool:
        """Whether a profile says which plugins it has, or with which arguments."""
        return any(profile.has_plugins for profile in self.profiles or ())

    def all_profiles(self) -> tuple[ConfiguredProfile, ...]:
        """The profiles; the default one if the file names none."""
        if self.profiles:
            return self.profiles
        return (self.default_profile,) if self.default_profile is not None else ()
