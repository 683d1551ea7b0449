"""All flags of `ksp run`: those of kube-scheduler 1.19 under their names, and ksp's own.

docs/flags.md has a row for each; tests/docs holds both against kube-scheduler's list.
"""

from __future__ import annotations

from typing import Final

import click

from ksp.cli.scheduler_flags.flag import Flag, Section
from ksp.cli.scheduler_flags.values import Address, Bool, Duration, Name, Number, Strings, Texts, ValueType

_TEXT: Final = click.STRING
_PERCENT: Final = click.IntRange(0, 100)
_INSTEAD: Final = "say it in the file of --policy-config-file or --config instead."
_POLICIES: Final = "write the rules as a policy of ksp (--policy-file), as `ksp convert` does."

RULES: Final = (
    Flag("policy-file", Section.RULES, _TEXT, None, "The rules: a file of ksp's policy language, with its imports.",
         "FILE"),
    Flag("policy-dir", Section.RULES, _TEXT, None, "The rules: all profiles of the *.ksp files below the folder.",
         "DIR"),
    Flag("policy-configmap", Section.RULES, Name(), None,
         "The rules: the keys *.ksp of a ConfigMap, or its key policy.cfg.", "NAME"),
    Flag("policy-configmap-namespace", Section.RULES, Name(), None,
         "Where the ConfigMap is.", "NAMESPACE", unsaid="the scheduler's own"),
    Flag("policy-config-file", Section.RULES, _TEXT, None,
         "The rules: a Policy of kube-scheduler, JSON or YAML, unless --policy-configmap names one.", "FILE",
         deprecated=_POLICIES),
    Flag("use-legacy-policy-config", Section.RULES, Bool(), False,
         "Take the file of --policy-config-file, even beside --policy-configmap.", deprecated=_POLICIES),
    Flag("algorithm-provider", Section.RULES, click.Choice(["DefaultProvider", "ClusterAutoscalerProvider"]), None,
         "The rules: one of kube-scheduler's providers.",
         deprecated="import ksp:default.ksp or ksp:cluster-autoscaler.ksp in a policy instead."),
    Flag("config", Section.RULES, _TEXT, None,
         "A KubeSchedulerConfiguration (v1beta1 to v1): profiles by plugins, extenders, and what flags say too.",
         "FILE"),
    Flag("write-config-to", Section.RULES, _TEXT, None, "Write the configuration that is in effect, and exit.", "FILE"),
    Flag("scheduler-name", Section.RULES, Name(), None,
         "Schedule the pods that name this scheduler, whatever name the policy's one profile has.", "NAME",
         field="profiles[].schedulerName", unsaid="the policy's, else default-scheduler"),
    Flag("policy-max-denied-ratio", Section.RULES, Number(0, 1), 0.9,
         "Go back to the rules before if new ones deny more than this share of the pods that either places; 1: never.",
         "N"),
)  # fmt: skip

DECISIONS: Final = (
    Flag("percentage-of-nodes-to-score", Section.DECISIONS, _PERCENT, None,
         "Of all profiles; 0 adapts to the cluster's size.", "N", unsaid="the policy's, else 100"),
    Flag("hard-pod-affinity-symmetric-weight", Section.DECISIONS, _PERCENT, None,
         "What a required affinity of a pod counts for those that match it, where the policy does not say.", "N",
         deprecated=_INSTEAD, field="profiles[].pluginConfig[].args.hardPodAffinityWeight", unsaid="1"),
    Flag("unread-fields", Section.DECISIONS, click.Choice(["refuse", "warn", "ignore"]), "refuse",
         "Pods that ask for what the policy does not read: let them wait, bind them with a warning, or say nothing."),
    Flag("assumed-pod-ttl", Section.DECISIONS, Duration(plain=True), 0.0,
         "Forget a pod that was bound if no watch shows it for so long; 0 is never, which is safer.", "DURATION"),
    Flag("feature-gates", Section.DECISIONS, Texts(), (),
         "Switches, NAME=true,NAME=false: EnableEquivalenceClassCache=false decides for each pod as if there had been "
         "none before it; those of kube-scheduler only with the value that these rules have.", "NAME=BOOL,..."),
    Flag("seed", Section.DECISIONS, click.INT, None,
         "Of the dice that choose among equal nodes, so that a run can be repeated.", "N"),
)  # fmt: skip

