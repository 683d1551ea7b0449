"""What `ksp status` found out, for people and for machines."""

from __future__ import annotations

import datetime as dt
import json
from dataclasses import dataclass
from typing import Any

import msgspec

from ksp.kube.http.reader import MalformedError
from ksp.kube.leader_election.lease import Lease
from ksp.runtime.status import ANNOTATION, Status


@dataclass(frozen=True, slots=True)
class Seen:
    """`status` is what a scheduler says, None if it says nothing. The rest is of its lease, if that was read: where it
    is, who holds it ("" for nobody), since when, how many seconds ago it was renewed by this computer's clock (None if
    that cannot be told), and for how long it holds."""

    status: Status | None
    lease: str = ""
    holder: str = ""
    since: str = ""
    renewed_ago: float | None = None
    duration: int = 0


def seen_at(text: bytes) -> Seen:
    """What a scheduler answers. Raises MalformedError."""
    return Seen(_status(text))


def seen_in(lease: Lease, where: str, now: dt.datetime) -> Seen:
    """What stands in a lease. Raises MalformedError."""
    record, text = lease.record, lease.annotations.get(ANNOTATION)
    said = _status(text.encode()) if text is not None else None
    if said is not None and said.identity != record.holder:
        said = None  # of somebody before
    return Seen(said, where, record.holder, record.acquired, _seconds_since(record.renewed, now), record.duration)


def _status(text: bytes) -> Status:
    try:
        return msgspec.json.decode(text, type=Status)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise MalformedError(f"the status cannot be read: {error}") from error


def _seconds_since(time: str, now: dt.datetime) -> float | None:
    try:
        return (now - dt.datetime.fromisoformat(time)).total_seconds()
    except (ValueError, TypeError):
        return None


def problems(seen: Seen) -> list[str]:
    """What an operator should act on."""
    found = []
    if seen.lease and not seen.holder:
        found.append("nobody leads")
    elif seen.renewed_ago is not None and seen.renewed_ago > seen.duration:
        ago = f"{seen.renewed_ago:.0f} s ago, and holds for {seen.duration} s"
        found.append(f"the lease was renewed {ago}: the leader is gone, or the clocks differ")
    if seen.status is not None and seen.status.failure is not None:
        found.append("a newer policy was not taken")
    if seen.status is not None and seen.status.generation == 0:
        found.append("it has no policy yet")
    return found


def to_json(seen: Seen) -> str:
    """Keys as in `/policyz`."""
    found: dict[str, Any] = {"healthy": not problems(seen), "problems": problems(seen)}
    if seen.lease:
        found["lease"] = {
            "name": seen.lease,
            "holder": seen.holder,
            "since": seen.since,
            "renewedSecondsAgo": None if seen.renewed_ago is None else round(seen.renewed_ago, 3),
            "durationSeconds": seen.duration,
        }
    found["status"] = None if seen.status is None else msgspec.to_builtins(seen.status)
    return json.dumps(found, indent=2)


def as_text(seen: Seen) -> str:
    """One fact a line."""
    rows = [*_of_lease(seen), *(_of_policy(seen.status) if seen.status is not None else [])]
    rows += [("problem", each) for each in problems(seen)]
    width = max(len(name) for name, _ in rows)
    return "\n".join(f"{name:<{width}}  {_printable(text)}".rstrip() for name, text in rows)


def _of_lease(seen: Seen) -> list[tuple[str, str]]:
    if not seen.lease:
        return []
    rows = [("lease", seen.lease), ("leader", seen.holder or "none")]
    if seen.holder:
        ago = "at an unknown time" if seen.renewed_ago is None else f"{seen.renewed_ago:.1f} s ago"
        rows += [("leads since", seen.since), ("renewed", f"{ago} (holds for {seen.duration} s)")]
    return rows


def _of_policy(status: Status) -> list[tuple[str, str]]:
    profiles = [f"{each.name} ({each.predicates} predicates, {each.priorities} priorities)" for each in status.profiles]
    source = f"{status.source_kind} {status.source}".strip() if status.source else "the shipped rules"
    rows = [
        ("scheduler", f"{status.identity}, {'decides' if status.leading else 'stands by'}"),
        ("ksp", f"{status.version}, since {status.started_at}"),
        ("generation", str(status.generation)),
        ("policy", status.policy),
        ("source", source),
        ("sha256", status.sha256),
        ("loaded", status.loaded_at),
        ("profiles", _listed(profiles, status.more_profiles)),
    ]
    if status.extenders or status.more_extenders:
        rows.append(("extenders", _listed(status.extenders, status.more_extenders)))
    if status.rollbacks:
        rows.append(("taken back", f"{status.rollbacks} since it started"))
    failure = status.failure
    rows.append(("last failure", "none" if failure is None else f"{failure.at}, {failure.stage}: {failure.message}"))
    return rows


def _listed(names: list[str] | tuple[str, ...], more: int) -> str:
    return ", ".join((*names, *([f"{more} more"] if more else [])))


def _printable(text: str) -> str:
    """Others wrote parts of it."""
    return "".join(char if char.isprintable() else " " for char in text)
