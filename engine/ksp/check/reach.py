"""Rules that no provider names and providers that no profile uses: written, and never asked."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from ksp.check import cautions
from ksp.check.program import Module
from ksp.check.report import Report
from ksp.check.typed import Provider
from ksp.source.text import Span

Place = tuple[str, int]  # of a declaration: the file's name, and where in it


def warn_of_unreached(report: Report, modules: Sequence[Module]) -> None:
    """Warns of what the files declare and none of them puts to use.

    A file with neither provider nor profile, be it imported, is a library: its rules wait for others. So do providers
    where no profile is; beside imported profiles only those are expected to decide that hold rules of their own file.
    A file that has errors may lack what names the rest, and is left out.
    """
    rules = set(_used_rules(modules))
    providers = set(_used_providers(modules))
    for module in modules:
        if module.failed or module.broken:
            continue
        if module.own_providers() or module.profiles():
            for rule in module.own_rules():
                if _place(rule.span) not in rules:
                    cautions.rule_in_no_provider(report, rule.span, rule.kind, rule.name)
        for provider in module.own_providers():
            if _place(provider.span) not in providers and _should_decide(provider, module):
                cautions.provider_in_no_profile(report, provider.span, provider.name)


def _should_decide(provider: Provider, module: Module) -> bool:
    if module.own_profiles():
        return True
    own = {rule.name for rule in module.own_rules()}
    return bool(module.profiles()) and any(use.rule.name in own for use in (*provider.predicates, *provider.priorities))


def _place(span: Span) -> Place:
    return span.source.name, span.start


def _used_rules(modules: Iterable[Module]) -> Iterator[Place]:
    for module in modules:
        for provider in module.providers().values():
            for use in (*provider.predicates, *provider.priorities):
                yield _place(use.rule.span)


def _used_providers(modules: Iterable[Module]) -> Iterator[Place]:
    """Those of profiles, and those that other providers are made of."""
    for module in modules:
        named: list[Provider] = [profile.provider for profile in module.profiles()]
        named += [part for provider in module.providers().values() for part in provider.parts]
        yield from (_place(provider.span) for provider in named)
