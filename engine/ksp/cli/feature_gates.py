"""`--feature-gates NAME=true,NAME=false`, as Kubernetes' commands take them."""

from __future__ import annotations

from typing import Final

import click

from ksp.check.report import did_you_mean

EQUIVALENCE_CLASSES: Final = "EnableEquivalenceClassCache"

DEFAULTS: Final = {EQUIVALENCE_CLASSES: True}
"""The gates that there are, and what each is if nobody says."""

# What Go's strconv.ParseBool takes.
_WORDS: Final = {
    **dict.fromkeys(("1", "t", "T", "true", "TRUE", "True"), True),
    **dict.fromkeys(("0", "f", "F", "false", "FALSE", "False"), False),
}


def feature_gates(_context: click.Context, _option: click.Parameter, given: tuple[str, ...]) -> dict[str, bool]:
    """All gates with their values: the callback of an option that may be given several times."""
    gates = dict(DEFAULTS)
    for pair in (part.strip() for text in given for part in text.split(",")):
        if not pair:
            continue
        name, equals, word = (part.strip() for part in pair.partition("="))
        if name not in gates:
            meant = did_you_mean(name, gates)
            known = f"there {'are' if len(gates) > 1 else 'is'} {', '.join(sorted(gates))}"
            raise click.BadParameter(f"there is no feature gate `{name}`: {meant or known}")
        if not equals or word not in _WORDS:
            raise click.BadParameter(f"`{pair}` does not say true or false: write {name}=true or {name}=false")
        gates[name] = _WORDS[word]
    return gates
