"""How far ksp agrees with recorded decisions: `python -m tests.golden.agreement [FILE]`, or `make parity FILE=...`.

Prints the agreement by family and field, and the first case that differs in each of them, both sides. Exits 1 if any
case differs in a family that ksp claims to know. Without a file it takes the sample in this folder.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from tests.golden.recorded import FIELDS, NOT_YET, SAMPLE, Case, Difference, cases, compared, differences, evaluator

from ksp.sim.cases import Evaluator


@dataclass(slots=True)
class Agreement:
    """Counts of cases by family and field: those compared, and those that differ, with the first of them."""

    compared: Counter[tuple[str, str]] = field(default_factory=Counter)
    differing: Counter[tuple[str, str]] = field(default_factory=Counter)
    first: dict[tuple[str, str], Difference] = field(default_factory=dict)
    cases: Counter[str] = field(default_factory=Counter)

    def add(self, case: Case, found: Iterable[Difference]) -> None:
        family = case["family"]
        self.cases[family] += 1
        self.compared.update((family, name) for name in compared(case))
        for difference in found:
            self.differing[family, difference.field] += 1
            self.first.setdefault((family, difference.field), difference)

    @property
    def broken(self) -> list[Difference]:
        """The first differences in families that ksp claims to know."""
        return [difference for (family, _), difference in self.first.items() if family not in NOT_YET]


def measure(recorded: Iterable[Case], decide: Evaluator) -> Agreement:
    """Decides every case, and compares."""
    agreement = Agreement()
    for case in recorded:
        agreement.add(case, differences(case, decide.evaluate(case)))
    return agreement


def table(agreement: Agreement) -> str:
    """A line for each family, a column for each field: how many cases of a hundred agree."""
    families = sorted(agreement.cases)
    rows: list[tuple[str, ...]] = [("family", "cases", *FIELDS)]
    for family in families:
        shares = (_share(agreement, family, name) for name in FIELDS)
        rows.append((family + (" (not yet)" if family in NOT_YET else ""), str(agreement.cases[family]), *shares))
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
    agreement = measure(cases(path), evaluator())
    counted = f"{agreement.cases.total()} cases, {len(agreement.broken)} kinds of differences"
    sys.stdout.write("\n\n".join([table(agreement), *map(str, agreement.broken), counted]) + "\n")
    return 1 if agreement.broken else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
