"""From the options of a command to the profiles that schedule: a policy file, one of its providers, how many nodes."""

from __future__ import annotations

from dataclasses import replace

import click

from ksp.check.report import did_you_mean
from ksp.cli.policy_files import sound_policy
from ksp.policy.load import DEFAULT, profiles
from ksp.policy.profile import Profile, ProfileBuilder

__all__ = ["DEFAULT", "chosen_profiles"]


def chosen_profiles(policy: str = DEFAULT, provider: str | None = None, percentage: int | None = None) -> list[Profile]:
    """The policy's profiles; or one with that provider, for pods that name no scheduler. `percentage` of the nodes to
    score replaces what the policy says. Errors of the policy go to stderr, with exit 1."""
    module = sound_policy(policy).module
    if provider is None:
        found = profiles(module)
    else:
        providers = module.providers()
        if provider not in providers:
            meant = did_you_mean(provider, providers)
            raise click.UsageError(f"there is no provider `{provider}` in {policy}{': ' + meant if meant else ''}")
        found = [ProfileBuilder().build(providers[provider])]
    if not found:
        names = ", ".join(module.providers()) or "it has none"
        raise click.UsageError(f"{policy} declares no profile: choose a provider with --provider ({names})")
    return found if percentage is None else [replace(each, percentage=percentage) for each in found]
