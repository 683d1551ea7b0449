"""`ksp rule`: the page of a diagnostic."""

from __future__ import annotations

import re
from difflib import get_close_matches

import click

from ksp.source.catalogue import CATALOGUE


@click.command
@click.argument("code", required=False)
def rule(code: str | None) -> None:
    """Explain the diagnostic with this CODE, such as KSP0201; without a CODE list them all."""
    if code is None:
        for entry in CATALOGUE.values():
            click.echo(f"{entry.code}  {entry.title}")
        return
    wanted = _full(code)
    if wanted not in CATALOGUE:
        near = get_close_matches(wanted, CATALOGUE, n=1, cutoff=0.8)
        meant = f"did you mean `{near[0]}`?" if near else "`ksp rule` lists them all"
        raise click.UsageError(f"there is no diagnostic `{code}`: {meant}")
    click.echo(CATALOGUE[wanted].page, nl=False)


def _full(code: str) -> str:
    """`ksp201` and `201` are KSP0201."""
    number = re.fullmatch(r"(?:KSP)?0*([0-9]{1,4})", code.strip(), re.IGNORECASE)
    return f"KSP{int(number[1]):04d}" if number else code.strip().upper()
