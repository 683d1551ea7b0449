"""`python -m tests.wire.agreement [--version 1.19] [--show ID] [--family NAME]`: where the embedded server agrees."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import time
from collections import Counter

from tests.wire.replay import Replay, replay
from tests.wire.transcript import FILES, exclusions


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--version", choices=sorted(FILES))
    parser.add_argument("--show", action="append", default=[], help="an exchange, whole")
    parser.add_argument("--family", help="the differences of one family (or all)")
    parser.add_argument("--table", action="store_true", help="figures by family as Markdown")
    arguments = parser.parse_args()
    versions = [arguments.version] if arguments.version else sorted(FILES)
    began = time.perf_counter()
    runs = [asyncio.run(replay(version)) for version in versions]
    for run in runs:
        for id in arguments.show:
            show(run, id)
        if arguments.family:
            details(run, arguments.family)
    if arguments.table:
        say(table(runs))
    elif not arguments.show:
        for run in runs:
            figures(run)
    say(f"{time.perf_counter() - began:.1f} s")


def say(text: str) -> None:
    sys.stdout.write(text + "\n")


def show(run: Replay, id: str) -> None:
    result = run.results.get(id)
    if result is None:
        say(f"{run.version}: no {id}")
        return
    request = result.exchange.request
    say(f"=== {run.version} {id}: {request['method']} {request['path']} {json.dumps(request['headers'])}")
    say(f"body:     {json.dumps(request['body'])}")
    say(f"recorded: {json.dumps(result.exchange.response)}")
    say(f"now:      {json.dumps(result.answer)}")
    for line in result.differences or ["agrees"]:
        say(f"  {line}")


def details(run: Replay, family: str) -> None:
    excluded = exclusions()
    for id, result in run.results.items():
        if family in {"all", result.exchange.family} and result.differences:
            if any(one.covers(run.version, id) for one in excluded):
                continue
            say(f"--- {run.version} {id}")
            for line in result.differences[:8]:
                say(f"    {line[:700]}")


def figures(run: Replay) -> None:
    agreeing = run.agreeing
    total = Counter(result.exchange.family for result in run.results.values())
    good = Counter(run.results[id].exchange.family for id in agreeing)
    for family, count in total.items():
        missing = "" if good[family] == count else f"   {count - good[family]} differ"
        say(f"{family:10} {good[family]:4} / {count:4}{missing}")
    say(f"{run.version}: {len(agreeing)} of {len(run.results)} agree, {len(agreeing) / len(run.results):.1%}")


def table(runs: list[Replay]) -> str:
    """A row a family, a column a version."""
    names = list(dict.fromkeys(result.exchange.family for run in runs for result in run.results.values()))
    lines = [
        "| family | " + " | ".join(run.version for run in runs) + " |",
        "| --- |" + " --- |" * len(runs),
    ]
    for name in names:
        cells = []
        for run in runs:
            ids = [id for id, result in run.results.items() if result.exchange.family == name]
            cells.append(f"{len(run.agreeing & set(ids))} of {len(ids)}" if ids else "")
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    shares = [f"{len(run.agreeing)} of {len(run.results)}, {len(run.agreeing) / len(run.results):.1%}" for run in runs]
    return "\n".join([*lines, "| all | " + " | ".join(shares) + " |"])


if __name__ == "__main__":
    main()
