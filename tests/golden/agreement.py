"""How far ksp agrees with recorded decisions: `python -m tests.golden.agreement [FILE]`, or `make parity FILE=...`.

Every case is decided in each of the ways of `tests.golden.paths`: node by node, in columns, and from a class that is
remembered. Prints the agreement by family and field, of each kind of difference how many cases have it and the first of
them with both sides, and the cases that are meant to differ; once for all ways that agree. Exits 1 if any other case
differs. Without a file it takes the sample in this folder.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.golden.findings import Finding, findings
from tests.golden.paths import evaluators
from tests.golden.recorded import FIELDS, KNOWN, SAMPLE, Case, cases, compared, wanted

from ksp.sim.cases import Evaluator


@dataclass(slots=True)
class Agreement:
    """Counts of cases: by family, by family and field those compared and those that differ; by kind of difference the
    first, and how many there are in each family. `meant` are those that are meant to differ, with the reason."""

    compared: Counter[tuple[str, str]] = field(default_factory=Counter)
    differing: Counter[tuple[str, str]] = field(default_factory=Counter)
    cases: Counter[str] = field(default_factory=Counter)
    meant: dict[str, str] = field(default_factory=dict)
    first: dict[str, Finding] = field(default_factory=dict)
    kinds: dict[str, Counter[str]] = field(default_factory=dict)

    def add(self, case: Case, got: Mapping[str, Any]) -> None:
        family = case["family"]
        self.cases[family] += 1
        if case["id"] in KNOWN:
            self.meant[case["id"]] = KNOWN[case["id"]]
        self.compared.update((family, name) for name in compared(case))
        self.differing.update((family, name) for name in compared(case) if got[name] != wanted(case, name, got))
        for finding in findings(case, got):
            self.first.setdefault(finding.kind, finding)
            self.kinds.setdefault(finding.kind, Counter())[family] += 1


def measure(recorded: Iterable[Case], decide: Evaluator) -> Agreement:
    """Decides every case, and compares."""
    agreement = Agreement()
    for case in recorded:
        agreement.add(case, decide.evaluate(case))
    return agreement


def differences(agreement: Agreement) -> list[str]:
    """Of each kind how many cases have it, and the first of them; the most frequent kind first."""
    by_number = sorted(agreement.kinds.items(), key=lambda item: (-item[1].total(), item[0]))
    return [f"{_counted(kind, families)}\n{agreement.first[kind]}" for kind, families in by_number]


def _counted(kind: str, families: Counter[str]) -> str:
    where = ", ".join(f"{family} {count}" for family, count in sorted(families.items(), key=lambda f: (-f[1], f[0])))
    return f"{kind}: {families.total()} {'case' if families.total() == 1 else 'cases'} ({where})"


def table(agreement: Agreement) -> str:
    """A line for each family, a column for each field: how many cases of a hundred agree."""
    families = sorted(agreement.cases)
    rows: list[tuple[str, ...]] = [("family", "cases", *FIELDS)]
    for family in families:
        shares = (_share(agreement, family, name) for name in FIELDS)
        rows.append((family, str(agreement.cases[family]), *shares))
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return "\n".join(_line(row, widths) for row in rows)


def _share(agreement: Agreement, family: str, name: str) -> str:
    total, differing = agreement.compared[family, name], agreement.differing[family, name]
    if not total:
        return "-"
    return "100" if not differing else f"{min(99.99, 100 * (total - differing) / total):.2f}"


def _line(row: tuple[str, ...], widths: list[int]) -> str:
    first, *others = row
    return "  ".join([first.ljust(widths[0]), *(cell.rjust(w) for cell, w in zip(others, widths[1:], strict=True))])


def main(arguments: list[str]) -> int:
    path = Path(arguments[0]) if arguments else SAMPLE
    if len(arguments) > 1 or not path.is_file():
        sys.stderr.write(f"make parity FILE=...: {path} is not a file\n")
        return 2
    shown: dict[str, list[str]] = {}
    differ = False
    for way, decide in evaluators().items():
        agreement = measure(cases(path), decide)
        found = differences(agreement)
        differ |= bool(found)
        meant = [f"{case}: preemption is meant to differ: {why}" for case, why in agreement.meant.items()]
        counted = f"{agreement.cases.total()} cases, {len(found)} kinds of differences"
        shown.setdefault("\n\n".join([table(agreement), *found, *meant, counted]), []).append(way)
    for text, ways in shown.items():
        sys.stdout.write(f"{text}, decided {'; '.join(ways)}\n")
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
