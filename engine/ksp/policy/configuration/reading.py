"""From the text of a KubeSchedulerConfiguration to its value: decode, complete, check."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ksp.policy.configuration.checks import PARALLELISM, address_of, problems_of, warnings_of
from ksp.policy.configuration.configuration import ClientConnection, Configuration, ConfigurationError, Places
from ksp.policy.configuration.default_plugins import PROVIDERS
from ksp.policy.configuration.document import read_value
from ksp.policy.configuration.extender_checks import extender_problems
from ksp.policy.configuration.leader_election import LEASES, LeaderElection
from ksp.policy.configuration.profile_reading import default_profile, read_profiles
from ksp.policy.configuration.versions import GROUP, KIND, Version, shape_of, versions_with
from ksp.policy.extender_fields import extender_of, in_order
from ksp.policy.field_errors import Problem
from ksp.policy.shapes import UNKNOWN, decoded
from ksp.source.yaml_values import TextError

MAX_MESSAGES: Final = 100


def read_configuration(text: str, name: str, provider: str = "") -> Configuration:
    """The configuration in a text of YAML or JSON; `name` is the file's, for messages. `provider` is the value of
    --algorithm-provider, whose plugins are then the default ones of a v1beta1 file. Raises ConfigurationError with all
    that is wrong."""
    try:
        value, places, problems = read_value(text, name)
    except TextError as error:
        raise ConfigurationError((f"{name}:{error.line}: {error.message}",)) from error
    version = _version(value, problems)
    if version is None or not isinstance(value, dict):
        raise _error(places, problems)
    if provider and (version is not Version.V1BETA1 or provider not in PROVIDERS):
        problems.append(
            Problem(("apiVersion",), f"--algorithm-provider={provider} has no meaning in {GROUP}/{version.value}")
        )
    mistakes: list[Problem] = []
    document: Mapping[str, Any] = decoded(shape_of(version), value, (), mistakes)
    problems += map(_with_versions, mistakes)
    found: list[Problem] = []
    configuration = _configuration(version, document, provider, places, found)
    undecoded = {problem.steps for problem in problems}
    problems += [problem for problem in found if problem.steps not in undecoded]
    if problems:
        raise _error(places, problems, configuration)
    return configuration


def _error(places: Places, problems: list[Problem], partial: Configuration | None = None) -> ConfigurationError:
    messages = places.told(problems)
    if len(messages) > MAX_MESSAGES:
        messages = (*messages[:MAX_MESSAGES], f"{places.name}: {len(messages) - MAX_MESSAGES} more are not shown")
    return ConfigurationError(messages, partial)


def _version(value: object, problems: list[Problem]) -> Version | None:
    """The version that the text says it has, in the words of apimachinery's decoders."""
    fields = value if isinstance(value, dict) else {}
    kind, api_version = fields.get("kind"), fields.get("apiVersion")
    if value is not None and not isinstance(value, dict):
        problems.append(Problem((), "the configuration is not an object"))
    elif not kind:
        problems.append(Problem((), "Object 'Kind' is missing"))
    elif not api_version:
        problems.append(Problem((), "Object 'apiVersion' is missing"))
    else:
        found = next((each for each in Version if kind == KIND and api_version == each.api_version), None)
        if found is None:
            problems.append(Problem(("apiVersion",), _no_kind(str(kind)[:80], str(api_version)[:80])))
        return found
    return None


def _with_versions(problem: Problem) -> Problem:
    """Says of a field that the version does not have which others do."""
    others = versions_with(problem.steps) if UNKNOWN in problem.text else []
    named = ", ".join(version.value for version in others)
    return Problem(problem.steps, f"{problem.text}; it is a field of {named}") if others else problem


def _no_kind(kind: str, api_version: str) -> str:
    text = f'no kind "{kind}" is registered for version "{api_version}"'
    if kind == "Policy":
        return f"{text}; a Policy is named by --policy-config-file"
    return f"{text}; read are {KIND} of {', '.join(each.api_version for each in Version)}"


def _configuration(
    version: Version, document: Mapping[str, Any], provider: str, places: Places, problems: list[Problem]
) -> Configuration:  # fmt: skip
    """The value of a decoded document; what is wrong with it is added to the problems."""
    election = _election(document.get("leaderElection", {}))
    problems += problems_of(version, document, election)
    warnings = list(warnings_of(document))
    entries = document.get("extenders", ())
    problems += extender_problems(entries)
    profiles = read_profiles(version, document.get("profiles", ()), provider, problems, warnings)
    profiling = document.get("enableProfiling", True)
    return Configuration(
        version=version,
        profiles=profiles or None,
        default_profile=default_profile(version, provider),
        extenders=in_order(map(extender_of, entries)),
        leader_election=election,
        client_connection=_connection(document.get("clientConnection", {})),
        percentage=document.get("percentageOfNodesToScore"),
        initial_backoff=float(document.get("podInitialBackoffSeconds", 1)),
        max_backoff=float(document.get("podMaxBackoffSeconds", 10)),
        health_bind_address=address_of(document.get("healthzBindAddress")),
        metrics_bind_address=address_of(document.get("metricsBindAddress")),
        profiling=profiling,
        contention_profiling=document.get("enableContentionProfiling", profiling),
        parallelism=document.get("parallelism", PARALLELISM),
        delay_cache_until_active=document.get("delayCacheUntilActive", False),
        warnings=places.told(warnings),
        places=places,
    )


def _election(given: Mapping[str, Any]) -> LeaderElection:
    """Zeros and empty texts are as if they were not there. Every lock is a Lease, whatever it is called."""
    default = LeaderElection()
    return LeaderElection(
        elect=given.get("leaderElect", default.elect),
        lease_duration=given.get("leaseDuration") or default.lease_duration,
        renew_deadline=given.get("renewDeadline") or default.renew_deadline,
        retry_period=given.get("retryPeriod") or default.retry_period,
        resource_lock=given.get("resourceLock") or LEASES,
        resource_name=given.get("resourceName") or default.resource_name,
        resource_namespace=given.get("resourceNamespace") or default.resource_namespace,
    )


def _connection(given: Mapping[str, Any]) -> ClientConnection:
    default = ClientConnection()
    return ClientConnection(
        kubeconfig=given.get("kubeconfig", ""),
        accept_content_types=given.get("acceptContentTypes", ""),
        content_type=given.get("contentType") or default.content_type,
        qps=given.get("qps") or default.qps,
        burst=given.get("burst") or default.burst,
    )
