"""Extenders of a configuration: their defaults, and what they must be (validateExtenders)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final
from urllib.parse import urlsplit

from ksp.policy.configuration.durations import shown_seconds
from ksp.policy.configuration.field_errors import Problem, Steps, invalid
from ksp.policy.configuration.names import extended_resource_problems
from ksp.policy.extender import DEFAULT_TIMEOUT, Extender, ExtenderTLS

AT: Final[Steps] = ("extenders",)
Value = Mapping[str, Any]


def extender_of(given: Value) -> Extender:
    """The extender that a decoded entry is. A timeout of 0 is the default one, as in kube-scheduler."""
    resources = [each for each in given.get("managedResources", ()) if each.get("name")]
    return Extender(
        url_prefix=given.get("urlPrefix", ""),
        filter_verb=given.get("filterVerb", ""),
        prioritize_verb=given.get("prioritizeVerb", ""),
        preempt_verb=given.get("preemptVerb", ""),
        bind_verb=given.get("bindVerb", ""),
        weight=given.get("weight", 0),
        enable_https=given.get("enableHTTPS", False),
        tls=_tls(given["tlsConfig"]) if "tlsConfig" in given else None,
        timeout=given.get("httpTimeout", 0.0) or DEFAULT_TIMEOUT,
        node_cache_capable=given.get("nodeCacheCapable", False),
        managed_resources=frozenset(each["name"] for each in resources),
        ignored_resources=frozenset(each["name"] for each in resources if each.get("ignoredByScheduler")),
        ignorable=given.get("ignorable", False),
    )


def _tls(given: Value) -> ExtenderTLS:
    return ExtenderTLS(
        insecure=given.get("insecure", False),
        server_name=given.get("serverName", ""),
        cert_file=given.get("certFile", ""),
        key_file=given.get("keyFile", ""),
        ca_file=given.get("caFile", ""),
        cert_data=given.get("certData", b""),
        key_data=given.get("keyData", b""),
        ca_data=given.get("caData", b""),
    )


def in_order(extenders: Sequence[Extender]) -> tuple[Extender, ...]:
    """The order in which they are asked: those that may fail come last."""
    return tuple(sorted(extenders, key=lambda extender: extender.ignorable))


def extender_problems(extenders: Sequence[Value]) -> Iterator[Problem]:
    """What is wrong with the entries."""
    managed: set[str] = set()
    for i, given in enumerate(extenders):
        at = (*AT, i)
        yield from _entry(given, at)
        for j, resource in enumerate(given.get("managedResources", ())):
            name, where = resource.get("name", ""), (*at, "managedResources", j, "name")
            yield from extended_resource_problems(name, where)
            if name in managed:
                yield invalid(where, name, "duplicate extender managed resource name")
            managed.add(name)
    binders = sum(1 for given in extenders if given.get("bindVerb"))
    if binders > 1:
        yield invalid(AT, f"found {binders} extenders implementing bind", "only one extender can implement bind")


def _entry(given: Value, at: Steps) -> Iterator[Problem]:
    """kube-scheduler lets a wrong URL, a negative timeout and half a key pair pass, and fails with each pod."""
    weight, url = given.get("weight", 0), given.get("urlPrefix", "")
    if given.get("prioritizeVerb") and weight <= 0:
        yield invalid((*at, "weight"), weight, "must have a positive weight applied to it")
    if not _is_url(url):
        yield invalid((*at, "urlPrefix"), url, "must be a URL with http:// or https:// and a host")
    if given.get("httpTimeout", 0) < 0:
        text = f"Invalid value: {shown_seconds(given['httpTimeout'])}: must not be negative"
        yield Problem((*at, "httpTimeout"), text)
    tls = given.get("tlsConfig", {})
    has_cert, has_key = (bool(tls.get(f"{part}File") or tls.get(f"{part}Data")) for part in ("cert", "key"))
    if has_cert != has_key:
        yield Problem((*at, "tlsConfig"), "Invalid value: a certificate and its key go together")
    if tls.get("insecure") and (tls.get("caFile") or tls.get("caData")):
        yield Problem(
            (*at, "tlsConfig", "insecure"), "Invalid value: true: certificates of a CA cannot be given with insecure"
        )


def _is_url(text: str) -> bool:
    try:
        parts = urlsplit(text)
        return parts.scheme in {"http", "https"} and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        return False
