"""`ksp footprint`: what rules read, and which events can help a pod that they denied."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import click

from ksp.check.cost import Analysis, show_cost
from ksp.check.report import Report
from ksp.check.typed import Rule
from ksp.cli.policy_files import chosen_rules, sound_policy
from ksp.cli.terminal import BOLD, DIM, is_colored, paint, width
from ksp.compile.events import shown
from ksp.compile.footprint import Footprint, ViewReads, footprint_of

LABEL = 9  # columns of the words on the left


@dataclass(frozen=True, slots=True)
class Read:
    """A rule with what it reads, and the class of its cost, such as `O(pods)`."""

    rule: Rule
    footprint: Footprint
    cost: str

    @property
    def events(self) -> list[str]:
        """In which way each has to go, where only one can help."""
        return shown(self.footprint.events)


@click.command
@click.argument("file")
@click.option("--rule", "name", metavar="NAME", help="Only this rule; it may be an imported one.")
@click.option("--all", "imported", is_flag=True, help="The rules that the file imports, too.")
@click.option("--output-format", type=click.Choice(["text", "json"]), default="text", show_default=True)
def footprint(file: str, name: str | None, imported: bool, output_format: str) -> None:
    """Show what each rule of FILE reads: parts of the pod and of a node, rows of views, other objects.

    From that follow the cluster events that can help a pod which the rule denied. `cost` says how the work for one pod
    and one node grows, views made from nothing included. `ksp:default.ksp` names a file of the shipped library.
    """
    rules = chosen_rules(sound_policy(file).module, name, imported=imported)
    reads = [read_of(rule) for rule in rules]
    if output_format == "json":
        click.echo(json.dumps({"file": file, "rules": [_object(each) for each in reads]}, indent=2))
        return
    if not reads:
        click.echo(f"{file} declares no rules of its own; --all takes those that it imports", err=True)
        return
    color, columns = is_colored(sys.stdout), width(sys.stdout)
    click.echo("\n\n".join("\n".join(_lines(each, columns, color=color)) for each in reads))


def read_of(rule: Rule) -> Read:
    """What a checked rule reads, and its cost."""
    return Read(rule, footprint_of(rule), show_cost(Analysis(Report()).rule(rule)))


def _object(read: Read) -> dict[str, object]:
    rule, found = read.rule, read.footprint
    return {
        "name": rule.name,
        "kind": rule.kind,
        "plugin": rule.plugin,
        "file": rule.span.source.name,
        "line": rule.span.source.place(rule.span.start)[0],
        "pod": list(found.pod),
        "node": list(found.node),
        "views": [{"name": v.name, "relation": v.relation, "rows": list(v.rows)} for v in found.views],
        "objects": list(found.objects),
        "events": read.events,
        "cost": read.cost,
    }


def _lines(read: Read, columns: int | None, *, color: bool) -> Iterator[str]:
    rule, found = read.rule, read.footprint
    place = paint(f"{rule.kind}, {rule.span.where}", DIM, color=color)
    yield f"{paint(rule.name, BOLD, color=color)}  {place}"
    parts = [("pod", found.pod), ("node", found.node), *(("view", _view(v)) for v in found.views)]
    for label, items in [*parts, ("objects", found.objects), ("helped by", read.events), ("cost", [read.cost])]:
        if items:
            yield from _wrapped(label, items, columns)


def _view(view: ViewReads) -> list[str]:
    first, *rest = view.rows or ["only which rows there are"]
    return [f"{view.name} of {view.relation}: {first}", *rest]


def _wrapped(label: str, items: Sequence[str], columns: int | None) -> Iterator[str]:
    """Items with commas between, in as many lines as a terminal needs; in a pipe one line, to be found with grep."""
    room = max(30, columns - LABEL - 4) if columns else None
    line = ""
    for i, item in enumerate(items):
        piece = item if i == len(items) - 1 else f"{item},"
        if line and room and len(line) + 1 + len(piece) > room:
            yield f"  {label:<{LABEL}}  {line}"
            label, line = "", piece
        else:
            line = f"{line} {piece}" if line else piece
    yield f"  {label:<{LABEL}}  {line}"
