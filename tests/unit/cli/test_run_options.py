"""Flags, and the file of --config, to what the scheduler is told."""

from __future__ import annotations

import logging
from base64 import b64encode
from functools import reduce
from pathlib import Path
from typing import Any

import pytest
from tests.unit.cli.commands import written
from tests.unit.cli.flags import SMALL, Started, Told, parsed
from tests.unit.runtime.embedded import policy

from ksp.cli.run_options import election_of, idle, serving_of
from ksp.cli.scheduler_flags.flag import Flag
from ksp.cli.scheduler_flags.given import Given, without_meaning
from ksp.cli.scheduler_flags.table import FLAGS
from ksp.core.backoff import Backoff
from ksp.policy.configuration import LeaderElection
from ksp.policy.unread import UnreadFields
from ksp.runtime.app import App
from ksp.runtime.serving_options import SECURE_PORT, ServingOptions

DEFAULTS = Given({flag.name: flag.default for flag in FLAGS}, frozenset())

# flag: (arguments, where it goes, as what)
REACHES: dict[str, tuple[list[str], str, Any]] = {
    "kubeconfig": (["--kubeconfig=/k"], "options.kubeconfig", "/k"),
    "master": (["--master=http://m"], "options.master", "http://m"),
    "kube-api-qps": (["--kube-api-qps=7"], "options.qps", 7.0),
    "kube-api-burst": (["--kube-api-burst=8"], "options.burst", 8),
    "watch-inactivity": (["--watch-inactivity=1m30s"], "options.watch_inactivity", 90.0),
    "unread-fields": (["--unread-fields=warn"], "options.unread_fields", UnreadFields.WARN),
    "assumed-pod-ttl": (["--assumed-pod-ttl=30s"], "options.assumed_ttl", 30.0),
    "feature-gates": (["--feature-gates=EnableEquivalenceClassCache=false"], "options.equivalence_classes", False),
    "seed": (["--seed=3"], "options.seed", 3),
    "policy-max-denied-ratio": (["--policy-max-denied-ratio=0.5"], "options.max_denied_ratio", 0.5),
    "scheduler-name": (["--scheduler-name=mine"], "options.settings.scheduler_name", "mine"),
    "percentage-of-nodes-to-score": (["--percentage-of-nodes-to-score=7"], "options.settings.percentage", 7),
    "hard-pod-affinity-symmetric-weight": (
        ["--hard-pod-affinity-symmetric-weight=9"], "options.settings.hard_pod_affinity_weight", 9),
    "leader-elect": (["--leader-elect=false"], "options.leader_election.elect", False),
    "leader-elect-lease-duration": (
        ["--leader-elect-lease-duration=1m"], "options.leader_election.lease_duration", 60.0),
    "leader-elect-renew-deadline": (
        ["--leader-elect-renew-deadline=12s"], "options.leader_election.renew_deadline", 12.0),
    "leader-elect-retry-period": (["--leader-elect-retry-period=3s"], "options.leader_election.retry_period", 3.0),
    "leader-elect-resource-lock": (
        ["--leader-elect-resource-lock=endpoints"], "options.leader_election.resource_lock", "endpoints"),
    "leader-elect-resource-name": (
        ["--leader-elect-resource-name=ksp"], "options.leader_election.resource_name", "ksp"),
    "leader-elect-resource-namespace": (
        ["--leader-elect-resource-namespace=ns"], "options.leader_election.resource_namespace", "ns"),
    "lock-object-name": (["--lock-object-name=ksp"], "options.leader_election.resource_name", "ksp"),
    "lock-object-namespace": (["--lock-object-namespace=ns"], "options.leader_election.resource_namespace", "ns"),
    "bind-address": (["--bind-address=::1"], "options.serving.bind_address", "::1"),
    "secure-port": (["--secure-port=0"], "options.serving.secure_port", None),
    "cert-dir": (["--cert-dir=/d"], "options.serving.cert_dir", "/d"),
    "tls-cert-file": (
        ["--tls-cert-file=/c", "--tls-private-key-file=/k"], "options.serving.tls_cert_file", "/c"),
    "tls-private-key-file": (
        ["--tls-cert-file=/c", "--tls-private-key-file=/k"], "options.serving.tls_private_key_file", "/k"),
    "tls-cipher-suites": (["--tls-cipher-suites=A,B"], "options.serving.tls_cipher_suites", ("A", "B")),
    "tls-min-version": (["--tls-min-version=VersionTLS13"], "options.serving.tls_min_version", "VersionTLS13"),
    "tls-sni-cert-key": (
        ["--tls-sni-cert-key=a,b", "--tls-sni-cert-key", "c,d:x, *.y"], "options.serving.tls_sni_cert_keys",
        (("a", "b", ()), ("c", "d", ("x", "*.y")))),
    "address": (["--address=127.0.0.2", "--port=1"], "options.address", "127.0.0.2"),
    "port": (["--port=10251"], "options.port", 10251),
    "authentication-kubeconfig": (
        ["--authentication-kubeconfig=/k"], "options.serving.authentication.kubeconfig", "/k"),
    "authentication-skip-lookup": (
        ["--authentication-skip-lookup"], "options.serving.authentication.skip_lookup", True),
    "authentication-token-webhook-cache-ttl": (
        ["--authentication-token-webhook-cache-ttl=1m"], "options.serving.authentication.token_cache_ttl", 60.0),
    "authentication-tolerate-lookup-failure": (
        ["--authentication-tolerate-lookup-failure=false"],
        "options.serving.authentication.tolerate_lookup_failure", False),
    "client-ca-file": (["--client-ca-file=/c"], "options.serving.authentication.client_ca_file", "/c"),
    "requestheader-client-ca-file": (
        ["--requestheader-client-ca-file=/c"], "options.serving.authentication.request_header.client_ca_file", "/c"),
    "requestheader-allowed-names": (
        ["--requestheader-allowed-names=a,b", "--requestheader-allowed-names=c"],
        "options.serving.authentication.request_header.allowed_names", ("a", "b", "c")),
    "requestheader-username-headers": (
        ["--requestheader-username-headers=u"],
        "options.serving.authentication.request_header.username_headers", ("u",)),
    "requestheader-group-headers": (
        ["--requestheader-group-headers=g"], "options.serving.authentication.request_header.group_headers", ("g",)),
    "requestheader-extra-headers-prefix": (
        ["--requestheader-extra-headers-prefix=e-"],
        "options.serving.authentication.request_header.extra_headers_prefix", ("e-",)),
    "authorization-kubeconfig": (
        ["--authorization-kubeconfig=/k"], "options.serving.authorization.kubeconfig", "/k"),
    "authorization-webhook-cache-authorized-ttl": (
        ["--authorization-webhook-cache-authorized-ttl=1s"], "options.serving.authorization.authorized_ttl", 1.0),
    "authorization-webhook-cache-unauthorized-ttl": (
        ["--authorization-webhook-cache-unauthorized-ttl=1s"],
        "options.serving.authorization.unauthorized_ttl", 1.0),
    "authorization-always-allow-paths": (
        ["--authorization-always-allow-paths=/healthz,/metrics"],
        "options.serving.authorization.always_allow_paths", ("/healthz", "/metrics")),
    "v": (["-v=2"], "log.verbosity", 2),
    "logging-format": (["--logging-format=json"], "log.format", "json"),
    "logtostderr": (["--logtostderr=false"], "log.to_stderr", False),
    "alsologtostderr": (["--alsologtostderr"], "log.threshold", 0),
    "stderrthreshold": (["--stderrthreshold=1"], "log.threshold", logging.WARNING),
    "log-file": (["--log-file=/f"], "log.file", Path("/f")),
    "log-dir": (["--log-dir=/d"], "log.file", Path("/d/ksp.log")),
    "log-file-max-size": (["--log-file-max-size=2"], "log.max_bytes", 2 * 2**20),
}  # fmt: skip


