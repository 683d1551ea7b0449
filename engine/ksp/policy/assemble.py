"""From texts and settings to the rules that schedule.

The texts can change while the scheduler runs, the settings cannot. Both say something of the same things; which of them
counts is the table of precedence in docs/flags.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from ksp.check import typed
from ksp.check.program import Module
from ksp.check.reach import warn_of_unreached
from ksp.check.report import Report
from ksp.check.together import Checking, concerns_user, unreadable
from ksp.policy.configuration import Configuration, ConfigurationError, profiles_of
from ksp.policy.declared import declared_profiles, hash_of, is_shipped, only_provider
from ksp.policy.errors import PolicyError
from ksp.policy.extender import Extender
from ksp.policy.legacy import RULES, Configured, LegacyPolicyError, read_and_configure
from ksp.policy.plugins import profile_of
from ksp.policy.profile import PluginArguments, Profile, ProfileBuilder
from ksp.policy.texts import PolicyTexts, shown_as
from ksp.policy.union import ambiguous, union_of
from ksp.policy.values import ArgumentError
from ksp.source.diagnostic import Diagnostic, Severity
from ksp.source.origin import SHIPPED
from ksp.source.render import in_order

DEFAULT_SCHEDULER: Final = "default-scheduler"
POLICY_AND_PLUGINS: Final = "cannot set a Plugin config and Policy config"
"""What kube-scheduler 1.19 says where both a Policy and profiles with plugins are given."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What flags and the file of `--config` say of the rules. None and "" are what nobody said. `configuration` has
    been read with the same `provider`. Where no policy is named, the texts are its `rules`: then its profiles count, be
    they those of its version."""

    scheduler_name: str | None = None
    percentage: int | None = None
    provider: str = ""
    hard_pod_affinity_weight: int | None = None
    configuration: Configuration | None = None


@dataclass(frozen=True, slots=True)
class Policy:
    """The rules: `name` is what the user called them by, `sha256` the hash of all texts that they were read from, those
    of the shipped library included. `warnings` are what `ksp check` finds in them, errors aside: there are none;
    `notes` are warnings that have no place in a text. `effective` is the configuration of `--config`, if its profiles
    count, with all plugins spread out."""

    name: str
    sha256: str
    profiles: tuple[Profile, ...]
    extenders: tuple[Extender, ...] = ()
    warnings: tuple[Diagnostic, ...] = ()
    notes: tuple[str, ...] = ()
    effective: Configuration | None = None


@dataclass(slots=True)
class _Found:
    """What came of it so far."""

    effective: Configuration | None = None
    profiles: list[Profile] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def assemble(texts: PolicyTexts, settings: Settings) -> Policy:
    """The rules that the texts and the settings make. Raises PolicyError with all that is wrong."""
    policy = _of_legacy(texts, settings) if texts.legacy else _of_rules(texts, settings)
    errors = [f'the profile "{each.scheduler_name}": {each.bind_timeout_error}' for each in policy.profiles
              if each.bind_timeout_error]  # fmt: skip
    if errors:
        raise PolicyError(messages=errors)
    if settings.percentage is None:
        return policy
    return replace(policy, profiles=tuple(replace(each, percentage=settings.percentage) for each in policy.profiles))


# ---- rules


def _of_rules(texts: PolicyTexts, settings: Settings) -> Policy:
    modules, warnings = _checked(texts)
    configuration = settings.configuration
    found = _Found()
    declared, found.errors = declared_profiles(modules)
    if configuration is not None and (configuration.profiles or texts.roots == (configuration.rules,)):
        declared = [each for each in declared if not is_shipped(each)]
        _take_declared(declared, settings, found)
        library = _library(configuration, texts)
        _take_configured(configuration, declared, modules, library, settings, found)
        modules = [*modules, *library]
        if not configuration.profiles:
            _rename(texts.name, settings.scheduler_name, found)
    elif settings.provider:
        provider = modules[0].providers()[settings.provider]
        _take_provider(provider, settings, found)
    elif declared:
        _take_declared(declared, settings, found)
        _rename(texts.name, settings.scheduler_name, found)
    else:
        only = only_provider(texts.name, modules)
        if isinstance(only, str):
            found.errors.append(only)
        else:
            _take_provider(only, settings, found)
    if found.errors:
        raise PolicyError(messages=found.errors)
    return Policy(
        settings.provider or texts.name, hash_of(modules), tuple(found.profiles),
        configuration.extenders if configuration is not None else (), tuple(warnings), tuple(found.notes),
        found.effective,
    )  # fmt: skip


def _checked(texts: PolicyTexts) -> tuple[list[Module], list[Diagnostic]]:
    """The files that the texts name, and what `ksp check` warns of in them. Files of tests are checked too, and may use
    rules, but are none of the policy."""
    checking, modules = Checking(texts.origin()), {}
    found: list[Diagnostic] = []
    for key in dict.fromkeys((*texts.roots, *texts.tests)):
        module, diagnostics = checking.check(key)
        found += diagnostics if key.startswith(SHIPPED) else filter(concerns_user, diagnostics)
        if module is not None:
            modules[key] = module
        elif not any(each.severity is Severity.ERROR for each in diagnostics):
            found.append(unreadable(shown_as(texts.shown, key), "there is no such file"))
    if not texts.roots:
        found.append(unreadable(texts.name, "there is no policy (`*.ksp`) in it"))
    report = Report()
    warn_of_unreached(report, list(modules.values()))
    found += report.found
    errors = [each for each in found if each.severity is Severity.ERROR]
    if errors:
        raise PolicyError(errors)
    of_tests = {shown_as(texts.shown, key) for key in texts.tests if key not in texts.roots}
    warnings = [each for each in in_order(found) if each.severity is Severity.WARNING]
    return (
        [modules[key] for key in texts.roots],
        [each for each in warnings if each.span.source.name not in of_tests],
    )


# ---- profiles


def _take_declared(declared: Sequence[typed.Profile], settings: Settings, found: _Found) -> None:
    builder, configuration = ProfileBuilder(), settings.configuration
    beside = None if configuration is None else configuration.percentage
    for each in declared:
        try:
            profile = builder.of(each, _plugins(settings))
        except ArgumentError as error:
            found.errors.append(f'the profile "{each.name}": {error}')
            continue
        if beside is not None and (each.percentage is None or is_shipped(each)):
            profile = replace(profile, percentage=beside)
        found.profiles.append(profile)


def _take_provider(provider: typed.Provider, settings: Settings, found: _Found) -> None:
    configuration = settings.configuration
    percentage = None if configuration is None else configuration.percentage
    name = settings.scheduler_name or DEFAULT_SCHEDULER
    try:
        profile = ProfileBuilder().build(
            provider, scheduler_name=name, plugins=_plugins(settings),
            percentage=100 if percentage is None else percentage,
        )  # fmt: skip
    except ArgumentError as error:
        found.errors.append(f'the profile "{name}": {error}')
        return
    found.profiles.append(profile)


def _library(configuration: Configuration, texts: PolicyTexts) -> list[Module]:
    """The shipped rules that plugins mean of which no rule of the policy bears the name."""
    if texts.roots == (configuration.rules,):
        return []
    return _checked(PolicyTexts(configuration.rules, {}, (configuration.rules,)))[0]


def _take_configured(
    configuration: Configuration, declared: Sequence[typed.Profile], modules: Sequence[Module],
    library: Sequence[Module], settings: Settings, found: _Found,
) -> None:  # fmt: skip
    """The profiles of the file of `--config`, beside those that the policy declares under other names."""
    declared_at = {each.name: each.span for each in declared}
    for name in (each.scheduler_name for each in configuration.profiles or ()):
        if name in declared_at:
            place = declared_at[name].where
            found.errors.append(f'the profile "{name}" is in the file of --config and in {place}: only one may name it')
    try:
        made = profiles_of(configuration, union_of([*modules, *library]), ProfileBuilder(), settings.percentage)
    except ConfigurationError as error:
        found.errors += error.messages
        return
    found.profiles += made.profiles
    found.notes += made.warnings
    found.effective = made.effective
    named = {plugin.name for profile in made.effective.all_profiles() for points in profile.points.values()
             for plugin in points}  # fmt: skip
    found.errors += ambiguous(modules, named)


def _rename(policy: str, name: str | None, found: _Found) -> None:
    """A single profile takes the name of `--scheduler-name`."""
    if name is None or found.errors:
        return
    if len(found.profiles) > 1:
        names = ", ".join(each.scheduler_name for each in found.profiles)
        found.errors.append(f"{policy} declares several profiles ({names}): --scheduler-name would rename all of them")
        return
    found.profiles = [replace(found.profiles[0], scheduler_name=name)]


def _plugins(settings: Settings) -> PluginArguments:
    """Arguments of plugins that flags and extenders give, where the policy itself says nothing else."""
    arguments: dict[str, dict[str, object]] = {}
    if settings.hard_pod_affinity_weight is not None:
        arguments["InterPodAffinity"] = {"hardPodAffinityWeight": settings.hard_pod_affinity_weight}
    extenders = settings.configuration.extenders if settings.configuration is not None else ()
    ignored = sorted({name for each in extenders for name in each.ignored_resources})
    if ignored:
        arguments["NodeResourcesFit"] = {"ignoredResources": ignored}
    return arguments


# ---- a legacy Policy


def _of_legacy(texts: PolicyTexts, settings: Settings) -> Policy:
    text, configuration = texts.files[texts.legacy], settings.configuration
    errors = []
    if configuration is not None and configuration.has_plugins:
        errors.append(POLICY_AND_PLUGINS)
    configured = _configured(text, shown_as(texts.shown, texts.legacy), errors)
    if errors or configured is None:
        raise PolicyError(messages=errors)
    (module,), _ = _checked(PolicyTexts(RULES, {}, (RULES,)))
    builder = ProfileBuilder()
    profiles = tuple(
        profile_of(configured.plugins, module, builder, name, percentage)
        for name, percentage in _names(settings).items()
    )
    notes = [f"{shown_as(texts.shown, texts.legacy)}: {warning}" for warning in configured.warnings]
    if settings.hard_pod_affinity_weight is not None:
        flag = "--hard-pod-affinity-symmetric-weight"
        notes.append(f"{flag} has no effect beside a Policy, which has hardPodAffinitySymmetricWeight")
    if configuration is not None and configuration.extenders:
        notes.append("the extenders of --config do not count beside a Policy: the Policy's do")
    digest = hash_of([module], {texts.legacy: text})
    return Policy(texts.name, digest, profiles, configured.extenders, notes=tuple(notes))


def _names(settings: Settings) -> dict[str, int]:
    """Who schedules by a Policy, and what percentage of nodes to score is usual there."""
    configuration = settings.configuration
    if configuration is None:
        return {settings.scheduler_name or DEFAULT_SCHEDULER: 100}
    usual = 100 if configuration.percentage is None else configuration.percentage
    found = {
        each.scheduler_name: usual if each.percentage is None else each.percentage
        for each in configuration.profiles or ()
    }
    return found or {settings.scheduler_name or DEFAULT_SCHEDULER: usual}


def _configured(text: str, name: str, errors: list[str]) -> Configured | None:
    try:
        return read_and_configure(text, name)
    except LegacyPolicyError as error:
        errors += error.messages
        return None
