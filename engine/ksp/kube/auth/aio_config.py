"""The parts of `kubernetes.aio.config` that ksp uses, with types. Imported when called: that takes half a second.

What is left aside, and why: `KubeConfigLoader` logs and goes on where a plugin fails, takes `token` before `tokenFile`,
counts credentials as expired five minutes early, and leaves keys in /tmp; `ExecProvider.run` waits for ever for a
plugin that hangs or that writes much to its standard error; `OpenIDRequestor` does not verify the provider.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from ksp.kube.errors import ConfigError


def merged(paths: Sequence[Path]) -> Any:
    """The entries of kubeconfigs as a ConfigNode, of two with the same name the first; each entry knows its file.

    The files exist and have the shape of kubeconfigs. Their `current-context` is not merged as kubectl does it.
    """
    from kubernetes.aio.config.kube_config import KubeConfigMerger  # noqa: PLC0415 - see above

    return KubeConfigMerger(os.pathsep.join(map(str, paths))).config  # type: ignore[no-untyped-call]


def node(document: Mapping[str, Any], path: Path) -> Any:
    """A document that is no file, as a ConfigNode; its relative paths start beside `path`."""
    from kubernetes.aio.config.kube_config import ConfigNode  # noqa: PLC0415 - see above

    return ConfigNode(str(path), document, str(path))  # type: ignore[no-untyped-call]


def command_line(entry: Mapping[str, Any]) -> tuple[tuple[str, ...], dict[str, str]]:
    """Arguments and environment of a user's `exec`, which is known to have the right types."""
    from kubernetes.aio.config.exec_provider import ExecProvider  # noqa: PLC0415 - see above

    provider = ExecProvider(node(entry, Path("exec")))  # type: ignore[no-untyped-call]
    return tuple(provider.args), dict(provider.env)


def seconds_since_1970(text: str) -> float:
    """A time as RFC 3339 writes it. ValueError where it is none."""
    from kubernetes.aio.config.dateutil import parse_rfc3339  # noqa: PLC0415 - see above

    return float(parse_rfc3339(text).timestamp())  # type: ignore[no-untyped-call]


def in_cluster_host(token: Path, authority: Path, environ: Mapping[str, str]) -> str:
    """The address that a pod reaches its API server under; ConfigError where the pod has no service account."""
    from kubernetes.aio.config.config_exception import ConfigException  # noqa: PLC0415 - see above
    from kubernetes.aio.config.incluster_config import InClusterConfigLoader  # noqa: PLC0415 - see above

    found = SimpleNamespace(api_key={})
    try:
        InClusterConfigLoader(  # type: ignore[no-untyped-call]
            token_filename=str(token), cert_filename=str(authority), try_refresh_token=False, environ=environ
        ).load_and_set(found)
    except (ConfigException, OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"the pod's service account in {token.parent} cannot be used: {error}") from error
    return str(found.host)
