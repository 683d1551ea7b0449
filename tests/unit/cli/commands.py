"""Runs commands in this process, and commands that go wrong."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import click
from click.testing import CliRunner, Result

from ksp.cli.main import cli

TAINTS = """\
predicate Tolerates implements TaintToleration {
  param effects: list<string> = ["NoSchedule"]
  let bad = node.spec.taints.filter(taint, taint.effect in effects
                && !pod.spec.tolerations.exists(t, t.tolerates(taint)))
  deny unresolvable "taint ${bad[0].key}" when size(bad) > 0
}
"""
ROOM = """\
import "lib/room.ksp"

predicate Room {
  deny "full" when pod.requests["cpu"] > left(node)
}

priority Free {
  score left(node) / 1m
  normalize
}

provider Both {
  predicates { Room }
  priorities { Free: 3 }
}
"""
LIBRARY = 'fn left(n: Node): cpu = n.allocatable["cpu"] - n.requested["cpu"]\n'


def ksp(*arguments: str | int | Path, stdin: str | bytes = "") -> Result:
    return CliRunner().invoke(cli, [str(a) for a in arguments], input=stdin, catch_exceptions=False)


def written(folder: Path, texts: Mapping[str, str]) -> Path:
    """The folder, with these files in it."""
    for name, text in texts.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def room(folder: Path, tests: str = "") -> Path:
    """A policy that imports, in a folder."""
    return written(folder, {"room.ksp": ROOM, "lib/room.ksp": LIBRARY, "room.test.ksp": 'import "room.ksp"\n' + tests})


@click.command
def fault() -> None:
    raise ZeroDivisionError("first line\nsecond line")


@click.command
def missing() -> None:
    Path("/nowhere/at/all").read_text()


@click.command
def interrupted() -> None:
    raise KeyboardInterrupt
