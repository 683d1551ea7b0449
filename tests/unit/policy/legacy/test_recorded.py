"""What kube-scheduler 1.19 makes of names, arguments and whole Policies: all that was recorded of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ksp.policy.legacy import Configured, LegacyPolicyError, names, read_and_configure

pytestmark = pytest.mark.shared

FAILED = "couldn't create scheduler from policy: "
"""What kube-scheduler puts before the first error."""


@pytest.fixture(scope="module")
def recorded(shared: Path) -> Any:
    return json.loads((shared / "golden" / "legacy-1.19.json").read_text())


def points(configured: Configured) -> dict[str, list[dict[str, Any]]]:
    """As recorded: weights only where plugins score."""
    return {
        point: [{"name": name, "weight": weight} if point == "score" else {"name": name} for name, weight in plugins]
        for point, plugins in configured.points.items()
    }


def test_every_policy_comes_to_the_recorded_configuration_or_error(recorded: Any) -> None:
    failed = 0
    for example in recorded["policyExamples"]:
        text = json.dumps(example["policy"])
        if "error" in example:
            failed += 1
            with pytest.raises(LegacyPolicyError) as caught:
                read_and_configure(text, "policy.json")
            assert FAILED + caught.value.errors[0].message == example["error"]
            assert caught.value.errors[0].pointer
        else:
            configured = read_and_configure(text, "policy.json")
            assert points(configured) == example["plugins"]
            assert configured.plugin_config == example["pluginConfig"]
            assert configured.plugins.checks_all == example["alwaysCheckAllPredicates"]
            assert not configured.plugins.preempts
    assert failed >= 7


def test_every_predicate_is_the_recorded_plugins(recorded: Any) -> None:
    assert list(names.PREDICATES) == recorded["predicateOrdering"]
    for name, mapping in recorded["predicates"].items():
        mapped = {point: [{"name": each} for each in plugins] for point, plugins in names.PREDICATES[name].items()}
        assert mapped == mapping["plugins"], name
        assert mapping["pluginConfig"] == {}
    assert recorded["predicates"].keys() == names.PREDICATES.keys()


def test_every_priority_is_the_recorded_plugin(recorded: Any) -> None:
    arguments: dict[str, Any] = {
        "NodeLabel": [{"labelPreference": {"label": x, "presence": x != "c"}} for x in "abc"],
        "ServiceAffinity": [{"serviceAntiAffinity": {"label": x}} for x in ("zone", "rack")],
        "RequestedToCapacityRatio": [
            {"requestedToCapacityRatioArguments": {"shape": [{"utilization": 0, "score": 0}]}}
        ],
    }
    for name, mapping in recorded["priorities"].items():
        named = [{"name": f"own{i}", "weight": 7, "argument": each} for i, each in enumerate(arguments.get(name, ()))]
        policy = {"kind": "Policy", "apiVersion": "v1", "priorities": named or [{"name": name, "weight": 7}]}
        configured = read_and_configure(json.dumps({**policy, "predicates": []}), "policy.json")
        made = points(configured)
        assert {point: made[point] for point in ("preScore", "score") if point in made} == mapping["plugins"], name
        if name != "RequestedToCapacityRatio":  # recorded without arguments, with which nothing starts
            assert configured.plugin_config == mapping["pluginConfig"]
    assert recorded["priorities"].keys() == names.PRIORITIES.keys()


def test_what_is_mandatory_default_or_another_name(recorded: Any) -> None:
    assert sorted(names.MANDATORY) == recorded["mandatoryPredicates"]
    assert sorted(names.DEFAULT_PREDICATES) == recorded["defaultPredicates"]
    assert recorded["defaultPriorities"] == names.DEFAULT_PRIORITIES
    assert recorded["predicateAliases"] == names.PREDICATE_ALIASES
    assert recorded["priorityAliases"] == names.PRIORITY_ALIASES
    assert recorded["ignoredPriorities"] == [names.EQUAL_PRIORITY]
