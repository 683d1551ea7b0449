"""A kubeconfig's current context as a `Cluster`.

Files are merged by `kubernetes.aio`; what is in a cluster and a user is read here (`ksp.kube.auth.aio_config` says
why). Where the two differ, client-go's `clientcmd` decides.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

import yaml

from ksp.kube.auth.aio_config import merged, node
from ksp.kube.auth.cluster import Cluster, proxy_url, server_url
from ksp.kube.auth.credentials import Issuer, User, basic, bearer
from ksp.kube.auth.exec_plugin import exec_plugin
from ksp.kube.auth.oidc import OidcProvider
from ksp.kube.auth.section import Section
from ksp.kube.auth.tls import Pem, Trust, read_file
from ksp.kube.errors import ConfigError

_LISTS = ("clusters", "contexts", "users")
_HEADER = "!#$&'*+-.^_`|~"
"""What may stand in a header's name, besides letters and digits (RFC 9110, section 5.6.2)."""


def read_kubeconfig(paths: Sequence[Path], master: str | None) -> Cluster:
    """The current context of files that exist, the first of them that says something winning.

    `master` takes the place of the server. ConfigError names the file, the entry and what is wrong with it.
    """
    whole = [path.absolute() for path in paths]
    for path in whole:
        if os.pathsep in str(path):
            raise ConfigError(f"{path}: the path of a kubeconfig cannot contain {os.pathsep!r}; move the file")
    documents = [_document(path) for path in paths]
    current = next(filter(None, (document.get("current-context") for document in documents)), None)
    return _cluster(merged(whole), ":".join(map(str, paths)), current, master)


def cluster_of(document: Mapping[str, Any], origin: str, base: Path = Path()) -> Cluster:
    """The current context of a kubeconfig that is no file; `base` is where its relative paths start."""
    checked = _checked(document, origin)
    return _cluster(node(checked, base / "kubeconfig"), origin, checked.get("current-context"), None)


def _document(path: Path) -> dict[str, Any]:
    """A file's content, of the right shape."""
    try:
        found = yaml.safe_load(read_file(path, "the kubeconfig"))
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError, ValueError) as error:
        mark = getattr(error, "problem_mark", None)
        place = "" if mark is None else f":{mark.line + 1}:{mark.column + 1}"
        raise ConfigError(f"{path}{place} is not YAML: {_problem(error)}") from error
    return _checked(found, str(path))


def _problem(error: Exception) -> str:
    return " ".join(str(getattr(error, "problem", None) or error).split()) or type(error).__name__


def _checked(found: Any, name: str) -> dict[str, Any]:
    if not isinstance(found, Mapping):
        raise ConfigError(f"{name} is not a kubeconfig: it holds no clusters, contexts and users")
    for kind in _LISTS:
        entries = found.get(kind) or []
        if not isinstance(entries, list) or not all(
            isinstance(entry, Mapping) and isinstance(entry.get("name"), str) for entry in entries
        ):
            raise ConfigError(f"{name}: `{kind}` has to be a list of entries with a name")
    return {**found, **{kind: found.get(kind) or [] for kind in _LISTS}}


def _cluster(tree: Any, files: str, current: Any, master: str | None) -> Cluster:
    if not isinstance(current, str):
        raise ConfigError(f"{files}: no current-context is set; choose one with `kubectl config use-context NAME`")
    context = _entry(tree, files, "contexts", current)
    cluster = _entry(tree, files, "clusters", context.needed("cluster"))
    name = context.text("user")
    user = None if name is None else _entry(tree, files, "users", name)
    trust = _trust(cluster)
    if master is None:
        server = server_url(cluster.needed("server"), f"{cluster.where}: `server`", encrypted=trust != Trust())
    else:
        server = server_url(master, "--master", encrypted=trust != Trust())
    return Cluster(
        server,
        f"context {current} of {files}",
        trust,
        User() if user is None else _user(user, cluster),
        _proxy(cluster),
        compression=not cluster.flag("disable-compression"),
    )


def _entry(tree: Any, files: str, kind: str, name: str) -> Section:
    """The content of the first entry called `name`."""
    singular = kind.removesuffix("s")
    for entry in tree[kind].value:
        value, path = (entry.value, entry.path) if hasattr(entry, "value") else (entry, tree.path)
        if value["name"] == name:
            content = value.get(singular)
            where = f"{path}: {singular} `{name}`"
            if not isinstance(content, Mapping):
                raise ConfigError(f"{where} is empty; it needs a `{singular}:` with content")
            return Section(content, where, Path(path).parent)
    raise ConfigError(f"{files}: there is no {singular} `{name}`; `kubectl config view` shows what there is")


def _trust(cluster: Section) -> Trust:
    authority = _pem(cluster, "certificate-authority")
    skip = cluster.flag("insecure-skip-tls-verify")
    if skip and authority is not None:
        raise ConfigError(f"{cluster.where}: `insecure-skip-tls-verify` and `certificate-authority` exclude each other")
    return Trust(authority, verify=not skip, server_name=cluster.text("tls-server-name"))


def _proxy(cluster: Section) -> str | None:
    proxy = cluster.text("proxy-url")
    return None if proxy is None else proxy_url(proxy, f"{cluster.where}: `proxy-url`")


def _user(user: Section, cluster: Section) -> User:
    certificate, key = _pem(user, "client-certificate"), _pem(user, "client-key")
    if (certificate is None) != (key is None):
        raise ConfigError(f"{user.where}: `client-certificate` and `client-key` need each other")
    token_file = user.text("tokenFile")
    has_token = token_file is not None or user.text("token") is not None
    return User(
        _authorization(user),
        None if token_file is None else user.base / token_file,
        certificate,
        key,
        None if has_token else _issuer(user, cluster),
        _impersonation(user),
    )


def _authorization(user: Section) -> str | None:
    token = user.text("token")
    if token is not None:
        return bearer(token.strip(), f"{user.where}: `token`")
    name = user.text("username")
    if name is None:
        return None
    return basic(name, user.text("password") or "")


def _issuer(user: Section, cluster: Section) -> Issuer | None:
    plugin = user.section("exec")
    if plugin is not None:
        return exec_plugin(plugin, cluster)
    provider = user.section("auth-provider")
    if provider is None:
        return None
    name = provider.needed("name")
    if name != "oidc":
        raise ConfigError(f"{user.where}: auth-provider `{name}` is not supported; use an exec plugin in its place")
    return OidcProvider.of(provider)


def _impersonation(user: Section) -> tuple[tuple[str, str], ...]:
    """`as` and its companions: ignoring them would be acting with more rights than asked for."""
    headers = [("Impersonate-User", user.header("as")), ("Impersonate-Uid", user.header("as-uid"))]
    headers += [("Impersonate-Group", group) for group in user.headers("as-groups")]
    extra = user.section("as-user-extra")
    for key in extra.keys() if extra is not None else ():
        assert extra is not None
        headers += [(f"Impersonate-Extra-{quote(key, safe=_HEADER)}", value) for value in extra.headers(key)]
    return tuple((name, value) for name, value in headers if value is not None)


def _pem(section: Section, key: str) -> Pem | None:
    """A certificate or key: `KEY-data` in base64 goes before the file `KEY`."""
    data = section.base64(f"{key}-data")
    if data is not None:
        return Pem(f"{section.where}: `{key}-data`", data)
    name = section.text(key)
    return None if name is None else Pem(f"{section.where}: `{key}`", section.base / name)
