"""KubeSchedulerConfiguration: the file that --config names, as kube-scheduler reads it.

    read_configuration(text, name) -> Configuration      document, shapes, versions: decode
                                                         default_plugins, merging, arguments: complete
                                                         checks and *_checks: check
    profiles_of(configuration, module, builder)          profiles: plugins become rules of a policy
    write_configuration(configuration) -> text           writing

All that is wrong is told at once, with the path of the field, kube-scheduler's words, and the line of the file.
"""

from ksp.policy.configuration.configuration import (
    ClientConnection,
    Configuration,
    ConfigurationError,
    ConfiguredProfile,
)
from ksp.policy.configuration.leader_election import LeaderElection, election_problems
from ksp.policy.configuration.profiles import Profiles, profiles_of
from ksp.policy.configuration.reading import read_configuration
from ksp.policy.configuration.writing import write_configuration

__all__ = [
    "ClientConnection",
    "Configuration",
    "ConfigurationError",
    "ConfiguredProfile",
    "LeaderElection",
    "Profiles",
    "election_problems",
    "profiles_of",
    "read_configuration",
    "write_configuration",
]
