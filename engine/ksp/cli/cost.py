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
    write([_table(found), *_reasons(found)], sys.stdout)


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
    """A row for each rule. What a rule reads is one below the other, so that 100 columns are enough for whole names."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold", show_edge=False)
    for head in ("rule", "form", "reads of the pod", "views", "cost"):
        table.add_column(head, overflow="fold", no_wrap=head in ("rule", "form"))
    for each in found:
        reads = dict.fromkeys(_short(path) for path in each.footprint.pod)
        views = [view.name for view in each.footprint.views]
        table.add_row(_cell(each.rule.name), _cell(each.form), _cell(*reads), _cell(*views), _cell(each.cost))
    return table


def _cell(*lines: str) -> Text:
    return Text("\n".join(printable(line) for line in lines) or "-")


def _reasons(found: Sequence[Costs]) -> list[Text]:
    """Why rules are scalar, below the table."""
    reasons = [Text(printable(f"- {each.rule.name} is scalar: {each.why}")) for each in found if each.why]
    return [Text(), *reasons] if reasons else []


def _short(path: str) -> str:
    """`spec.affinity.nodeAffinity.x` as `affinity.nodeAffinity`."""
    steps = path.removeprefix("spec.").removeprefix("metadata.").split("[", maxsplit=1)[0].split(".")
    return ".".join(steps[:2])