@pytest.fixture
def small(tmp_path: Path) -> str:
    """The flag for a policy that is assembled in no time."""
    return f"--policy-file={written(tmp_path, {'small.ksp': SMALL}) / 'small.ksp'}"


V1 = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
V1BETA1 = V1.replace("/v1\n", "/v1beta1\n")


@pytest.mark.parametrize("flag", REACHES)
def test_a_flag_reaches_what_it_is_for(flag: str) -> None:
    arguments, path, value = REACHES[flag]
    assert any(argument.startswith((f"--{flag}", "-v")) for argument in arguments)
    assert reduce(getattr, path.split("."), Told(*arguments)) == value
    assert reduce(getattr, path.split("."), Told()) != value


def test_all_flags_reach_something_but_those_that_are_tested_elsewhere() -> None:
    places = {name for name in DEFAULTS.values if name.startswith("policy-") and name != "policy-max-denied-ratio"}
    elsewhere = places | {"algorithm-provider", "use-legacy-policy-config", "config", "write-config-to", "version"}
    meaningless = {flag.name for flag in FLAGS if flag.meaningless}
    assert REACHES.keys() | elsewhere | meaningless == DEFAULTS.values.keys()


def test_defaults_are_those_of_the_parts() -> None:
    assert election_of(DEFAULTS, None) == LeaderElection()
    assert serving_of(DEFAULTS) == ServingOptions(secure_port=SECURE_PORT)


