"""Are footprints sound? One leaf of a recorded case is changed at a time, and every shipped rule is asked before and
after: `python -m tests.policies.mutation [--file GOLDEN] [--cases N] [--changes N] [--seed N]`.

Where a rule's answer for a node is another (verdict, reason, score), its footprint must name what changed, and a pod
that it denied and now admits must be woken by the events that the change is. And the tables that followed the change
must say what tables made from nothing say. Prints figures by rule; exits 1 if anything was missed.
"""

from __future__ import annotations

import argparse
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Final

from tests.golden.recorded import SAMPLE, Case, cases
from tests.mutation.attempts import Attempts, everything
from tests.mutation.figures import Figures, all_missed, in_vain, table
from tests.mutation.instances import Instances
from tests.mutation.trial import Trial

CHANGES: Final = 15  # of each case, and for each one more that matters, until there are
ENOUGH: Final = 60  # of those of a rule
SHOWN: Final = 50  # of what was missed


def chosen(recorded: Iterable[Case], most: int, seed: int) -> list[Case]:
    """So many of the cases, 0 is all: of each family and each plugin that denied something, in turn."""
    groups: dict[str, list[Case]] = defaultdict(list)
    for case in recorded:
        groups[case["family"]].append(case)
        for plugin in {status["plugin"] for status in case["expected"]["filters"].values() if status}:
            groups[plugin].append(case)
    for name, members in sorted(groups.items()):
        Random(f"{seed} {name}").shuffle(members)
    turns = (case for turn in range(max(map(len, groups.values()))) for case in _turn(groups, turn))
    taken = list({case["id"]: case for case in turns}.values())
    return taken[:most] if most else taken


def _turn(groups: Mapping[str, Sequence[Case]], turn: int) -> Iterator[Case]:
    return (members[turn] for members in groups.values() if turn < len(members))


def measure(taken: Sequence[Case], changes: int, seed: int, enough: int) -> dict[str, Figures]:
    """The figures by rule of so many changes of each case, and of those that are sought until each rule has enough that
    matter to it."""
    far = everything(taken)
    instances = Instances()
    figures = {name: Figures() for name in instances.names()}
    for case in taken:
        dice = Random(f"{seed} {case['id']}")
        Trial(Attempts(case, dice, far), instances.of(case, seed), figures).run(changes, enough)
    return figures


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.policies.mutation")
    parser.add_argument("--file", type=Path, default=SAMPLE)
    parser.add_argument("--cases", type=int, default=0, help="at most; 0 is all")
    parser.add_argument("--changes", type=int, default=CHANGES, help="of each case")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    taken = chosen(cases(options.file), options.cases, options.seed)
    figures = measure(taken, options.changes, options.seed, ENOUGH)
    missed = all_missed(figures)
    never = ["named, and never mattered:", *in_vain(figures)]
    counted = f"{len(taken)} cases, {len(missed)} missed"
    sys.stdout.write("\n".join([table(figures), "", *never, "", *missed[:SHOWN], counted]) + "\n")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
