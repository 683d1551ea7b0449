"""`ksp compile`: what rules are compiled to."""

from __future__ import annotations

from types import CodeType

import click

from ksp.cli.policy_files import chosen_rules, sound_policy
from ksp.cli.terminal import counted
from ksp.compile.program import CompiledRule, compile_rule

LONGEST = 90


@click.command("compile")
@click.argument("file")
@click.option("--rule", "name", metavar="NAME", help="Only this rule; it may be an imported one.")
@click.option("--all", "imported", is_flag=True, help="The rules that the file imports, too.")
@click.option("--show", is_flag=True, help="Print the generated functions.")
def compile_(file: str, name: str | None, imported: bool, show: bool) -> None:
    """Compile the rules of FILE, and say how large they are or, with --show, print the functions.

    `ksp:default.ksp` names a file of the shipped library.
    """
    module = sound_policy(file).module
    rules = chosen_rules(module, name, imported=imported)
    if not rules:
        click.echo(f"{file} declares no rules of its own; --all takes those that it imports", err=True)
    for i, rule in enumerate(rules):
        compiled = compile_rule(rule)
        if not show:
            click.echo(_size(compiled))
            continue
        click.echo(("\n\n" if i else "") + "\n".join(_head(compiled)))
        click.echo(compiled.source)


def _size(compiled: CompiledRule) -> str:
    lines = counted(compiled.source.count("\n") + 1, "line")
    return f"{compiled.rule.name}: {lines}, {counted(_code_bytes(compiled.code), 'byte')} of code"


def _code_bytes(code: CodeType) -> int:
    return len(code.co_code) + sum(_code_bytes(c) for c in code.co_consts if isinstance(c, CodeType))


def _head(compiled: CompiledRule) -> list[str]:
    rule = compiled.rule
    lines = [f"# {rule.kind} {rule.name}, {rule.span.where}, implements {rule.plugin}"]
    lines += [f"#   {name} = {_shown(value)}" for name, value in compiled.constants.items()]
    return lines


def _shown(value: object) -> str:
    """A constant in one line."""
    if callable(value):
        return f"the function {getattr(value, '__name__', 'of the language')}"
    text = " ".join(repr(value).split())
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"
