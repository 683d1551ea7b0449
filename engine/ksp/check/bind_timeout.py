"""How long a pod waits for its claims is a parameter that the scheduler itself reads: of the predicate that implements
VolumeBinding. So what it can be is known when the policy is checked."""

from __future__ import annotations

from typing import Final

from ksp.check.report import Report
from ksp.check.typed import Constant, Expr, Rule
from ksp.check.types import Int, Unknown

# The plugin whose predicate finds volumes for claims, and its argument, as kube-scheduler calls them.
VOLUME_BINDING: Final = "VolumeBinding"
BIND_TIMEOUT: Final = "bindTimeoutSeconds"


def check_default(report: Report, rule: Rule) -> None:
    """The default that the rule itself gives."""
    for parameter in rule.parameters:
        if parameter.default is not None:
            check_argument(report, rule, parameter.binding.name, parameter.default)


def check_argument(report: Report, rule: Rule, name: str, value: Expr) -> None:
    """An argument of a rule, if it is this one. Nothing is said of a value that is not known yet."""
    if rule.kind != "predicate" or rule.plugin != VOLUME_BINDING or name != BIND_TIMEOUT:
        return
    if isinstance(value.type, Unknown):
        return
    if not isinstance(value.type, Int) or (isinstance(value, Constant) and int(value.value) < 0):
        reason = f"`{BIND_TIMEOUT}` is a number of seconds, not negative"
        report.error("KSP0511", value.span, reason, "not that", "with 0 a pod does not wait for its claims")
