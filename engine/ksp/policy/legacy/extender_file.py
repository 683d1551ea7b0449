"""Extenders as a KubeSchedulerConfiguration: a policy of ksp cannot say them."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Sequence
from typing import Any, Final

import yaml

from ksp.policy.extender import DEFAULT_TIMEOUT, Extender, ExtenderTLS

API_VERSION: Final = "kubescheduler.config.k8s.io/v1"
_UNITS: Final = ((10**9, "s"), (10**6, "ms"), (10**3, "us"), (1, "ns"))


def extender_file(extenders: Sequence[Extender], source: str) -> str:
    """The YAML text; `source` names the Policy."""
    shown = "".join(character if character.isprintable() else "?" for character in source)
    document = {
        "apiVersion": API_VERSION,
        "kind": "KubeSchedulerConfiguration",
        "extenders": [_extender(each) for each in extenders],
    }
    head = f"# The extenders of the Policy in {shown}. Written by `ksp convert`.\n"
    return head + yaml.safe_dump(document, sort_keys=False, allow_unicode=True)


def _extender(extender: Extender) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "urlPrefix": extender.url_prefix,
        "filterVerb": extender.filter_verb,
        "preemptVerb": extender.preempt_verb,
        "prioritizeVerb": extender.prioritize_verb,
        "weight": extender.weight,
        "bindVerb": extender.bind_verb,
        "enableHTTPS": extender.enable_https,
        "tlsConfig": None if extender.tls is None else _tls(extender.tls),
        "httpTimeout": "" if extender.timeout == DEFAULT_TIMEOUT else _duration(extender.timeout),
        "nodeCacheCapable": extender.node_cache_capable,
        "managedResources": [_resource(name, extender) for name in sorted(extender.managed_resources)],
        "ignorable": extender.ignorable,
    }
    return _said(fields.items(), always="urlPrefix")


def _resource(name: str, extender: Extender) -> dict[str, Any]:
    return {"name": name, **({"ignoredByScheduler": True} if name in extender.ignored_resources else {})}


def _tls(tls: ExtenderTLS) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "insecure": tls.insecure,
        "serverName": tls.server_name,
        "certFile": tls.cert_file,
        "keyFile": tls.key_file,
        "caFile": tls.ca_file,
        "certData": b64encode(tls.cert_data).decode(),
        "keyData": b64encode(tls.key_data).decode(),
        "caData": b64encode(tls.ca_data).decode(),
    }
    return _said(fields.items())


def _said(fields: Iterable[tuple[str, Any]], always: str = "") -> dict[str, Any]:
    """The fields that say something, and one that must be there."""
    return {name: value for name, value in fields if name == always or value not in ("", 0, False, None, [])}


def _duration(seconds: float) -> str:
    """As Go writes one, in the largest unit that needs no fraction."""
    nanoseconds = round(seconds * 10**9)
    return next(f"{nanoseconds // size}{unit}" for size, unit in _UNITS if nanoseconds % size == 0)
