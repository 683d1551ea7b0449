"""Which cluster ksp talks to: flags, the pod that it runs in, or a kubeconfig.

The order is that of client-go's BuildConfigFromFlags, and then of kubectl:

1. `--kubeconfig`, with `--master` in the place of its server; `--master` alone is that address without credentials;
2. the service account of the pod, if there is one;
3. the files of $KUBECONFIG, or ~/.kube/config.

A kubeconfig's `proxy-url` goes before the environment's proxy.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

from ksp.kube.auth.aio_config import in_cluster_host
from ksp.kube.auth.cluster import Cluster, server_url
from ksp.kube.auth.credentials import User, token_in
from ksp.kube.auth.environment_proxy import proxy_for
from ksp.kube.auth.kubeconfig import cluster_of, read_kubeconfig
from ksp.kube.auth.tls import Pem, Trust
from ksp.kube.errors import ConfigError

__all__ = ["Cluster", "cluster_of", "load_cluster"]

SERVICE_ACCOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")
IN_CLUSTER: Final = "KUBERNETES_SERVICE_HOST"


def load_cluster(
    kubeconfig: str | None,
    master: str | None,
    environ: Mapping[str, str],
    service_account: Path = SERVICE_ACCOUNT,
) -> Cluster:
    """The cluster that `--kubeconfig`, `--master` and the environment name; empty values count as not given.

    ConfigError where it cannot be told. Certificates, tokens and plugins are tried by `Client`, when it is entered.
    """
    cluster = _found(kubeconfig, master, environ, service_account)
    return cluster if cluster.proxy is not None else replace(cluster, proxy=proxy_for(cluster.server, environ))


def _found(kubeconfig: str | None, master: str | None, environ: Mapping[str, str], service_account: Path) -> Cluster:
    if kubeconfig:
        return _from_flags(Path(kubeconfig).expanduser(), master)
    if master:
        return Cluster(server_url(master, "--master", encrypted=False), "--master")
    if environ.get(IN_CLUSTER) and (service_account / "token").exists():
        return _in_cluster(environ, service_account)
    return _from_environment(environ)


def _from_flags(path: Path, master: str | None) -> Cluster:
    if not path.exists():
        raise ConfigError(f"--kubeconfig: there is no file {path}; name the kubeconfig of the cluster")
    cluster = read_kubeconfig([path], master)
    return replace(cluster, origin=f"{cluster.origin}, server of --master") if master else cluster


def _from_environment(environ: Mapping[str, str]) -> Cluster:
    listed = [Path(path).expanduser() for path in environ.get("KUBECONFIG", "").split(os.pathsep) if path]
    home = Path(environ.get("HOME") or Path.home()) / ".kube" / "config"
    paths = [path for path in listed or [home] if path.exists()]
    if paths:
        return read_kubeconfig(paths, None)
    missing = f"$KUBECONFIG names no file ({', '.join(map(str, listed))})" if listed else f"there is no {home}"
    pod = f", the pod has no service account token in {SERVICE_ACCOUNT}" if environ.get(IN_CLUSTER) else ""
    raise ConfigError(f"no cluster is configured: {missing}{pod}; give --kubeconfig FILE or --master URL")


def _in_cluster(environ: Mapping[str, str], service_account: Path) -> Cluster:
    token, authority = service_account / "token", service_account / "ca.crt"
    token_in(token)  # its mistakes are clearer than those of the loader, which also keeps the newline
    return Cluster(
        server_url(in_cluster_host(token, authority, environ), IN_CLUSTER, encrypted=True),
        f"the pod's service account ({service_account})",
        Trust(Pem("the service account's certificate authority", authority)),
        User(token_file=token),
    )
