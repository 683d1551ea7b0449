"""The proxy that $HTTPS_PROXY, $HTTP_PROXY and $NO_PROXY name for a server, by the rules of Go's programs.

Source: golang.org/x/net/http/httpproxy, which client-go uses where a kubeconfig has no `proxy-url`.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from typing import Final
from urllib.parse import urlsplit

from ksp.kube.auth.cluster import proxy_url

_PORTS: Final = {"http": 80, "https": 443}


def proxy_for(server: str, environ: Mapping[str, str]) -> str | None:
    """A proxy's URL, or None; loopback addresses are reached without. ConfigError where it is no HTTP proxy."""
    parts = urlsplit(server)
    host = parts.hostname or ""
    name = f"{parts.scheme.upper()}_PROXY"
    proxy = environ.get(name) or environ.get(name.lower())
    if not proxy or _direct(host, parts.port or _PORTS[parts.scheme], environ):
        return None
    return proxy_url(proxy if "://" in proxy else f"http://{proxy}", f"${name}")


def _direct(host: str, port: int, environ: Mapping[str, str]) -> bool:
    """Whether the server is reached without the proxy."""
    address = _address(host)
    if host == "localhost" or (address is not None and address.is_loopback):
        return True
    rules = (environ.get("NO_PROXY") or environ.get("no_proxy") or "").split(",")
    return any(_exempt(rule.strip().lower(), host.lower(), port) for rule in rules)


def _exempt(rule: str, host: str, port: int) -> bool:
    """`*`, an address, a range of addresses, a domain (with a leading dot: what is below it); perhaps a port."""
    if rule in {"", "*"}:
        return rule == "*"
    if _in_range(rule, host):
        return True
    name, colon, number = rule.rpartition(":")
    if colon and number.isdigit() and _address(rule) is None:
        if int(number) != port:
            return False
        rule = name.strip("[]")
    if rule.startswith("*."):
        rule = rule[1:]
    return host.endswith(rule) if rule.startswith(".") else host == rule or host.endswith(f".{rule}")


def _in_range(rule: str, host: str) -> bool:
    address = _address(host)
    try:
        return address is not None and address in ipaddress.ip_network(rule, strict=False)
    except ValueError:
        return False


def _address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return None
