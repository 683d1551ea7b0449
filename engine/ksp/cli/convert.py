"""`ksp convert`: a legacy Policy as a policy of ksp."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from contextlib import nullcontext
from pathlib import Path
from typing import NoReturn

import click

from ksp.check.program import Module
from ksp.cli.conversion_report import Written, as_json, as_text, errors_as_json
from ksp.cli.policy_files import STDIN, sound_policy
from ksp.policy.legacy import RULES, LegacyPolicyError, policy_of
from ksp.policy.legacy.conversion import Conversion, converted
from ksp.policy.legacy.mistakes import Mistake
from ksp.policy.legacy.policy import DEFAULT_SCHEDULER
from ksp.policy.legacy.reading import MAX_CHARACTERS, policy_in
from ksp.sim.conversion_proof import NotSoundError, Proof, proof

DECISIONS = 300
MAX_BYTES = 4 * MAX_CHARACTERS
SUFFIX = ".ksp"


@click.command
@click.argument("policy")
@click.option("-o", "--output", metavar="FILE.ksp", default="-", help="Where the policy goes; else to standard output.")
@click.option("--report", metavar="FILE", help="Where the report goes; `-` is standard output.")
@click.option("--json", "is_json", is_flag=True, help="Write the report as JSON.")
@click.option("--preemption", is_flag=True, help="Let the policy preempt, which kube-scheduler 1.19.0 does not.")
@click.option(
    "--scheduler-name", metavar="NAME", default=DEFAULT_SCHEDULER, show_default=True, help="Whose pods it is for."
)
@click.option(
    "--decisions", type=click.IntRange(1), default=DECISIONS, show_default=True, help="How many are compared."
)
@click.option("--force", is_flag=True, help="Overwrite files that exist.")
def convert(
    policy: str, output: str, report: str | None, is_json: bool, preemption: bool, scheduler_name: str, decisions: int,
    force: bool,
) -> None:  # fmt: skip
    """Convert the legacy Policy in POLICY (JSON or YAML, or a ConfigMap with the key policy.cfg; `-` is standard input)
    to a policy of ksp that decides the same.

    What was written is read back, and both decide pods in generated clusters: were there a difference, nothing would
    be written. The report has what became of every part, by JSON pointer. It goes to standard output, or to standard
    error where the policy goes there. Extenders become a KubeSchedulerConfiguration beside FILE.ksp. All errors of a
    Policy are reported, and make ksp exit with 1.
    """
    _check_targets(output, report)
    rules = sound_policy(RULES).module
    name = STDIN if policy == "-" else policy
    try:
        conversion = _converted(_text(policy), name, rules, scheduler_name, preempts=preemption)
    except LegacyPolicyError as error:
        _check_files(policy, [report or "-"], force=force)
        _refuse(error, report, is_json=is_json)
    written = _written(conversion, output)
    _check_files(policy, [output, written.extenders, report or "-"], force=force)
    proved = _proved(conversion, rules, decisions)
    made = (as_json if is_json else as_text)(name, conversion, proved, written)
    for target, text in ((written.extenders, conversion.extenders), (output, conversion.text)):
        _write(target, text)
    if report is None:
        click.echo(made, nl=False, err=output == "-")
    else:
        _write(report, made)


def _check_targets(output: str, report: str | None) -> None:
    if output == "-" == report:
        raise click.UsageError("the policy and the report cannot both go to standard output: give -o FILE.ksp")
    if output != "-" and not output.endswith(SUFFIX):
        raise click.UsageError(f"{output} does not end in {SUFFIX}, by which ksp knows a policy")
    if output != "-" and output == report:
        raise click.UsageError("the policy and the report cannot be one file")


def _text(path: str) -> str:
    name = STDIN if path == "-" else path
    with nullcontext(sys.stdin.buffer) if path == "-" else Path(path).open("rb") as file:
        data = file.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise LegacyPolicyError(name, [Mistake(f"larger than {MAX_BYTES:,} bytes", "")])
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise LegacyPolicyError(name, [Mistake(f"not UTF-8 text: line {line}", "")]) from None


def _converted(text: str, name: str, rules: Module, scheduler_name: str, *, preempts: bool) -> Conversion:
    value, within = policy_in(text, name)
    policy = policy_of(value, within, scheduler_name)
    return converted(policy, rules, scheduler_name, preempts=preempts)


def _refuse(error: LegacyPolicyError, report: str | None, *, is_json: bool) -> NoReturn:
    """All errors on stderr, and in the report if one is wanted."""
    lines = "".join(f"{message}\n" for message in error.messages)
    if report is not None or is_json:
        _write(report or "-", errors_as_json(error) if is_json else lines)
    click.echo(lines, nl=False, err=True)
    raise click.exceptions.Exit(1)


def _written(conversion: Conversion, output: str) -> Written:
    if not conversion.extenders:
        return Written(output, "")
    if output == "-":
        raise click.ClickException("the Policy has extenders, which become a file beside the policy: give -o FILE.ksp")
    return Written(output, output.removesuffix(SUFFIX) + ".extenders.yaml")


def _check_files(source: str, targets: Iterable[str], *, force: bool) -> None:
    """Nothing is overwritten unasked, and the Policy itself never."""
    there = [Path(target) for target in targets if target not in ("", "-") and Path(target).exists()]
    own = [path for path in there if source != "-" and path.samefile(source)]
    if own:
        raise click.UsageError(f"{own[0]} is the Policy itself")
    if there and not force:
        names = ", ".join(map(str, there))
        raise click.ClickException(f"{names} {'exists' if len(there) == 1 else 'exist'}; --force overwrites")


def _proved(conversion: Conversion, rules: Module, decisions: int) -> Proof:
    """The proof. A difference is a fault of ksp: nothing has been written yet."""
    try:
        proved = proof(conversion, rules, decisions)
    except NotSoundError as error:
        said = "\n".join(f"  {message}" for message in error.messages)
        raise click.ClickException(f"kube-scheduler takes this Policy, but it cannot be converted:\n{said}") from error
    if proved.comparison.difference:
        raise AssertionError(f"the converted policy decides otherwise: {proved.comparison.difference}")
    return proved


def _write(target: str, text: str) -> None:
    if target == "-":
        click.echo(text, nl=False)
    elif target:
        Path(target).write_text(text, encoding="utf-8")
