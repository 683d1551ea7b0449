"""What `ksp convert` says of a Policy: what became of every part of it, and how that was proved."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from shlex import quote
from typing import Any

from ksp.cli.report import printable
from ksp.cli.terminal import counted
from ksp.policy.legacy import LegacyPolicyError, Mistake
from ksp.policy.legacy.conversion import Conversion, Row
from ksp.sim.conversion_proof import Proof

HEAD = ("in the Policy", "", "becomes", "plugin", "")
GAP = "  "


@dataclass(frozen=True, slots=True)
class Written:
    """Where things went: the policy ("-" is standard output) and the file of extenders ("" without)."""

    policy: str
    extenders: str

    def command(self) -> str:
        """How both are used, for a shell."""
        policy = "FILE.ksp" if self.policy == "-" else quote(self.policy)
        config = f" --config {quote(self.extenders)}" if self.extenders else ""
        return f"ksp run --policy-file {policy}{config}"


def as_text(name: str, conversion: Conversion, proof: Proof, written: Written) -> str:
    """The report for people."""
    return "\n".join(_lines(name, conversion, proof, written)) + "\n"


def _lines(name: str, conversion: Conversion, proof: Proof, written: Written) -> Iterator[str]:
    yield f"{printable(name)}: every part of the Policy, and what it becomes"
    yield ""
    yield from _table(conversion.rows)
    if conversion.warnings:
        yield ""
        yield "Warnings:"
        yield from (f"{GAP}{warning}" for warning in conversion.warnings)
    yield ""
    yield _preemption(conversion)
    yield f"Proved: {_proved(proof)}"
    yield ""
    yield "Use it with"
    yield f"{GAP}{printable(written.command())}"


def _preemption(conversion: Conversion) -> str:
    if conversion.plugins.preempts:
        return "Preemption is on, as asked for; under the Policy kube-scheduler 1.19.0 preempts nothing."
    return "Preemption is off: under a Policy kube-scheduler 1.19.0 preempts nothing. --preemption turns it on."


def _proved(proof: Proof) -> str:
    compared = proof.comparison
    said = f"{counted(compared.decisions, 'decision')} about generated clusters are the same by both, scores included; "
    said += f"{compared.placed} of them found a node."
    idle = ", ".join(proof.idle)
    return f"{said} In none of them had a say: {idle}." if idle else said


def _table(rows: Iterable[Row]) -> Iterator[str]:
    cells = [HEAD, *(line for row in rows for line in _cells(row))]
    widths = [max(len(line[i]) for line in cells) for i in range(len(HEAD))]
    for line in cells:
        yield GAP.join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()


def _cells(row: Row) -> Iterator[tuple[str, ...]]:
    """A line for each thing that a part becomes."""
    becomes = row.becomes or ("-",)
    for i, each in enumerate(becomes):
        plugin = row.plugins[i] if i < len(row.plugins) else ""
        yield (row.pointer, printable(row.said), each, plugin, row.note) if i == 0 else ("", "", each, plugin, "")


# ---- JSON


def as_json(name: str, conversion: Conversion, proof: Proof, written: Written) -> str:
    """The same for programs."""
    compared = proof.comparison
    document = {
        "policy": name,
        "written": {"policy": written.policy, "extenders": written.extenders, "command": written.command()},
        "parts": [_part(row) for row in conversion.rows],
        "warnings": [_mistake(each) for each in conversion.warnings],
        "errors": [],
        "preemption": conversion.plugins.preempts,
        "proof": {"decisions": compared.decisions, "placed": compared.placed, "idle": list(proof.idle)},
    }
    return _dumped(document)


def errors_as_json(error: LegacyPolicyError) -> str:
    """What keeps a Policy from being converted."""
    return _dumped({"policy": error.name, "errors": [_mistake(each) for each in error.errors]})


def _part(row: Row) -> dict[str, Any]:
    return {
        "kind": row.kind,
        "pointer": row.pointer,
        "name": row.said,
        "becomes": list(row.becomes),
        "plugins": list(row.plugins),
        "note": row.note,
    }


def _mistake(each: Mistake) -> dict[str, str]:
    return {"message": each.message, "pointer": each.pointer, "hint": each.hint}


def _dumped(document: dict[str, Any] | Sequence[Any]) -> str:
    return json.dumps(document, ensure_ascii=False, indent=2) + "\n"
