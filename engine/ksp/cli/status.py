"""`ksp status`: by which policy a running scheduler decides, told by itself or by the lease of the one that leads."""

from __future__ import annotations

import asyncio
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

if TYPE_CHECKING:
    from ksp.cli.status_report import Seen
    from ksp.kube.auth.cluster import Cluster

TIMEOUT: Final = 10.0
UNHEALTHY: Final = 3

TRUST: Final = (
    "name who signed it with --certificate-authority; for one that the scheduler made itself, "
    "--insecure-skip-tls-verify with --token"
)
NOT_SENT: Final = "no credentials were sent, since the certificate is not looked at: give --token"


@dataclass(frozen=True, slots=True)
class Asked:
    """The command line."""

    url: str | None
    kubeconfig: str | None
    master: str | None
    namespace: str
    name: str
    token: str | None
    authority: str | None
    insecure: bool


@click.command
@click.option("--url", metavar="URL", help="Ask the scheduler there, such as https://10.0.0.7:10259.")
@click.option("--kubeconfig", metavar="FILE", help="The cluster whose lease is read; and who asks at --url.")
@click.option("--master", metavar="URL", help="The API server's address, instead of the kubeconfig's.")
@click.option(
    "--leader-elect-resource-namespace", "namespace", metavar="NAME", default="kube-system", show_default=True,
    help="Of the lease, as `ksp run` has it.",
)  # fmt: skip
@click.option(
    "--leader-elect-resource-name", "name", metavar="NAME", default="kube-scheduler", show_default=True,
    help="The lease, as `ksp run` has it.",
)  # fmt: skip
@click.option(
    "--token", metavar="TOKEN", envvar="KSP_TOKEN", help="Who asks at --url, instead of the kubeconfig's user."
)
@click.option("--certificate-authority", "authority", metavar="FILE", help="Who signed the certificate at --url (PEM).")
@click.option("--insecure-skip-tls-verify", "insecure", is_flag=True, help="Do not look at the certificate at --url.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
@click.pass_context
def status(
    context: click.Context, url: str | None, kubeconfig: str | None, master: str | None, namespace: str, name: str,
    token: str | None, authority: str | None, insecure: bool, as_json: bool,
) -> None:  # fmt: skip
    """Show which policy a running scheduler decides by.

    Without --url the lease is read, in which the scheduler that leads says so. With it that scheduler is asked, leading
    or not.

    Exits 0 if all is well; 3 if a newer policy was not taken, or nobody leads; 1 if it cannot be found out.
    """
    from ksp.cli.status_report import as_text, problems, to_json
    from ksp.kube.errors import KubeError

    asked = Asked(url, kubeconfig, master, namespace, name, token, authority, insecure)
    try:
        seen = asyncio.run(_by_url(asked) if url else _by_lease(asked))
    except KubeError as error:
        raise click.ClickException(_explained(error, asked)) from error
    click.echo(to_json(seen) if as_json else as_text(seen))
    if seen.status is None and seen.holder:
        sys.stdout.flush()
        raise click.ClickException(f"{seen.holder} says nothing of its policy: is it ksp?")
    context.exit(UNHEALTHY if problems(seen) else 0)


def _explained(error: Exception, asked: Asked) -> str:
    """What went wrong, and what to do about it on this command line."""
    from ksp.kube.errors import ApiError
    from ksp.kube.http.connection import AUTHORITY
    from ksp.kube.http.forbidden import explained

    if not asked.url:
        return explained(error) if isinstance(error, ApiError) else str(error)
    if isinstance(error, ApiError) and error.status in (401, 403) and asked.insecure and not asked.token:
        return f"{error}; {NOT_SENT}"
    return str(error).replace(AUTHORITY, TRUST)


async def _by_lease(asked: Asked) -> Seen:
    """Raises KubeError."""
    from ksp.cli.status_report import seen_in
    from ksp.kube.auth.config import load_cluster
    from ksp.kube.http.client import Client
    from ksp.kube.leader_election.lease import LeaseLock
    from ksp.kube.wall_clock import SystemWallClock

    async with Client(load_cluster(asked.kubeconfig, asked.master, os.environ)) as client:
        lease = await LeaseLock(client, asked.namespace, asked.name).read(TIMEOUT)
    where = f"{asked.namespace}/{asked.name}"
    if lease is None:
        flags = "--leader-elect-resource-namespace and --leader-elect-resource-name name another"
        raise click.ClickException(f"there is no lease {where}: no scheduler is elected by it; {flags}, --url asks one")
    return seen_in(lease, where, SystemWallClock().wall())


async def _by_url(asked: Asked) -> Seen:
    """Raises KubeError."""
    from ksp.cli.status_report import seen_at
    from ksp.kube.http.client import Client

    async with Client(_scheduler(asked)) as client:
        return seen_at((await client.request("GET", "/policyz", timeout=TIMEOUT, retry=False)).body)


def _scheduler(asked: Asked) -> Cluster:
    """The scheduler, as something that is asked. Credentials of a kubeconfig go to nobody whose certificate is not
    looked at, and no credentials at all go without TLS."""
    from ksp.kube.auth.cluster import Cluster, server_url
    from ksp.kube.auth.config import load_cluster
    from ksp.kube.auth.credentials import User, bearer
    from ksp.kube.auth.tls import Pem, Trust
    from ksp.kube.errors import ConfigError

    address = server_url(asked.url or "", "--url", encrypted=True)
    if not address.startswith("https://"):
        return Cluster(address, "--url")
    own = User(bearer(asked.token, "--token")) if asked.token else None
    pem = Pem("--certificate-authority", Path(asked.authority)) if asked.authority else None
    if asked.insecure:
        return Cluster(address, "--url", Trust(verify=False), own or User())
    if pem is not None and own is not None:
        return Cluster(address, "--url", Trust(pem), own)
    try:
        known = load_cluster(asked.kubeconfig, None, os.environ)
    except ConfigError:
        if asked.kubeconfig:
            raise
        return Cluster(address, "--url", Trust(pem), own or User())
    return Cluster(address, "--url", Trust(pem or known.trust.authority), own or known.user)
