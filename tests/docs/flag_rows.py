"""The tables of `docs/flags.md`: what follows from the table of flags, kube-scheduler's list, and the tests that show
what each flag does.

`python -m tests.docs.flag_rows` writes the generated ones anew.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from ksp.cli.scheduler_flags.command import shown_default, shown_value
from ksp.cli.scheduler_flags.flag import Flag, Section
from ksp.cli.scheduler_flags.table import FLAGS

ROOT: Final = Path(__file__).parents[2]
PAGE: Final = ROOT / "docs" / "flags.md"
BEGIN, END = "<!-- flags -->", "<!-- end of flags -->"

# All flags of kube-scheduler 1.19 with their defaults, as its --help has them; -h and --help aside.
KUBE_SCHEDULER: Final = {
    "config": "", "write-config-to": "", "master": "",
    "bind-address": "0.0.0.0", "secure-port": "10259", "cert-dir": "", "tls-cert-file": "", "tls-private-key-file": "",
    "tls-cipher-suites": "", "tls-min-version": "", "tls-sni-cert-key": "", "http2-max-streams-per-connection": "0",
    "permit-port-sharing": "false", "address": "0.0.0.0", "port": "10251",
    "authentication-kubeconfig": "", "authentication-token-webhook-cache-ttl": "10s",
    "authentication-skip-lookup": "false", "authentication-tolerate-lookup-failure": "true", "client-ca-file": "",
    "requestheader-client-ca-file": "", "requestheader-allowed-names": "",
    "requestheader-username-headers": "x-remote-user", "requestheader-group-headers": "x-remote-group",
    "requestheader-extra-headers-prefix": "x-remote-extra-",
    "authorization-kubeconfig": "", "authorization-webhook-cache-authorized-ttl": "10s",
    "authorization-webhook-cache-unauthorized-ttl": "10s", "authorization-always-allow-paths": "/healthz",
    "algorithm-provider": "", "policy-config-file": "", "policy-configmap": "",
    "policy-configmap-namespace": "kube-system", "use-legacy-policy-config": "false", "profiling": "true",
    "contention-profiling": "true", "kubeconfig": "",
    "kube-api-content-type": "application/vnd.kubernetes.protobuf", "kube-api-qps": "50", "kube-api-burst": "100",
    "lock-object-namespace": "kube-system", "lock-object-name": "kube-scheduler",
    "hard-pod-affinity-symmetric-weight": "1", "scheduler-name": "default-scheduler",
    "leader-elect": "true", "leader-elect-lease-duration": "15s", "leader-elect-renew-deadline": "10s",
    "leader-elect-retry-period": "2s", "leader-elect-resource-lock": "endpointsleases",
    "leader-elect-resource-name": "kube-scheduler", "leader-elect-resource-namespace": "kube-system",
    "feature-gates": "", "show-hidden-metrics-for-version": "", "logging-format": "text",
    "version": "false", "add-dir-header": "false", "alsologtostderr": "false", "log-backtrace-at": ":0", "log-dir": "",
    "log-file": "", "log-file-max-size": "1800", "log-flush-frequency": "5s", "logtostderr": "true",
    "skip-headers": "false", "skip-log-headers": "false", "stderrthreshold": "2", "v": "0", "vmodule": "",
}  # fmt: skip

_ACCESS: Final = "unit/runtime/access/test_secure_port.py::test_"
_POLICY: Final = "unit/cli/test_run_policy.py::test_"
_ASSEMBLE: Final = "unit/policy/test_assemble.py::test_"
_RUN: Final = "unit/cli/test_run.py::test_"
_RELOAD: Final = "cluster/test_reload.py::test_"
_ELECTOR: Final = "unit/kube/leader_election/test_elector.py::test_"
_LOG: Final = "unit/runtime/test_log.py::test_"
_OPTIONS: Final = "unit/cli/test_run_options.py::test_"
REACHES: Final = f"{_OPTIONS}a_flag_reaches_what_it_is_for"
MEANINGLESS: Final = f"{_OPTIONS}a_flag_without_meaning_changes_nothing_and_is_told"

# Beside REACHES, the tests that show what a flag does; with `only`, instead of it.
EFFECTS: Final = {
    "master": (
        f"{_RUN}a_server_that_is_away_is_waited_for_and_named_and_warnings_of_the_policy_are_said",),
    "kubeconfig": (f"{_RUN}the_first_lines_say_what_runs",),
    "kube-api-qps": (f"{_RUN}the_first_lines_say_what_runs",),
    "scheduler-name": (f"{_RUN}a_scheduler_of_another_name_leaves_the_rest_alone",),
    "percentage-of-nodes-to-score": (
        f"{_ASSEMBLE}the_percentage_of_the_flag_then_the_profile_then_the_file_then_100",),
    "hard-pod-affinity-symmetric-weight": (f"{_ASSEMBLE}the_weight_of_the_flag_counts_where_the_policy_does_not_say",),
    "feature-gates": ("unit/cli/test_feature_gates.py::test_mistakes",),
    "assumed-pod-ttl": (f"{_RUN}assumed_pods_expire_only_if_told_so",),
    "policy-max-denied-ratio": (f"{_RELOAD}a_policy_under_which_nothing_fits_goes_back_by_itself",),
    "leader-elect": (
        f"{_ELECTOR}the_first_one_makes_the_lease_and_renews_it_each_retry_period",),
    "leader-elect-lease-duration": (
        f"{_ELECTOR}a_crashed_leader_is_followed_when_its_lease_has_not_changed_for_its_duration",),
    "leader-elect-renew-deadline": (
        f"{_ELECTOR}a_leader_that_cannot_renew_has_lost_before_anybody_else_may_lead",),
    "leader-elect-retry-period": (
        f"{_ELECTOR}a_candidate_waits_for_a_retry_period_and_up_to_1_2_of_it_by_chance",),
    "port": (f"{_RUN}health_and_metrics_are_served",),
    "secure-port": (f"{_ACCESS}probes_need_nobodys_leave",),
    "cert-dir": (f"{_ACCESS}a_folder_of_certificates_is_filled_once",),
    "tls-cert-file": (f"{_ACCESS}certificate_files_are_read_again_when_they_change",),
    "tls-private-key-file": (f"{_ACCESS}certificate_files_are_read_again_when_they_change",),
    "tls-sni-cert-key": (f"{_ACCESS}certificates_for_several_names",),
    "tls-min-version": (f"{_ACCESS}old_versions_of_tls_can_be_refused",),
    "tls-cipher-suites": (f"{_ACCESS}cipher_suites_can_be_chosen",),
    "authentication-token-webhook-cache-ttl": (f"{_ACCESS}lifetimes_are_those_of_the_flags",),
    "authorization-webhook-cache-authorized-ttl": (f"{_ACCESS}lifetimes_are_those_of_the_flags",),
    "authorization-webhook-cache-unauthorized-ttl": (f"{_ACCESS}lifetimes_are_those_of_the_flags",),
    "authentication-skip-lookup": (f"{_ACCESS}a_file_goes_before_the_cluster_and_skipping_asks_nobody",),
    "client-ca-file": (f"{_ACCESS}a_client_certificate_is_a_user_and_its_groups",),
    "authentication-tolerate-lookup-failure": (f"{_ACCESS}a_lookup_that_fails_is_tolerated_or_not",),
    "requestheader-client-ca-file": (f"{_ACCESS}proxies_of_the_flags",),
    "requestheader-allowed-names": (f"{_ACCESS}proxies_of_the_flags",),
    "requestheader-username-headers": (f"{_ACCESS}proxies_of_the_flags",),
    "requestheader-group-headers": (f"{_ACCESS}proxies_of_the_flags",),
    "requestheader-extra-headers-prefix": (f"{_ACCESS}proxies_of_the_flags",),
    "authorization-always-allow-paths": (f"{_ACCESS}the_paths_that_are_always_allowed_can_be_chosen",),
    "logging-format": (f"{_LOG}json_has_one_object_a_line",),
    "logtostderr": (f"{_LOG}a_file_gets_all_and_stderr_what_is_grave",),
    "log-file": (f"{_LOG}a_file_gets_all_and_stderr_what_is_grave",),
    "stderrthreshold": (f"{_LOG}a_file_gets_all_and_stderr_what_is_grave",),
    "log-file-max-size": (f"{_LOG}a_file_that_is_full_begins_anew",),
    "v": (f"{_RUN}it_schedules_until_a_signal_comes_and_exits_0",),
}  # fmt: skip
ONLY: Final = {
    "policy-file": (f"{_POLICY}a_file_a_folder_and_a_policy_of_kube_scheduler_are_read",),
    "policy-dir": (f"{_POLICY}a_file_a_folder_and_a_policy_of_kube_scheduler_are_read",),
    "policy-config-file": (f"{_POLICY}a_file_a_folder_and_a_policy_of_kube_scheduler_are_read",),
    "policy-configmap": (
        f"{_RELOAD}a_config_map_is_followed_and_its_events_say_what_became_of_it",),
    "policy-configmap-namespace": (f"{_POLICY}a_config_map_of_another_namespace_has_to_be_meant",),
    "use-legacy-policy-config": (
        f"{_POLICY}the_config_map_comes_before_the_file_unless_the_legacy_file_is_wanted",),
    "algorithm-provider": (f"{_ASSEMBLE}kube_schedulers_providers",),
    "config": (
        f"{_OPTIONS}a_file_says_what_flags_say_too",
        "cluster/test_profiles.py::test_each_pod_by_its_own_rules_and_all_in_one_cache",
    ),
    "write-config-to": (f"{_OPTIONS}the_configuration_in_effect_is_written_and_says_the_same_when_it_is_read",),
    "version": (f"{_OPTIONS}the_version",),
}  # fmt: skip


def shown_by(flag: Flag) -> tuple[str, ...]:
    """The tests that show what a flag does, below `tests/`."""
    if flag.meaningless:
        return (MEANINGLESS,)
    return ONLY.get(flag.name) or (REACHES, *EFFECTS.get(flag.name, ()))


def row(flag: Flag) -> str:
    """The flag's row of its table."""
    short = f"`-{flag.short}`, " if flag.short else ""
    value = shown_value(flag)
    name = f"{short}`--{flag.name}{f' {value}' if value else ''}`".replace("|", "\\|")
    default = f"`{found}`" if (found := shown_default(flag)) and not flag.unsaid else found
    return f"| {name} | {default} | {_text(flag)} | {', '.join(map(_shown, shown_by(flag)))} |"


def _text(flag: Flag) -> str:
    if flag.meaningless:
        return f"No meaning here: {flag.meaningless}."
    text = flag.help
    if flag.deprecated:
        text += f" Deprecated: {flag.deprecated}"
    if flag.field:
        text += f" Beside `--config` the file's `{flag.field}` counts."
    return text


def _shown(test: str) -> str:
    letters = {REACHES: "R", MEANINGLESS: "M"}
    return letters.get(test) or f"`{test}`"


def tables() -> str:
    """All rows, a table for each section."""
    parts = []
    for section in Section:
        rows = [row(flag) for flag in FLAGS if flag.section is section]
        head = ["| flag | default | what it does here | shown by |", "| --- | --- | --- | --- |"]
        parts.append("\n".join([f"### {section.value}", "", *head, *rows]))
    return "\n\n".join(parts)


def with_tables(page: str) -> str:
    """The page with these tables."""
    return re.sub(f"{BEGIN}.*{END}", lambda _: f"{BEGIN}\n{tables()}\n{END}", page, flags=re.DOTALL)


if __name__ == "__main__":
    PAGE.write_text(with_tables(PAGE.read_text("utf-8")), "utf-8")
