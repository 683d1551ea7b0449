"""From the flags of `ksp run` and the file of `--config` to what the scheduler is told.

Where both say something, docs/flags.md has which counts. What does not count is said, never passed over.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Final

from ksp.cli.feature_gates import EQUIVALENCE_CLASSES, Gates
from ksp.cli.scheduler_flags.flag import Section
from ksp.cli.scheduler_flags.given import Given
from ksp.cli.scheduler_flags.table import FLAGS
from ksp.policy.assemble import Policy, Settings
from ksp.policy.configuration import (
    ClientConnection,
    Configuration,
    LeaderElection,
    read_configuration,
)
from ksp.policy.configuration.versions import KIND, Version
from ksp.policy.load import DEFAULT
from ksp.policy.unread import UnreadFields
from ksp.runtime.log import LogSettings
from ksp.runtime.options import Options
from ksp.runtime.reload.source import PolicySource
from ksp.runtime.serving_options import Authentication, Authorization, RequestHeader, ServingOptions

_ELECTION: Final = {
    "leader-elect": "elect", "leader-elect-lease-duration": "lease_duration",
    "leader-elect-renew-deadline": "renew_deadline", "leader-elect-retry-period": "retry_period",
    "leader-elect-resource-lock": "resource_lock", "leader-elect-resource-name": "resource_name",
    "leader-elect-resource-namespace": "resource_namespace",
}  # fmt: skip
_LOCK: Final = {"lock-object-name": "resource_name", "lock-object-namespace": "resource_namespace"}
_LEVELS: Final = {"0": 0, "INFO": 0, "1": 30, "WARNING": 30, "2": 40, "ERROR": 40, "3": 50, "FATAL": 50}
"""klog's severities as the levels of entries."""
_MIB: Final = 2**20


def settings_of(given: Given, configuration: Configuration | None, provider: str) -> Settings:
    """What the flags say of the rules."""
    names_profiles = configuration is not None and bool(configuration.profiles)
    return Settings(
        scheduler_name=None if names_profiles else given["scheduler-name"],
        percentage=given["percentage-of-nodes-to-score"],
        provider=provider,
        hard_pod_affinity_weight=None if configuration is not None else given["hard-pod-affinity-symmetric-weight"],
        configuration=configuration,
    )


def without_effect(given: Given, configuration: Configuration | None) -> Iterator[str]:
    """What to say of flags that do not count beside the file of `--config`."""
    if configuration is None:
        return
    for flag in FLAGS:
        if not flag.field or flag.name not in given.said or flag.meaningless:
            continue
        if flag.name == "scheduler-name" and not configuration.profiles:
            continue
        if flag.name == "kubeconfig" and not configuration.client_connection.kubeconfig:
            continue
        yield f"--{flag.name} has no effect: the {flag.field} of {given['config']} counts"


def idle(given: Given, configuration: Configuration | None) -> Iterator[str]:
    """What to say of flags of what is switched off."""
    unelected = not election_of(given, configuration).elect
    insecure = {"address", "port"}
    for flag in FLAGS:
        if flag.name not in given.said or flag.name in {"leader-elect", "secure-port"}:
            continue
        if flag.section is Section.ELECTION and unelected and not (flag.field and configuration is not None):
            yield f"--{flag.name} has no effect: no leader is elected"
        served = flag.section in {Section.SERVING, Section.AUTHENTICATION} and flag.name not in insecure
        if served and given["secure-port"] == 0:
            yield f"--{flag.name} has no effect: --secure-port is 0"
    if "address" in given.said and insecure_of(given, configuration)[1] is None:
        yield "--address has no effect: --port is 0"


def contradictions(given: Given) -> Iterator[str]:
    """Flags that cannot both be meant."""
    for old, field in _LOCK.items():
        new = next(name for name, each in _ELECTION.items() if each == field)
        if given[old] is not None and new in given.said and given[old] != given[new]:
            yield f"--{old}={given[old]} and --{new}={given[new]} contradict each other: give the second alone"
    if (given["tls-cert-file"] is None) != (given["tls-private-key-file"] is None):
        yield "--tls-cert-file and --tls-private-key-file are of use together only"
    for text in given["tls-sni-cert-key"]:
        if _sni(text) is None:
            yield f"--tls-sni-cert-key={text}: expected comma separated certificate and key file paths"
    if given["log-file"] is not None and given["log-dir"] is not None:
        yield "--log-file and --log-dir exclude each other: the log goes to one file"


# ---- parts


def election_of(given: Given, configuration: Configuration | None) -> LeaderElection:
    """The file's settings, with those on top that flags say."""
    election = LeaderElection() if configuration is None else configuration.leader_election
    names = {} if configuration is not None else _LOCK
    said = {field: given[flag] for flag, field in (names | _ELECTION).items() if flag in given.said}
    return replace(election, **said)


def serving_of(given: Given) -> ServingOptions:
    """How health and metrics are served with TLS."""
    header = RequestHeader(
        given["requestheader-client-ca-file"], given["requestheader-allowed-names"],
        given["requestheader-username-headers"], given["requestheader-group-headers"],
        given["requestheader-extra-headers-prefix"],
    )  # fmt: skip
    authentication = Authentication(
        given["authentication-kubeconfig"], given["authentication-token-webhook-cache-ttl"],
        given["authentication-skip-lookup"], given["authentication-tolerate-lookup-failure"], given["client-ca-file"],
        header,
    )  # fmt: skip
    authorization = Authorization(
        given["authorization-kubeconfig"], given["authorization-webhook-cache-authorized-ttl"],
        given["authorization-webhook-cache-unauthorized-ttl"], given["authorization-always-allow-paths"],
    )  # fmt: skip
    return ServingOptions(
        given["bind-address"], given["secure-port"] or None, given["cert-dir"], given["tls-cert-file"],
        given["tls-private-key-file"], given["tls-min-version"], given["tls-cipher-suites"],
        tuple(pair for text in given["tls-sni-cert-key"] if (pair := _sni(text)) is not None),
        authentication, authorization,
    )  # fmt: skip


