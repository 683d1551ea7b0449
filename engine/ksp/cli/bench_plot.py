"""Decisions a second against nodes, as a picture."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Final

import click

from ksp.sim.bench.figures import Summary

ENDINGS: Final = (".svg", ".png")
INSTALL: Final = "plots need matplotlib: pip install matplotlib"


def check_plot(_context: click.Context, _option: click.Parameter, path: Path | None) -> Path | None:
    """Better now than after minutes of work."""
    if path is None:
        return None
    if path.suffix.lower() not in ENDINGS:
        raise click.BadParameter(f"{path} ends neither in .svg nor in .png")
    if not path.absolute().parent.is_dir():
        raise click.BadParameter(f"there is no folder {path.parent} to write to")
    if find_spec("matplotlib") is None:
        raise click.ClickException(INSTALL)
    return path


def plot(found: Sequence[Summary], path: Path) -> None:
    """A line for each workload; of several runs the medians, with bars from the least to the most."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 6), layout="constrained")
    axes = figure.subplots()
    for workload in dict.fromkeys(each.conditions.workload for each in found):
        points = sorted(
            (each for each in found if each.conditions.workload == workload), key=lambda each: each.conditions.nodes
        )
        rates = [each.median.decisions_per_second for each in points]
        spreads = [each.spread["decisions_per_second"] for each in points]
        errors = [
            [rate - spread.least for rate, spread in zip(rates, spreads, strict=True)],
            [spread.most - rate for rate, spread in zip(rates, spreads, strict=True)],
        ]
        nodes = [each.conditions.nodes for each in points]
        axes.errorbar(nodes, rates, yerr=errors, marker="o", capsize=3, label=workload)
    sizes = sorted({each.conditions.nodes for each in found})
    axes.set(xlabel="nodes", ylabel="decisions a second", title="ksp: the core alone", xscale="log")
    axes.set_ylim(bottom=0)
    axes.set_xticks(sizes, [f"{size:,}" for size in sizes])
    axes.minorticks_off()
    axes.yaxis.set_major_formatter("{x:,.0f}")
    axes.grid(visible=True, alpha=0.3)
    axes.legend(fontsize="small")
    figure.savefig(path)
