"""Simulations as JSON, for programs."""

from __future__ import annotations

import json
from collections.abc import Sequence

from ksp.sim.outcome import Eviction, Fate, NodeUse, Outcome, PodRecord
from ksp.sim.texts import ManifestError


def render(
    outcome: Outcome, *, policy: str, seed: int, invalid: Sequence[ManifestError] = (), notes: Sequence[str] = ()
) -> str:
    """Everything that is known. Amounts are in base units: cpu in milli, all else in whole units; times in virtual
    seconds; `decisions.seconds` in real ones."""
    value = {
        "policy": policy,
        "seed": seed,
        "virtualSeconds": outcome.now,
        "counts": {
            "nodes": len(outcome.nodes),
            "running": outcome.running,
            "pods": len(outcome.records),
            "placed": outcome.count(Fate.PLACED),
            "waiting": outcome.count(Fate.WAITING),
            "evicted": len(outcome.evictions),
            "leftAlone": outcome.count(Fate.LEFT_ALONE),
            "left": sum(record.left is not None for record in outcome.records),
        },
        "decisions": {
            "count": outcome.decisions,
            "seconds": round(outcome.seconds, 6),
            "perSecond": round(outcome.rate, 1),
        },
        "allocation": {
            name: {"requested": each.requested, "allocatable": each.allocatable, "peak": each.peak}
            for name, each in outcome.allocation.items()
        },
        "pods": [_pod(record) for record in outcome.records],
        "evictions": [_eviction(each) for each in outcome.evictions],
        "nodes": [_node(node) for node in outcome.nodes],
        "invalid": [
            {"file": error.file, "line": error.line, "field": error.field, "message": error.message}
            for error in invalid
        ],
        "notes": list(notes),
    }
    return json.dumps(value, indent=2)


def _pod(record: PodRecord) -> dict[str, object]:
    return {
        "namespace": record.namespace,
        "name": record.name,
        "uid": record.uid,
        "fate": record.fate.value,
        "node": record.node or None,
        "message": record.message,
        "reasons": dict(record.reasons),
        "attempts": record.attempts,
        "arrived": record.arrived,
        "decided": record.decided,
        "left": record.left,
        "evictedBy": record.evicted_by or None,
    }


def _eviction(each: Eviction) -> dict[str, object]:
    whom = {"pod": each.pod, "node": each.node, "by": each.by, "at": each.at}
    return {**whom, "wasRunning": each.was_running, "againstBudget": each.against_budget}


def _node(node: NodeUse) -> dict[str, object]:
    requested, allocatable = dict(node.requested), dict(node.allocatable)
    return {"name": node.name, "pods": node.pods, "requested": requested, "allocatable": allocatable}
