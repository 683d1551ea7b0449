"""The legacy Policy (kind: Policy, apiVersion: v1), as kube-scheduler 1.19 takes it.

text -> reading (plain values) -> decoding (LegacyPolicy) -> validation, translation (plugins, extenders).
All of it reports every mistake, with its JSON pointer; the first is the one that kube-scheduler stops at, in its words.
"""

from ksp.policy.legacy.mistakes import LegacyPolicyError, Mistake
from ksp.policy.legacy.model import LegacyPolicy
from ksp.policy.legacy.policy import RULES, configuration, policy_of, read_and_configure, read_policy
from ksp.policy.legacy.translation import Configured

__all__ = [
    "RULES",
    "Configured",
    "LegacyPolicy",
    "LegacyPolicyError",
    "Mistake",
    "configuration",
    "policy_of",
    "read_and_configure",
    "read_policy",
]