# ---- what is said of flags


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--lock-object-name=a", "--leader-elect-resource-name=b"], "contradict each other"),
        (["--tls-cert-file=/c"], "--tls-cert-file and --tls-private-key-file are of use together only"),
        (["--tls-sni-cert-key=/c"], "expected comma separated certificate and key file paths"),
        (["--log-file=a", "--log-dir=b"], "--log-file and --log-dir exclude each other"),
        (["--feature-gates=Nonsense=true"], "there is no feature gate `Nonsense`"),
        (["--leader-elect=perhaps"], "`perhaps` is neither true nor false"),
        (["--leader-elect-retry-period=5"], "time: missing unit in duration"),
        (["--watch-inactivity=0.5"], "0.5 is less than 1s"),
    ],
)
def test_what_cannot_be_meant_is_a_mistake_on_the_command_line(
    arguments: list[str], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    start = Started(arguments, monkeypatch)
    assert start.result.exit_code == 2
    assert said in start.result.output
    assert start.all_options == []


def test_times_of_an_election_that_do_not_fit_are_said_in_kube_schedulers_words(
    small: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    start = Started([small, "--leader-elect-lease-duration=5s", "--leader-elect-retry-period=20s"], monkeypatch)
    assert start.result.exit_code == 1
    assert "leaderElection.leaseDuration: Invalid value: 10s: LeaseDuration must be greater" in start.result.output
    assert "RenewDeadline must be greater than RetryPeriod" in start.result.output


def test_old_flags_and_those_without_meaning_are_told_once_each(
    small: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "ksp.flags")
    Started([small, "--port=0", "--lock_object_name=x", "--profiling", "--vmodule=a=1"], monkeypatch)
    told = [(record.levelname, record.getMessage()) for record in caplog.records]
    assert told == [
        ("WARNING", "Flag --lock-object-name has been deprecated, use --leader-elect-resource-name instead."),
        ("WARNING", "Flag --port has been deprecated, see --secure-port instead."),
        ("INFO", 'flag without meaning here flag=--profiling why="it is about the Go runtime"'),
        ("INFO", 'flag without meaning here flag=--vmodule why="the level is the same everywhere: use -v"'),
    ]


@pytest.mark.parametrize("flag", [flag for flag in FLAGS if flag.meaningless], ids=lambda flag: flag.name)
def test_a_flag_without_meaning_changes_nothing_and_is_told(
    flag: Flag,
) -> None:
    argument = f"--{flag.name}={'1s' if flag.name == 'log-flush-frequency' else '1'}"
    assert (Told(argument).options, Told(argument).log) == (Told().options, Told().log)
    assert list(without_meaning(parsed(argument))) == [(flag.name, flag.meaningless)]


def test_gates_of_other_components_are_told(
    small: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "ksp.flags")
    Started([small, "--feature-gates=CSIMigration=false"], monkeypatch)
    assert caplog.messages == ["feature gate without meaning here gate=CSIMigration"]


def test_a_log_file_beside_stderr_is_told(
    small: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    Started([small, "--log-file=/f"], monkeypatch)
    assert caplog.messages == ["the log goes to stderr: add --logtostderr=false file=/f"]


@pytest.mark.parametrize("arguments", [["--version"], ["--version=true"]])
def test_the_version(arguments: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    start = Started(arguments, monkeypatch)
    assert start.result.output.startswith("ksp 0.")
    assert start.all_options == []


def test_flags_of_what_is_off_are_told() -> None:
    flags = ("--secure-port=0", "--cert-dir=/d", "--client-ca-file=/c", "--address=::1")
    assert list(idle(parsed(*flags), None)) == [
        "--cert-dir has no effect: --secure-port is 0",
        "--client-ca-file has no effect: --secure-port is 0",
        "--address has no effect: --port is 0",
    ]
    assert list(idle(parsed("--leader-elect=false", "--lock-object-name=x", "--port=0"), None)) == [
        "--lock-object-name has no effect: no leader is elected"
    ]
    assert list(idle(parsed("--cert-dir=/d", "--lock-object-name=x", "--address=::1", "--port=1"), None)) == []


# ---- beside --config


def configured(folder: Path, text: str, monkeypatch: pytest.MonkeyPatch, *arguments: str) -> Started:
    file = written(folder, {"config.yaml": text}) / "config.yaml"
    policy = written(folder, {"small.ksp": SMALL}) / "small.ksp"
    rules = [] if "profiles:" in text else [f"--policy-file={policy}"]
    return Started([f"--config={file}", *rules, *arguments], monkeypatch)


FILE = (
    V1BETA1
    + """\
leaderElection: {leaderElect: false, resourceName: theirs, leaseDuration: 1m}
clientConnection: {kubeconfig: /theirs, qps: 5, burst: 6}
podInitialBackoffSeconds: 2
podMaxBackoffSeconds: 20
healthzBindAddress: 127.0.0.3:10300
"""
)


def test_a_file_says_what_flags_say_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    options = configured(tmp_path, FILE, monkeypatch).options
    assert options.leader_election == LeaderElection(elect=False, resource_name="theirs", lease_duration=60.0)
    assert (options.kubeconfig, options.qps, options.burst) == ("/theirs", 5.0, 6)
    assert App(options).scheduler.queue.backoff == Backoff(2.0, 20.0)
    assert (options.address, options.port) == ("127.0.0.3", 10300)


def test_flags_of_leader_election_and_of_the_insecure_port_come_before_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flags = ("--leader-elect-resource-name=mine", "--port=10400", "--leader-elect")
    options = configured(tmp_path, FILE, monkeypatch, *flags).options
    assert options.leader_election == LeaderElection(resource_name="mine", lease_duration=60.0)
    assert (options.address, options.port) == ("127.0.0.3", 10400)


def test_other_flags_that_the_file_says_too_have_no_effect_and_that_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    flags = ("--kubeconfig=/mine", "--kube-api-qps=9", "--kube-api-burst=9", "--lock-object-name=mine")
    options = configured(tmp_path, FILE, monkeypatch, *flags).options
    assert (options.kubeconfig, options.qps, options.burst) == ("/theirs", 5.0, 6)
    assert options.leader_election is not None
    assert options.leader_election.resource_name == "theirs"
    file = tmp_path / "config.yaml"
    assert [text for text in caplog.messages if "has no effect" in text] == [
        f"--kubeconfig has no effect: the clientConnection.kubeconfig of {file} counts",
        f"--kube-api-qps has no effect: the clientConnection.qps of {file} counts",
        f"--kube-api-burst has no effect: the clientConnection.burst of {file} counts",
        f"--lock-object-name has no effect: the leaderElection.resourceName of {file} counts",
    ]


def test_a_kubeconfig_counts_where_the_file_names_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert configured(tmp_path, V1, monkeypatch, "--kubeconfig=/mine").options.kubeconfig == "/mine"


def test_names_of_profiles_in_the_file_come_before_the_flag(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    text = V1BETA1 + "profiles: [{schedulerName: theirs}]\n"
    start = configured(tmp_path, text, monkeypatch, "--scheduler-name=mine", "--hard-pod-affinity-symmetric-weight=5")
    assert start.options.policy is not None
    assert [profile.scheduler_name for profile in start.options.policy.profiles] == ["theirs"]
    assert len([text for text in caplog.messages if "has no effect" in text]) == 2


def test_a_provider_is_what_profiles_of_the_file_start_from(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = V1BETA1 + "profiles: [{plugins: {filter: {disabled: [{name: NodePorts}]}}}]\n"
    policy = configured(tmp_path, text, monkeypatch, "--algorithm-provider=ClusterAutoscalerProvider").options.policy
    assert policy is not None
    (profile,) = policy.profiles
    assert "NodeResourcesMostAllocated" in {active.plugin for active in profile.priorities}
    assert "NodePorts" not in {active.plugin for active in profile.predicates}


def test_without_profiles_in_the_file_the_flag_names_the_policys(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    start = configured(tmp_path, V1BETA1, monkeypatch, "--scheduler-name=mine")
    assert start.options.policy is not None
    assert [profile.scheduler_name for profile in start.options.policy.profiles] == ["mine"]


def test_what_is_wrong_with_the_file_and_what_its_plugins_lack_is_told_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = (
        V1
        + """leaderElections: {}
profiles:
- schedulerName: mine
  plugins:
    queueSort: {enabled: [{name: Coscheduling}], disabled: [{name: "*"}]}
    multiPoint: {enabled: [{name: CapacityScheduling}]}
    score: {enabled: [{name: NodeResourceFit}]}
"""
    )
    start = configured(tmp_path, text, monkeypatch)
    assert (start.result.exit_code, start.all_options) == (1, [])
    told = [line.removeprefix(f"Error: {tmp_path}/config.yaml:") for line in start.result.stderr.splitlines()]
    assert [line.split(": ")[0] for line in told] == [
        "3",
        "7",
        "8",
        "9",
    ]
    assert told[3].endswith("did you mean `NodeResourcesFit`?")


# ---- --write-config-to


def test_the_configuration_in_effect_is_written_and_says_the_same_when_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "written.yaml"
    flags = [
        "--leader-elect-resource-name=mine", "--kube-api-qps=7", "--scheduler-name=me", "--kubeconfig=/k",
        "--address=::1", "--port=10251",
    ]  # fmt: skip
    start = Started([*flags, f"--write-config-to={file}"], monkeypatch)
    assert (start.result.exit_code, start.all_options) == (0, [])
    assert start.result.stderr.splitlines() == [
        "Warning: Flag --address has been deprecated, see --bind-address instead.",
        "Warning: Flag --port has been deprecated, see --secure-port instead.",
        f"wrote the configuration to {file}",
    ]
    options = Started([f"--config={file}"], monkeypatch).options
    assert options.leader_election == Told(*flags).options.leader_election
    assert (options.qps, options.burst, options.kubeconfig) == (7.0, 100, "/k")
    assert (options.address, options.port) == ("::1", 10251)
    assert options.policy is not None
    assert [each.scheduler_name for each in options.policy.profiles] == ["me"]
    for one, other in zip(options.policy.profiles, policy().profiles, strict=True):
        assert [active.plugin for active in one.predicates] == [active.plugin for active in other.predicates]
        assert {(a.plugin, a.weight) for a in one.priorities} == {(a.plugin, a.weight) for a in other.priorities}


def test_what_is_shown_of_the_configuration_has_no_private_keys_and_what_is_written_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = b64encode(b"secret").decode()
    tls = f"{{certData: {b64encode(b'cert').decode()}, keyData: {key}}}"
    url = "https://me:password@x"
    text = V1BETA1 + f"extenders: [{{urlPrefix: '{url}', filterVerb: f, enableHTTPS: true, tlsConfig: {tls}}}]\n"
    options = configured(tmp_path, text, monkeypatch).options
    assert "https://x" in options.effective_configuration
    assert key not in options.effective_configuration
    assert "password" not in options.effective_configuration
    file = tmp_path / "written"
    configured(tmp_path, text, monkeypatch, f"--write-config-to={file}")
    assert key in file.read_text()
    assert url in file.read_text()


def test_where_the_configuration_cannot_be_written_nothing_starts(small: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(FileNotFoundError):  # ksp.cli.main says it in a line
        Started([small, "--write-config-to=/nowhere/file"], monkeypatch)


LEGACY = '{"kind": "Policy", "apiVersion": "v1", "predicates": [], "priorities": []}'


@pytest.mark.parametrize(
    ("rules", "profiles"),
    [("small.ksp", ""), ("policy.json", ""), ("policy.json", "profiles: [{schedulerName: a}, {schedulerName: b}]\n")],
)
def test_beside_a_policy_the_file_that_is_written_says_the_same_when_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rules: str, profiles: str
) -> None:
    written(tmp_path, {"small.ksp": SMALL, "policy.json": LEGACY, "config.yaml": V1 + profiles})
    flag = "--policy-file" if rules.endswith(".ksp") else "--policy-config-file"
    of_rules = f"{flag}={tmp_path / rules}"
    made = tmp_path / "made.yaml"
    assert (
        Started(
            [f"--config={tmp_path / 'config.yaml'}", of_rules, f"--write-config-to={made}"], monkeypatch
        ).result.exit_code
        == 0
    )
    assert "plugins" not in made.read_text()
    one, other = (
        Started([f"--config={file}", of_rules], monkeypatch).options.policy for file in (tmp_path / "config.yaml", made)
    )
    assert one is not None
    assert other is not None
    assert [each.scheduler_name for each in one.profiles] == [each.scheduler_name for each in other.profiles]
    assert "plugins" not in Started([f"--config={made}", of_rules], monkeypatch).options.effective_configuration
