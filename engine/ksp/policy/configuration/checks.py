"""What a configuration must be, beside its profiles and extenders, in kube-scheduler's words."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Mapping
from typing import Any, Final

from ksp.policy.configuration.leader_election import LEASES, OTHER_LOCKS, LeaderElection, election_problems
from ksp.policy.configuration.versions import Version
from ksp.policy.field_errors import Problem, Steps, invalid

DEFAULT_PORT: Final = 10251
PROTOBUF: Final = "application/vnd.kubernetes.protobuf"
PARALLELISM: Final = 16
ADDRESSES: Final = ("healthzBindAddress", "metricsBindAddress")
Document = Mapping[str, Any]


def problems_of(version: Version, document: Document, election: LeaderElection) -> Iterator[Problem]:
    """What is wrong with the fields of the document itself, and of its two small objects."""
    yield from election_problems(election)
    lock = ("leaderElection", "resourceLock")
    if election.elect and election.resource_lock not in {"", LEASES}:
        if version is Version.V1:
            yield invalid(lock, election.resource_lock, 'resourceLock value must be "leases"')
        elif election.resource_lock not in OTHER_LOCKS:
            yield invalid(lock, election.resource_lock, f"must be one of {', '.join((LEASES, *OTHER_LOCKS))}")
    burst = document.get("clientConnection", {}).get("burst", 0)
    if burst < 0:
        yield invalid(("clientConnection", "burst"), burst, "must be non-negative")
    if document.get("parallelism", 1) <= 0:
        yield invalid(("parallelism",), document["parallelism"], "should be an integer value greater than zero")
    yield from percentage_problems(document, ())
    yield from _backoffs(document)
    for name in ADDRESSES:
        yield from _address_problems(address_of(document.get(name)), (name,))


def percentage_problems(given: Document, at: Steps) -> Iterator[Problem]:
    percentage = given.get("percentageOfNodesToScore", 0)
    if not 0 <= percentage <= 100:
        yield invalid((*at, "percentageOfNodesToScore"), percentage, "not in valid range [0-100]")


def _backoffs(document: Document) -> Iterator[Problem]:
    first, most = document.get("podInitialBackoffSeconds", 1), document.get("podMaxBackoffSeconds", 10)
    if first <= 0:
        yield invalid(("podInitialBackoffSeconds",), first, "must be greater than 0")
    if most < first:
        detail = "must be greater than or equal to PodInitialBackoffSeconds"
        yield invalid(("podMaxBackoffSeconds",), most, detail)


def warnings_of(document: Document) -> Iterator[Problem]:
    """Fields that mean something else here than in kube-scheduler, or nothing. Its defaults are not warned of: a file
    that was written with all of them says nothing by them."""
    lock = document.get("leaderElection", {}).get("resourceLock", LEASES)
    if lock in OTHER_LOCKS:
        yield Problem(("leaderElection", "resourceLock"), f'"{lock}" is not used: the lock is a Lease')
    for name in ("contentType", "acceptContentTypes"):
        given = document.get("clientConnection", {}).get(name, "")
        if given and given != PROTOBUF and "json" not in given:
            yield Problem(("clientConnection", name), f'"{given}" is not used: JSON is spoken')
    if document.get("parallelism", PARALLELISM) != PARALLELISM:
        yield Problem(("parallelism",), "has no effect: nodes are judged together, not by several threads")
    if document.get("delayCacheUntilActive"):
        yield Problem(
            ("delayCacheUntilActive",), "has no effect: caches are kept from the start, so that a new leader has them"
        )
    health, metrics = (address_of(document.get(name)) for name in ADDRESSES)
    if health and metrics and health != metrics:
        yield Problem(("metricsBindAddress",), "is not used: one server answers at healthzBindAddress")


# ---- addresses


def address_of(given: str | None) -> str:
    """`HOST:PORT` as kube-scheduler completes it: `:80` is on all addresses, `10.0.0.1` has the default port; "" if
    nothing is given."""
    if not given:
        return ""
    host, colon, port = given.rpartition(":")
    if colon and not host and port.isdigit():
        return f"0.0.0.0:{port}"
    if _is_ip(given):
        return f"[{given}]:{DEFAULT_PORT}" if ":" in given else f"{given}:{DEFAULT_PORT}"
    return given


def _address_problems(address: str, at: Steps) -> Iterator[Problem]:
    if not address:
        return
    host, colon, port = address.rpartition(":")
    bare = host.removeprefix("[").removesuffix("]")
    if not colon or (":" in bare and host == bare):
        detail = "must be a valid socket address format, (e.g. 0.0.0.0:10254 or [::]:10254)"
        yield invalid(at, address, detail)
        return
    if not (port.isascii() and port.isdigit() and len(port) <= 5 and int(port) < 65536):
        yield invalid(at, port, "must be a valid port number, or 0 for none")
    if not _is_ip(bare):
        yield invalid(at, bare, "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)")


def _is_ip(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True