CLUSTER: Final = (
    Flag("kubeconfig", Section.CLUSTER, _TEXT, None,
         "How to reach the cluster (else the pod's service account, KUBECONFIG, ~/.kube/config).", "FILE",
         field="clientConnection.kubeconfig"),
    Flag("master", Section.CLUSTER, _TEXT, None, "The API server's address, instead of the kubeconfig's.", "URL"),
    Flag("kube-api-qps", Section.CLUSTER, Number(0), 50.0,
         "Requests a second to the API server in the long run; 0 is no limit.", "N", field="clientConnection.qps"),
    Flag("kube-api-burst", Section.CLUSTER, click.IntRange(1), 100,
         "Requests at once, and bindings on their way at a time.", "N", field="clientConnection.burst"),
    Flag("watch-inactivity", Section.CLUSTER, Duration(1, plain=True), 60.0,
         "Give up a watch that has been silent for so long, and open it again.", "DURATION"),
)  # fmt: skip

ELECTION: Final = (
    Flag("leader-elect", Section.ELECTION, Bool(), True,
         "Schedule only while holding a Lease, so that several can run and one decides."),
    Flag("leader-elect-lease-duration", Section.ELECTION, Duration(), 15.0,
         "How long others wait for a leader that does not renew.", "DURATION"),
    Flag("leader-elect-renew-deadline", Section.ELECTION, Duration(), 10.0,
         "How long a leader tries to renew before it ends.", "DURATION"),
    Flag("leader-elect-retry-period", Section.ELECTION, Duration(), 2.0, "How long between two tries.", "DURATION"),
    Flag("leader-elect-resource-lock", Section.ELECTION,
         click.Choice(["leases", "endpoints", "configmaps", "endpointsleases", "configmapsleases"]), "leases",
         "What is held: a Lease, whichever is named."),
    Flag("leader-elect-resource-name", Section.ELECTION, Name(), "kube-scheduler", "The Lease's name.", "NAME"),
    Flag("leader-elect-resource-namespace", Section.ELECTION, Name(), "kube-system", "Its namespace.", "NAMESPACE"),
    Flag("lock-object-name", Section.ELECTION, Name(), None, "The Lease's name.", "NAME",
         deprecated="use --leader-elect-resource-name instead.", field="leaderElection.resourceName",
         unsaid="kube-scheduler"),
    Flag("lock-object-namespace", Section.ELECTION, Name(), None, "Its namespace.", "NAMESPACE",
         deprecated="use --leader-elect-resource-namespace instead.", field="leaderElection.resourceNamespace",
         unsaid="kube-system"),
)  # fmt: skip

SERVING: Final = (
    Flag("bind-address", Section.SERVING, Address(), "0.0.0.0", "Where --secure-port listens.", "IP"),  # noqa: S104 - kube-scheduler's
    Flag("secure-port", Section.SERVING, click.IntRange(0, 65535), 10259, "The port, with TLS; 0 is none.", "PORT"),
    Flag("cert-dir", Section.SERVING, _TEXT, None,
         "Where a certificate is kept that nobody gave; without it, it is made in memory at each start.", "DIR"),
    Flag("tls-cert-file", Section.SERVING, _TEXT, None, "The certificate, with those that issued it.", "FILE"),
    Flag("tls-private-key-file", Section.SERVING, _TEXT, None, "Its key.", "FILE"),
    Flag("tls-cipher-suites", Section.SERVING, Strings(), (), "Cipher suites, by the names of IANA.", "NAME,..."),
    Flag("tls-min-version", Section.SERVING,
         click.Choice(["VersionTLS10", "VersionTLS11", "VersionTLS12", "VersionTLS13"]), None, "The oldest TLS."),
    Flag("tls-sni-cert-key", Section.SERVING, Texts(), (),
         "A certificate and its key, and the names that they are for; may be repeated.", "CERT,KEY[:NAME,...]"),
    Flag("address", Section.SERVING, Address(), "0.0.0.0", "Where --port listens.", "IP",  # noqa: S104 - kube-scheduler's
         deprecated="see --bind-address instead."),
    Flag("port", Section.SERVING, click.IntRange(0, 65535), 0,
         "A port for health and metrics without TLS, for everybody; 0 is none.", "PORT",
         deprecated="see --secure-port instead."),
)  # fmt: skip

