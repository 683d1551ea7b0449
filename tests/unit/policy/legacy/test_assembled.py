"""A Policy as it is, and what it is converted to with its file of extenders: the same rules run."""

from __future__ import annotations

import json

from tests.unit.policy.legacy.policies import absent, policy, predicate, priority

from ksp.check.program import Checker
from ksp.policy.assemble import Policy, Settings, assemble
from ksp.policy.configuration import read_configuration
from ksp.policy.legacy import RULES, policy_of
from ksp.policy.legacy.conversion import converted
from ksp.policy.texts import PolicyTexts
from ksp.source.origin import Texts

FIELDS = policy(
    predicates=[predicate("GeneralPredicates"), predicate("Own", labelsPresence=absent("old"))],
    priorities=[priority("InterPodAffinityPriority", 3)],
    hardPodAffinitySymmetricWeight=20,
    alwaysCheckAllPredicates=True,
    extenders=[
        {"urlPrefix": "http://a", "ignorable": True, "filterVerb": "f"},
        {"urlPrefix": "https://b", "enableHttps": True, "bindVerb": "bind", "httpTimeout": 1_000_000_000},
    ],
)


def shape(made: Policy) -> object:
    (profile,) = made.profiles
    return (
        [(active.name, active.arguments) for active in profile.predicates],
        [(active.name, active.weight) for active in profile.priorities],
        (profile.scheduler_name, profile.preempts, profile.checks_all, profile.percentage, profile.candidates),
        made.extenders,
    )


def test_both_come_to_the_same() -> None:
    legacy = assemble(PolicyTexts("policy.json", {"policy.json": json.dumps(FIELDS)}, (), "policy.json"), Settings())
    rules = Checker(Texts({})).check(RULES)
    assert rules is not None
    conversion = converted(policy_of(FIELDS, "policy.json"), rules)
    beside = read_configuration(conversion.extenders, "policy.extenders.yaml")
    texts = PolicyTexts("policy.ksp", {"policy.ksp": conversion.text}, ("policy.ksp",))
    assert shape(assemble(texts, Settings(configuration=beside))) == shape(legacy)
    assert [each.url_prefix for each in legacy.extenders] == ["https://b", "http://a"]
    assert (legacy.profiles[0].preempts, legacy.profiles[0].checks_all) == (False, True)
