"""What a profile says of its rules beside how they judge: arguments, and how long volumes may take to be bound."""

from __future__ import annotations

import pytest
from tests.unit.core.scheduling import default_profile, profile_of

from ksp.policy.load import DEFAULT, load, profiles
from ksp.source.origin import Texts

SHIPPED = 'import "ksp:volumes.ksp"'
OWN = 'predicate Own implements VolumeBinding { deny unresolvable "no" when size(pod.claimNames) > 3 }'


def test_arguments_are_the_values_of_all_parameters() -> None:
    rules = """predicate R {
      param most: int = 2
      param keys: list<string>
      param name: string = "a"
      deny "x" when node.podCount > most && node.name in keys + [name]
    }"""
    (active,) = profile_of(rules, 'predicates { R(name: "b") }', 'R.keys = ["k"]').predicates
    assert active.arguments == {"most": 2, "keys": ("k",), "name": "b"}


@pytest.mark.parametrize(
    ("rules", "uses", "settings", "timeout"),
    [
        (SHIPPED, "predicates { CheckVolumeBinding }", "", 600.0),
        (SHIPPED, "predicates { CheckVolumeBinding(bindTimeoutSeconds: 30) }", "", 30.0),
        (SHIPPED, "predicates { CheckVolumeBinding }", "CheckVolumeBinding.bindTimeoutSeconds = 0", 0.0),
        (OWN, "predicates { Own }", "", 600.0),
        (SHIPPED, "predicates { NoVolumeZoneConflict, NoDiskConflict }", "", None),
    ],
)
def test_the_timeout_is_that_of_the_rule_which_implements_volume_binding(
    rules: str, uses: str, settings: str, timeout: float | None
) -> None:
    assert profile_of(rules, uses, settings).bind_timeout == timeout


def test_plugin_arguments_say_it_as_they_do_for_kube_scheduler() -> None:
    module = load(Texts({}), DEFAULT).module
    assert module is not None
    (profile,) = profiles(module, {"VolumeBinding": {"bindTimeoutSeconds": 42}})
    assert (profile.bind_timeout, default_profile().bind_timeout) == (42.0, 600.0)
    (profile,) = profiles(module, {"VolumeBinding": {"bindTimeoutSeconds": -1}})
    assert profile.bind_timeout == 0
    assert profile.bind_timeout_error.startswith("CheckVolumeBinding.bindTimeoutSeconds must be a number of seconds")