AUTHENTICATION: Final = (
    Flag("authentication-kubeconfig", Section.AUTHENTICATION, _TEXT, None,
         "The server that knows tokens, if not the scheduler's own.", "FILE"),
    Flag("authentication-skip-lookup", Section.AUTHENTICATION, Bool(), False,
         "Do not ask the cluster for its client certificates."),
    Flag("authentication-token-webhook-cache-ttl", Section.AUTHENTICATION, Duration(), 10.0,
         "How long an answer about a token counts.", "DURATION"),
    Flag("authentication-tolerate-lookup-failure", Section.AUTHENTICATION, Bool(), True,
         "Start even if the cluster does not tell its client certificates."),
    Flag("client-ca-file", Section.AUTHENTICATION, _TEXT, None, "Who issues client certificates.", "FILE"),
    Flag("requestheader-client-ca-file", Section.AUTHENTICATION, _TEXT, None,
         "Who issues the certificates of proxies that say in headers who asks.", "FILE"),
    Flag("requestheader-allowed-names", Section.AUTHENTICATION, Strings(), (), "Their names; any if none.", "NAME,..."),
    Flag("requestheader-username-headers", Section.AUTHENTICATION, Strings(), ("x-remote-user",),
         "Headers with the user.", "NAME,..."),
    Flag("requestheader-group-headers", Section.AUTHENTICATION, Strings(), ("x-remote-group",),
         "Headers with the groups.", "NAME,..."),
    Flag("requestheader-extra-headers-prefix", Section.AUTHENTICATION, Strings(), ("x-remote-extra-",),
         "How headers with the rest begin.", "PREFIX,..."),
    Flag("authorization-kubeconfig", Section.AUTHENTICATION, _TEXT, None,
         "The server that knows who may what, if not the scheduler's own.", "FILE"),
    Flag("authorization-webhook-cache-authorized-ttl", Section.AUTHENTICATION, Duration(), 10.0,
         "How long a yes counts.", "DURATION"),
    Flag("authorization-webhook-cache-unauthorized-ttl", Section.AUTHENTICATION, Duration(), 10.0,
         "How long a no counts.", "DURATION"),
    Flag("authorization-always-allow-paths", Section.AUTHENTICATION, Strings(), ("/healthz", "/livez", "/readyz"),
         "What everybody may ask for.", "PATH,..."),
)  # fmt: skip

LOG: Final = (
    Flag("v", Section.LOG, click.IntRange(0, 10, clamp=True), 0, "Log more: 2 each decision, 10 all.", "N", short="v"),
    Flag("logging-format", Section.LOG, click.Choice(["text", "json"]), "text", "How entries are written."),
    Flag("logtostderr", Section.LOG, Bool(), True, "Log to stderr, not to files."),
    Flag("alsologtostderr", Section.LOG, Bool(), False, "Log to stderr, and to files."),
    Flag("stderrthreshold", Section.LOG, click.Choice(["0", "1", "2", "3", "INFO", "WARNING", "ERROR", "FATAL"]), "2",
         "What goes to stderr too where the log goes to files: 0 all, 1 warnings, 2 errors."),
    Flag("log-file", Section.LOG, _TEXT, None, "The file, with --logtostderr=false.", "FILE"),
    Flag("log-dir", Section.LOG, _TEXT, None, "The folder of a file ksp.log, with --logtostderr=false.", "DIR"),
    Flag("log-file-max-size", Section.LOG, click.IntRange(0), 1800,
         "MiB after which the file is begun anew, and the old one kept as FILE.1; 0 is no limit.", "MIB"),
)  # fmt: skip

OTHER: Final = (
    Flag("version", Section.OTHER, Bool(), False, "Print the version, and exit."),
)  # fmt: skip

_GO: Final = "it is about the Go runtime"
_LINES: Final = "entries have neither headers of files nor the places that wrote them"


def _none(name: str, type: ValueType, default: object, why: str, metavar: str = "", field: str = "") -> Flag:
    help = why[:1].upper() + why[1:] + "."
    return Flag(name, Section.MEANINGLESS, type, default, help, metavar, meaningless=why, field=field)


MEANINGLESS: Final = (
    _none("profiling", Bool(), True, _GO, field="enableProfiling"),
    _none("contention-profiling", Bool(), True, _GO, field="enableContentionProfiling"),
    _none("kube-api-content-type", _TEXT, "application/json", "objects come as JSON", "TYPE",
          field="clientConnection.contentType"),
    _none("http2-max-streams-per-connection", click.IntRange(0), 0, "health and metrics are served by HTTP/1.1", "N"),
    _none("permit-port-sharing", Bool(), False, "a port is never shared"),
    _none("show-hidden-metrics-for-version", _TEXT, "", "no metric is hidden", "VERSION"),
    _none("add-dir-header", Bool(), False, _LINES),
    _none("skip-headers", Bool(), False, _LINES),
    _none("skip-log-headers", Bool(), False, _LINES),
    _none("log-backtrace-at", _TEXT, ":0", _LINES, "PLACE"),
    _none("vmodule", _TEXT, "", "the level is the same everywhere: use -v", "PATTERN=N,..."),
    _none("log-flush-frequency", Duration(), 5.0, "each entry is written at once", "DURATION"),
)  # fmt: skip

FLAGS: Final = (
    *RULES, *CLUSTER, *DECISIONS, *ELECTION, *SERVING, *AUTHENTICATION, *LOG, *OTHER, *MEANINGLESS
)  # fmt: skip
"""In the order of `--help`."""
