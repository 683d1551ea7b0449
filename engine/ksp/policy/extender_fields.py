"""The fields of an extender in a file: what they are, the extender that they make, and how one is written.

A legacy Policy and a KubeSchedulerConfiguration have the same fields, but for the names and units of two of them.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final
from urllib.parse import urlsplit

from ksp.policy.durations import shown_seconds
from ksp.policy.extender import DEFAULT_TIMEOUT, Extender, ExtenderTLS
from ksp.policy.field_errors import Problem, Steps, invalid
from ksp.policy.shapes import BOOL, BYTES, DURATION, INT64, STRING, ListOf, Object, Shape

TLS: Final = Object({
    "insecure": BOOL, "serverName": STRING, "certFile": STRING, "keyFile": STRING, "caFile": STRING,
    "certData": BYTES, "keyData": BYTES, "caData": BYTES,
})  # fmt: skip
MANAGED: Final = Object({"name": STRING, "ignoredByScheduler": BOOL})
FIELDS: Final[Mapping[str, Shape]] = {
    "urlPrefix": STRING, "filterVerb": STRING, "preemptVerb": STRING, "prioritizeVerb": STRING, "weight": INT64,
    "bindVerb": STRING, "enableHTTPS": BOOL, "tlsConfig": TLS, "httpTimeout": DURATION, "nodeCacheCapable": BOOL,
    "managedResources": ListOf(MANAGED), "ignorable": BOOL,
}  # fmt: skip
"""As a KubeSchedulerConfiguration has them."""
EXTENDER: Final = Object(FIELDS)

Value = Mapping[str, Any]


def extender_of(given: Value) -> Extender:
    """The extender that decoded fields are. A timeout of 0 is the default one, as in kube-scheduler."""
    resources = [each for each in given.get("managedResources", ()) if each.get("name")]
    return Extender(
        url_prefix=given.get("urlPrefix", ""),
        filter_verb=given.get("filterVerb", ""),
        prioritize_verb=given.get("prioritizeVerb", ""),
        preempt_verb=given.get("preemptVerb", ""),
        bind_verb=given.get("bindVerb", ""),
        weight=given.get("weight", 0),
        enable_https=given.get("enableHTTPS", False),
        tls=_tls_of(given["tlsConfig"]) if "tlsConfig" in given else None,
        timeout=given.get("httpTimeout", 0.0) or DEFAULT_TIMEOUT,
        node_cache_capable=given.get("nodeCacheCapable", False),
        managed_resources=frozenset(each["name"] for each in resources),
        ignored_resources=frozenset(each["name"] for each in resources if each.get("ignoredByScheduler")),
        ignorable=given.get("ignorable", False),
    )


def _tls_of(given: Value) -> ExtenderTLS:
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


def in_order(extenders: Iterable[Extender]) -> tuple[Extender, ...]:
    """The order in which they are asked: those that may fail come last."""
    return tuple(sorted(extenders, key=lambda extender: extender.ignorable))


def unusable(given: Value, at: Steps) -> Iterator[Problem]:
    """What is in decoded fields that kube-scheduler starts with, and that fails, or is not used, with every pod."""
    if not _is_url(url := given.get("urlPrefix", "")):
        yield invalid((*at, "urlPrefix"), url, "must be a URL with http:// or https:// and a host")
    if given.get("httpTimeout", 0) < 0:
        text = f"Invalid value: {shown_seconds(given['httpTimeout'])}: must not be negative"
        yield Problem((*at, "httpTimeout"), text)
    tls = given.get("tlsConfig", {})
    has_cert, has_key = (bool(tls.get(f"{part}File") or tls.get(f"{part}Data")) for part in ("cert", "key"))
    if has_cert != has_key:
        yield Problem((*at, "tlsConfig"), "Invalid value: a certificate and its key go together")


def is_insecure_with_ca(given: Value) -> bool:
    """Whether certificates are held against a CA, and against none: kube-scheduler does not start then."""
    tls = given.get("tlsConfig", {})
    return bool(tls.get("insecure") and (tls.get("caFile") or tls.get("caData")))


def _is_url(text: str) -> bool:
    try:
        parts = urlsplit(text)
        return parts.scheme in {"http", "https"} and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        return False


def written(extender: Extender) -> dict[str, Any]:
    """The fields, all of them."""
    managed = [
        {"name": name, "ignoredByScheduler": name in extender.ignored_resources}
        for name in sorted(extender.managed_resources)
    ]
    fields: dict[str, Any] = {
        "urlPrefix": extender.url_prefix,
        "filterVerb": extender.filter_verb,
        "preemptVerb": extender.preempt_verb,
        "prioritizeVerb": extender.prioritize_verb,
        "weight": extender.weight,
        "bindVerb": extender.bind_verb,
        "enableHTTPS": extender.enable_https,
        "httpTimeout": shown_seconds(extender.timeout),
        "nodeCacheCapable": extender.node_cache_capable,
        "managedResources": managed,
        "ignorable": extender.ignorable,
    }
    return fields if extender.tls is None else fields | {"tlsConfig": _written_tls(extender.tls)}


def _written_tls(tls: ExtenderTLS) -> dict[str, Any]:
    return {
        "insecure": tls.insecure,
        "serverName": tls.server_name,
        "certFile": tls.cert_file,
        "keyFile": tls.key_file,
        "caFile": tls.ca_file,
        "certData": b64encode(tls.cert_data).decode(),
        "keyData": b64encode(tls.key_data).decode(),
        "caData": b64encode(tls.ca_data).decode(),
    }
