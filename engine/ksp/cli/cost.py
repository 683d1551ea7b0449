"""`ksp cost`: how each rule is computed over many nodes, how its work grows, and what makes pods alike to it."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass

import click
from rich import box
from rich.table import Table
from rich.text import Text

from ksp.check.cost import Analysis, show_cost
from ksp.check.report import Report
from ksp.check.typed import Rule
from ksp.cli.policy_files import chosen_rules, sound_policy
from ksp.cli.report import printable, write
from ksp.compile.footprint import Footprint, footprint_of
from ksp.compile.program import compile_rule


@dataclass(frozen=True, slots=True)
class Costs:
    """Of one rule. `form` is columns, parts or scalar; `why` says why it is scalar, else ""."""

    rule: Rule
    form: str
    why: str
    cost: str
    footprint: Footprint

    @property
    def shown_form(self) -> str:
        return f"{self.form}: {self.why}" if self.why else self.form


@click.command
@click.argument("file")
@click.option("--rule", "name", metavar="NAME", help="Only this rule; it may be an imported one.")
@click.option("--all", "imported", is_flag=True, help="The rules that the file imports, too.")
@click.option("--output-format", type=click.Choice(["text", "json"]), default="text", show_default=True)
def cost(file: str, name: str | None, imported: bool, output_format: str) -> None:
    """Show how the rules of FILE are computed for many nodes at once, and how the work grows.

    `columns`: arithmetic over arrays of all nodes. `parts`: once for each different value of the parts of a node that
    the rule reads, such as its taints. `scalar`: node by node, and why. Pods that do not differ in what the rule reads
    of them share its answers. `ksp:default.ksp` names a file of the shipped library.
    """
    rules = chosen_rules(sound_policy(file).module, name, imported=imported)
    found = [costs_of(rule) for rule in rules]
    if output_format == "json":
        click.echo(json.dumps({"file": file, "rules": [_object(each) for each in found]}, indent=2))
        return
    if not found:
        click.echo(f"{file} declares no rules of its own; --all takes those that it imports", err=True)
        return
    write([_table(found)], sys.stdout)


def costs_of(rule: Rule) -> Costs:
    """How a checked rule is computed, and its cost."""
    made = compile_rule(rule)
    form = "scalar" if made.scalar_because else "parts" if made.by_parts else "columns"
    return Costs(rule, form, made.scalar_because, show_cost(Analysis(Report()).rule(rule)), footprint_of(rule))


def _object(found: Costs) -> dict[str, object]:
    return {
        "name": found.rule.name,
        "kind": found.rule.kind,
        "plugin": found.rule.plugin,
        "form": found.form,
        "why": found.why,
        "cost": found.cost,
        "pod": list(found.footprint.pod),
        "views": [view.name for view in found.footprint.views],
    }


def _table(found: Sequence[Costs]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="bold", show_edge=False)
    for head, ratio in (("rule", None), ("form", 2), ("reads of the pod", 4), ("views", 2), ("cost", 4)):
        table.add_column(head, overflow="fold", no_wrap=ratio is None, ratio=ratio)
    for each in found:
        reads = ", ".join(dict.fromkeys(_short(path) for path in each.footprint.pod))
        views = ", ".join(view.name for view in each.footprint.views)
        cells = (each.rule.name, each.shown_form, reads or "-", views or "-", each.cost)
        table.add_row(*(Text(printable(cell)) for cell in cells))
    return table


def _short(path: str) -> str:
    """`spec.affinity.nodeAffinity.x` as `affinity.nodeAffinity`."""
    steps = path.removeprefix("spec.").removeprefix("metadata.").split("[", maxsplit=1)[0].split(".")
    return ".".join(steps[:2])