def _sni(text: str) -> tuple[str, str, tuple[str, ...]] | None:
    """`CERT,KEY[:NAME,...]`; None if it is not that."""
    files, _, names = text.partition(":")
    cert, comma, key = (part.strip() for part in files.partition(","))
    if not (cert and comma and key) or "," in key:
        return None
    return cert, key, tuple(name.strip() for name in names.split(",") if name.strip())


def insecure_of(given: Given, configuration: Configuration | None) -> tuple[str, int | None]:
    """Where health and metrics are served without TLS: the flags, else the file."""
    address, port = given["address"], given["port"]
    if configuration is not None and (found := configuration.health_bind_address or configuration.metrics_bind_address):
        host, _, number = found.rpartition(":")
        address = address if "address" in given.said else host.strip("[]")
        port = port if "port" in given.said else int(number)
    return address, port or None


def log_settings(given: Given) -> LogSettings:
    """Where entries go."""
    folder = given["log-dir"]
    file = given["log-file"] or (Path(folder) / "ksp.log" if folder else None)
    threshold = 0 if given["alsologtostderr"] else _LEVELS[given["stderrthreshold"]]
    return LogSettings(
        given["v"], given["logging-format"], given["logtostderr"], None if file is None else Path(file),
        given["log-file-max-size"] * _MIB, threshold,
    )  # fmt: skip


# ---- the whole


def effective_configuration(given: Given, configuration: Configuration | None, policy: Policy | None) -> Configuration:
    """The configuration with what flags say. It has the profiles that plugins make; what a policy in ksp's
    language declares is not to be said in plugins."""
    if configuration is None:
        base = _of_flags(given, policy)
    elif policy is not None and policy.effective is not None:
        base = policy.effective
    else:
        base = _beside_policy(configuration, policy)
    address, port = insecure_of(given, configuration)
    percentage = given["percentage-of-nodes-to-score"]
    return replace(
        base, leader_election=election_of(given, configuration),
        health_bind_address=f"{f'[{address}]' if ':' in address else address}:{port}" if port else "",
        percentage=base.percentage if percentage is None else percentage,
    )  # fmt: skip


def without_keys(configuration: Configuration) -> Configuration:
    """The same, to be shown to others: private keys of extenders, and passwords in their addresses, are not in it."""
    extenders = (
        replace(each, url_prefix=each.name, tls=replace(each.tls, key_data=b"") if each.tls is not None else None)
        for each in configuration.extenders
    )
    return replace(configuration, extenders=tuple(extenders))


def _beside_policy(configuration: Configuration, policy: Policy | None) -> Configuration:
    """The configuration without the plugins that its version has by default: a policy says what decides. None is one
    that only the cluster knows: what profiles of the file say may count beside it."""
    profiles = configuration.profiles
    if profiles and policy is not None:
        profiles = tuple(replace(each, points={}, multi_point=(), disabled={}, arguments={}) for each in profiles)
    return replace(configuration, profiles=profiles, default_profile=None)


def _of_flags(given: Given, policy: Policy | None) -> Configuration:
    """What kube-scheduler 1.19 makes of flags alone."""
    provider = given["algorithm-provider"] or ""
    base = read_configuration(f"apiVersion: {Version.V1BETA1.api_version}\nkind: {KIND}\n", "", provider)
    profile = base.default_profile
    if policy is None or policy.name not in {DEFAULT, provider} or profile is None:
        profile = None
    else:
        profile = replace(profile, scheduler_name=policy.profiles[0].scheduler_name)
    connection = ClientConnection(
        kubeconfig=given["kubeconfig"] or "", qps=given["kube-api-qps"] or -1.0, burst=given["kube-api-burst"]
    )
    return replace(base, default_profile=profile, client_connection=connection)


def options_of(
    given: Given, configuration: Configuration | None, gates: Gates, settings: Settings, source: PolicySource | None,
    policy: Policy | None, effective: str = "",
) -> Options:  # fmt: skip
    """All that the scheduler is told. `effective` is the configuration in effect, as a text for others."""
    address, port = insecure_of(given, configuration)
    options = Options(
        policy, given["kubeconfig"], given["master"], given["kube-api-qps"], given["kube-api-burst"],
        UnreadFields(given["unread-fields"]), address, port, serving_of(given), effective,
        election_of(given, configuration), source=source, settings=settings,
        max_denied_ratio=given["policy-max-denied-ratio"], watch_inactivity=given["watch-inactivity"],
        seed=given["seed"], equivalence_classes=gates.own[EQUIVALENCE_CLASSES],
        assumed_ttl=given["assumed-pod-ttl"] or None,
    )  # fmt: skip
    if configuration is None:
        return options
    connection = configuration.client_connection
    return replace(
        options, kubeconfig=connection.kubeconfig or options.kubeconfig, qps=max(0.0, connection.qps),
        burst=connection.burst, initial_backoff=configuration.initial_backoff, max_backoff=configuration.max_backoff,
    )  # fmt: skip
