"""`ksp run`: schedules the pods of a cluster."""

from __future__ import annotations

import logging
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import click

from ksp.cli.scheduler_flags.command import SchedulerCommand

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ksp.cli.feature_gates import Gates
    from ksp.cli.run_policy import Chosen
    from ksp.cli.scheduler_flags.given import Given
    from ksp.policy.assemble import Policy, Settings
    from ksp.policy.configuration import Configuration
    from ksp.policy.errors import PolicyError
    from ksp.runtime.options import Options

_HELP = """Schedule the pods of a cluster.

Watches the cluster, decides by the rules of the policy, and binds. Runs until SIGTERM or SIGINT: then the bindings on
their way finish, and it exits 0. Exits 1 if the policy, the configuration, the kubeconfig or the credentials cannot be
used, or if another scheduler has taken the lease.

The flags are kube-scheduler's, and some of ksp's own; docs/flags.md says of each what it does here.
"""


def _run(given: Given) -> None:
    from ksp import __version__
    from ksp.cli.feature_gates import feature_gates
    from ksp.cli.run_options import contradictions
    from ksp.kube.errors import ConfigError
    from ksp.policy.errors import PolicyError
    from ksp.runtime.process import run_process

    if given["version"]:
        click.echo(f"ksp {__version__}")
        return
    if wrong := list(contradictions(given)):
        raise click.UsageError("\n".join(wrong))
    gates = feature_gates(given["feature-gates"])
    try:
        options, effective, notes = _options(given, gates)
    except PolicyError as error:
        _give_up(error)
    if given["write-config-to"] is not None:
        _write(given["write-config-to"], effective, _warnings(given, notes, options.policy))
        return
    _open_log(given, gates, notes)
    try:
        run_process(options)
    except ConfigError as error:
        raise click.ClickException(str(error)) from error


run = SchedulerCommand("run", _run, _HELP)


# ---- what is to run


def _options(given: Given, gates: Gates) -> tuple[Options, Configuration, list[str]]:
    """What the scheduler is told, the configuration that this comes to, and what is to be said of it. Raises
    PolicyError with all that is wrong: with the file of --config, with the flags, and with the policy."""
    from ksp.cli.run_options import (
        effective_configuration,
        idle,
        options_of,
        settings_of,
        without_effect,
        without_keys,
    )
    from ksp.cli.run_policy import chosen
    from ksp.policy.configuration import write_configuration
    from ksp.policy.errors import PolicyError

    wrong: list[str] = []
    choice = None
    try:
        choice = chosen(given)
    except PolicyError as error:
        wrong += error.messages
    configuration, is_sound = _configuration(given, "" if choice is None else choice.provider, wrong)
    if choice is None:
        raise PolicyError(messages=wrong)
    settings = settings_of(given, configuration, choice.provider)
    policy = _policy(choice, settings, wrong, "" if is_sound else f"{given['config']}:")
    if wrong:
        raise PolicyError(messages=wrong)
    notes = [*choice.notes, *without_effect(given, configuration), *idle(given, configuration)]
    notes += configuration.warnings if configuration is not None else ()
    effective = effective_configuration(given, configuration, policy)
    shown = write_configuration(without_keys(effective))
    return options_of(given, configuration, gates, settings, choice.source, policy, shown), effective, notes


def _configuration(given: Given, provider: str, wrong: list[str]) -> tuple[Configuration | None, bool]:
    """What the file of --config says, as far as it can be read, and whether that is all. What is wrong with it, or with
    flags that go with it, is added to the list."""
    from ksp.cli.run_options import election_of
    from ksp.policy.configuration import ConfigurationError, read_configuration
    from ksp.policy.configuration.leader_election import election_problems

    name, configuration = given["config"], None
    if name:
        try:
            text = Path(name).read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            why = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
            wrong.append(f"--config: cannot read {name}: {why}")
            return None, False
        try:
            configuration = read_configuration(text, name, provider=provider)
        except ConfigurationError as error:
            wrong += error.messages
            return error.partial, False
    wrong += map(str, election_problems(election_of(given, configuration)))
    return configuration, True


def _policy(choice: Chosen, settings: Settings, wrong: Sequence[str], of_file: str) -> Policy | None:
    """The rules; None where only the cluster knows them. What else is `wrong` is told with what is wrong here. Of that,
    if the file of --config is not sound, only messages count that begin with its name, `of_file`: others, that there is
    no profile, may just follow."""
    from ksp.policy.assemble import assemble
    from ksp.policy.errors import PolicyError
    from ksp.policy.load import DEFAULT

    configuration = settings.configuration
    default = DEFAULT if configuration is None else configuration.rules
    if choice.provider and configuration is not None and configuration.profiles:
        choice = replace(choice, shipped="")  # the provider is what these profiles start from
    texts = None
    try:
        texts = choice.texts(default)
        return None if texts is None else assemble(texts, settings)
    except PolicyError as error:
        may_follow = texts is not None and not texts.legacy
        found = [each for each in error.messages if not may_follow or each.startswith(of_file)]
        raise PolicyError(error.diagnostics, (*wrong, *found)) from error


# ---- what is said


def _give_up(error: PolicyError) -> NoReturn:
    from ksp.cli.terminal import is_colored, width

    click.echo(error.rendered(colored=is_colored(sys.stderr), columns=width(sys.stderr)), nl=False, err=True)
    raise click.exceptions.Exit(1)


def _warnings(given: Given, notes: Sequence[str], policy: Policy | None) -> list[str]:
    """What the log would say of the flags and of the policy."""
    from ksp.cli.scheduler_flags.given import warnings_of

    of_policy: list[str] = []
    if policy is not None:
        of_policy = [*(f"{each.span.where}: {each.message}" for each in policy.warnings), *policy.notes]
    return [*warnings_of(given), *notes, *of_policy]


def _write(path: str, configuration: Configuration, warnings: Sequence[str]) -> None:
    """As kube-scheduler's --write-config-to. What ksp would warn of when it runs is told here too."""
    from ksp.policy.configuration import write_configuration

    for warning in warnings:
        click.echo(f"Warning: {warning}", err=True)
    Path(path).write_text(write_configuration(configuration), "utf-8")
    click.echo(f"wrote the configuration to {path}", err=True)


def _open_log(given: Given, gates: Gates, notes: Sequence[str]) -> None:
    """The log, and in it what is to be said of the flags."""
    from ksp.cli.run_options import log_settings
    from ksp.cli.scheduler_flags.given import warnings_of, without_meaning
    from ksp.runtime.log import entry, set_up

    settings = log_settings(given)
    set_up(settings)
    log = logging.getLogger("ksp.flags")
    if settings.to_stderr and settings.file is not None:
        log.warning(entry("the log goes to stderr: add --logtostderr=false", file=settings.file))
    for warning in (*warnings_of(given), *notes):
        log.warning(entry(warning))
    for name, why in without_meaning(given):
        log.info(entry("flag without meaning here", flag=f"--{name}", why=why))
    for name in gates.meaningless:
        log.info(entry("feature gate without meaning here", gate=name))
