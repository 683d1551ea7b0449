"""What tests of configurations share: texts with their header, rules from text, what is said."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import pytest

from ksp.check.program import Module
from ksp.policy.configuration import Configuration, ConfigurationError, Profiles, profiles_of, read_configuration
from ksp.policy.load import load
from ksp.policy.profile import ProfileBuilder
from ksp.source.origin import Texts

VERSIONS = ("v1beta1", "v1beta2", "v1beta3", "v1")
MODERN = ("v1beta2", "v1beta3", "v1")
MULTI_POINT = ("v1beta3", "v1")


def text_of(body: str = "", version: str = "v1") -> str:
    """A configuration: the body starts on line 3."""
    return f"apiVersion: kubescheduler.config.k8s.io/{version}\nkind: KubeSchedulerConfiguration\n{body}"


def read(body: str = "", version: str = "v1", provider: str = "") -> Configuration:
    return read_configuration(text_of(body, version), "c.yaml", provider)


@cache
def module(rules: str) -> Module:
    """A shipped file by its name, or rules as text."""
    found = load(Texts({}), rules) if rules.startswith("ksp:") else load(Texts({"own.ksp": rules}), "own.ksp")
    assert found.module is not None, found.diagnostics
    return found.module


OWN = """
import "ksp:modern.ksp"
predicate P implements Both { deny "no" when node.podCount > 100 }
priority S implements Both { score 1 }
priority Only { score 2 }
predicate FewPods implements FewPods { param most: int = 5  deny "too many" when node.podCount >= most }
"""

BUILDER = ProfileBuilder()  # a rule is compiled once for all tests


def resolve(body: str = "", version: str = "v1", rules: str = "", provider: str = "") -> Profiles:
    configuration = read(body, version, provider)
    return profiles_of(configuration, module(rules or configuration.rules), BUILDER)


def errors(made: Callable[[], object]) -> list[str]:
    """What is wrong, without the file's name."""
    with pytest.raises(ConfigurationError) as caught:
        made()
    assert all(each.startswith("c.yaml:") for each in caught.value.messages)
    return [each.removeprefix("c.yaml:") for each in caught.value.messages]


def warnings(profiles: Profiles | Configuration) -> list[str]:
    return [each.removeprefix("c.yaml:") for each in profiles.warnings]


def profile(plugins: str, config: str = "") -> str:
    """The body of a configuration with one profile, in flow style; its `plugins` are on line 4, `pluginConfig` on 5."""
    said = f"\n  pluginConfig: {config}" if config else ""
    return f"profiles:\n- plugins: {plugins}{said}\n"
