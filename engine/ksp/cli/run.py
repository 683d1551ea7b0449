"""`ksp run`: schedules the pods of a cluster."""

from __future__ import annotations

import math

import click

from ksp.cli.feature_gates import EQUIVALENCE_CLASSES, feature_gates


def _finite(_context: click.Context, _option: click.Parameter, value: float) -> float:
    if not math.isfinite(value):
        raise click.BadParameter(f"{value} is not a number that can be used")
    return value


def _name(_context: click.Context, _option: click.Parameter, value: str | None) -> str | None:
    if value is not None and not value.strip():
        raise click.BadParameter("the name is empty")
    return value


class _Seconds(click.FloatRange):
    """A plain number: no `30s`."""

    name = "number of seconds"


@click.command
@click.option(
    "--kubeconfig", metavar="FILE", help="How to reach the cluster (KUBECONFIG, ~/.kube/config or the pod's)."
)
@click.option("--master", metavar="URL", help="The API server's address, instead of the kubeconfig's.")
@click.option("--scheduler-name", metavar="NAME", callback=_name, help="Schedule the pods that name this scheduler.")
@click.option("--policy-file", metavar="FILE", help="The rules (those of kube-scheduler 1.19 if not given).")
@click.option("--policy-dir", metavar="DIR", help="The rules: all profiles of the *.ksp files below the folder.")
@click.option(
    "--algorithm-provider",
    type=click.Choice(["DefaultProvider", "ClusterAutoscalerProvider"]),
    help="The rules: one of kube-scheduler's providers.",
)
@click.option(
    "--percentage-of-nodes-to-score",
    "percentage",
    type=click.IntRange(0, 100),
    metavar="N",
    help="Instead of what the policy says; 0 adapts to the cluster's size.",
)
@click.option(
    "--unread-fields",
    type=click.Choice(["refuse", "warn", "ignore"]),
    default="refuse",
    show_default=True,
    help="Pods that ask for what the policy does not read: let them wait, bind them with a warning, or say nothing.",
)
@click.option(
    "--kube-api-qps",
    "qps",
    type=click.FloatRange(0),
    callback=_finite,
    default=50.0,
    show_default=True,
    help="Requests a second to the API server in the long run; 0 is no limit.",
)
@click.option(
    "--kube-api-burst",
    "burst",
    type=click.IntRange(1),
    default=100,
    show_default=True,
    help="Requests at once, and bindings on their way at a time.",
)
@click.option(
    "--watch-inactivity",
    type=_Seconds(1),
    callback=_finite,
    metavar="SECONDS",
    default=60.0,
    show_default=True,
    help="Give up a watch that has been silent for so long, and open it again.",
)
@click.option(
    "--assumed-pod-ttl",
    type=_Seconds(0),
    callback=_finite,
    metavar="SECONDS",
    default=0.0,
    show_default=True,
    help="Forget a pod that was bound if no watch shows it for so long; 0 is never, which is safer.",
)
@click.option("--bind-address", metavar="IP", default="127.0.0.1", show_default=True, help="For health and metrics.")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=10251, show_default=True, help="For health and metrics; 0 is none."
)
@click.option("--seed", type=int, help="Of the dice that choose among equal nodes, so that a run can be repeated.")
@click.option(
    "--feature-gates",
    "gates",
    multiple=True,
    callback=feature_gates,
    metavar="NAME=BOOL,...",
    help=f"{EQUIVALENCE_CLASSES}=false: decide for each pod as if there had been none before it.",
)
@click.option(
    "-v",
    "--v",
    "verbosity",
    type=click.IntRange(0, 10),
    default=0,
    metavar="N",
    help="Log more: 2 each decision, 10 all.",
)
def run(
    kubeconfig: str | None, master: str | None, scheduler_name: str | None, policy_file: str | None,
    policy_dir: str | None, algorithm_provider: str | None, percentage: int | None, unread_fields: str, qps: float,
    burst: int, watch_inactivity: float, assumed_pod_ttl: float, bind_address: str, port: int, seed: int | None,
    gates: dict[str, bool], verbosity: int,
) -> None:  # fmt: skip
    """Schedule the pods of a cluster.

    Watches the cluster, decides by the rules of the policy, and binds. Runs until SIGTERM or SIGINT: then the bindings
    on their way finish, and it exits 0. Exits 1 if the policy, the kubeconfig or the credentials cannot be used.
    """
    from ksp.cli.run_policy import chosen_policy
    from ksp.kube.errors import ConfigError
    from ksp.policy.unread import UnreadFields
    from ksp.runtime.log import set_up
    from ksp.runtime.options import Options
    from ksp.runtime.process import run_process

    policy = chosen_policy(policy_file, policy_dir, algorithm_provider, scheduler_name, percentage)
    options = Options(
        policy, kubeconfig, master, qps=qps, burst=burst, unread_fields=UnreadFields(unread_fields),
        bind_address=bind_address, port=port or None, watch_inactivity=watch_inactivity, seed=seed,
        equivalence_classes=gates[EQUIVALENCE_CLASSES], assumed_ttl=assumed_pod_ttl or None,
    )  # fmt: skip
    set_up(verbosity)
    try:
        run_process(options)
    except ConfigError as error:
        raise click.ClickException(str(error)) from error
