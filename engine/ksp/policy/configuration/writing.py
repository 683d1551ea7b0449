"""A configuration as the text of a KubeSchedulerConfiguration: all defaults filled in, plugins spread out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import yaml

from ksp.policy.configuration.arguments import argument_shapes
from ksp.policy.configuration.configuration import ClientConnection, Configuration, ConfiguredProfile, Plugin
from ksp.policy.configuration.leader_election import LeaderElection
from ksp.policy.configuration.merging import ALL
from ksp.policy.configuration.versions import KIND, MULTI_POINT, Version, points_of
from ksp.policy.durations import shown_seconds
from ksp.policy.extender_fields import written
from ksp.policy.shapes import DURATION, Object

_OFF: Final = [{"name": ALL}]


def write_configuration(configuration: Configuration) -> str:
    """YAML of the configuration's own apiVersion. Read again, it gives the same configuration, if `multiPoint` is
    spread out in it, as in what `profiles_of` gives."""
    document = document_of(configuration)
    return yaml.dump(document, Dumper=_WithoutAliases, sort_keys=False, allow_unicode=True, width=120)


class _WithoutAliases(yaml.SafeDumper):
    """Writes a value that stands at two places twice."""

    def ignore_aliases(self, data: object) -> bool:
        return True


def document_of(configuration: Configuration) -> dict[str, Any]:
    """The fields of the document."""
    version = configuration.version
    document: dict[str, Any] = {
        "apiVersion": configuration.api_version,
        "kind": KIND,
        "parallelism": configuration.parallelism,
        "leaderElection": _election(configuration.leader_election),
        "clientConnection": _connection(configuration.client_connection),
        "enableProfiling": configuration.profiling,
        "enableContentionProfiling": configuration.contention_profiling,
        "podInitialBackoffSeconds": int(configuration.initial_backoff),
        "podMaxBackoffSeconds": int(configuration.max_backoff),
    }
    if configuration.percentage is not None:
        document["percentageOfNodesToScore"] = configuration.percentage
    if not version.is_from(Version.V1BETA3):
        addresses = {
            "healthzBindAddress": configuration.health_bind_address,
            "metricsBindAddress": configuration.metrics_bind_address,
        }
        document |= {name: address for name, address in addresses.items() if address}
    if version is Version.V1:
        document["delayCacheUntilActive"] = configuration.delay_cache_until_active
    document["profiles"] = [_profile(version, profile) for profile in configuration.all_profiles()]
    document["extenders"] = [written(extender) for extender in configuration.extenders]
    return document


def _election(election: LeaderElection) -> dict[str, Any]:
    return {
        "leaderElect": election.elect,
        "leaseDuration": shown_seconds(election.lease_duration),
        "renewDeadline": shown_seconds(election.renew_deadline),
        "retryPeriod": shown_seconds(election.retry_period),
        "resourceLock": election.resource_lock,
        "resourceName": election.resource_name,
        "resourceNamespace": election.resource_namespace,
    }


def _connection(connection: ClientConnection) -> dict[str, Any]:
    return {
        "kubeconfig": connection.kubeconfig,
        "acceptContentTypes": connection.accept_content_types,
        "contentType": connection.content_type,
        "qps": connection.qps,
        "burst": connection.burst,
    }


# ---- profiles


def _profile(version: Version, profile: ConfiguredProfile) -> dict[str, Any]:
    """Every point is written with `*` off, so that no default plugin comes in beside those that are named. Of a profile
    whose plugins do not count there is the name."""
    fields: dict[str, Any] = {"schedulerName": profile.scheduler_name}
    if profile.percentage is not None:
        fields["percentageOfNodesToScore"] = profile.percentage
    if not profile.points and not profile.multi_point:
        return fields
    plugins: dict[str, Any] = {}
    if version.is_from(Version.V1BETA3):
        plugins[MULTI_POINT] = {"enabled": _plugins(profile.multi_point, weighted=True), "disabled": _OFF}
    for point in points_of(version):
        enabled = _plugins(profile.points.get(point, ()), weighted=point == "score")
        off = [{"name": name} for name in sorted(profile.disabled.get(point, ()))]
        if not version.is_from(Version.V1BETA3):
            off = _OFF
        if enabled or off:
            plugins[point] = {"enabled": enabled, "disabled": off}
    return fields | {"plugins": plugins, "pluginConfig": list(_arguments(version, profile.arguments))}


def _plugins(plugins: tuple[Plugin, ...], *, weighted: bool) -> list[dict[str, Any]]:
    return [
        {"name": plugin.name, "weight": plugin.weight} if weighted and plugin.weight else {"name": plugin.name}
        for plugin in plugins
    ]


def _arguments(version: Version, arguments: Mapping[str, Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    shapes = argument_shapes(version)
    for name, values in sorted(arguments.items()):
        shape = shapes.get(name)
        header = {"apiVersion": version.api_version, "kind": f"{name}Args"} if shape is not None else {}
        yield {"name": name, "args": header | {key: _written(shape, key, value) for key, value in values.items()}}


def _written(shape: Object | None, name: str, value: Any) -> Any:
    return shown_seconds(value) if shape is not None and shape.fields.get(name) is DURATION else value
